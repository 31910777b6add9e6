"""A corpus in four shards is the same corpus."""

from pathlib import Path

import pytest
from commands import Jumok, train_arguments, write_corpus
from safetensors.torch import load_file

from jumok.data import sections, store
from jumok.training.records import read_log


def losses(run: Path) -> list[float]:
    return [entry["loss"] for entry in read_log(run) if entry["event"] == "train"]


@pytest.mark.parametrize("section_examples", [1 << 24, 50], ids=["one section", "three sections"])
def test_four_shards_train_with_the_bits_of_one(
    tmp_path: Path, jumok: Jumok, monkeypatch: pytest.MonkeyPatch, section_examples: int
) -> None:
    write_corpus(tmp_path)
    monkeypatch.setattr(sections, "SECTION_EXAMPLES", section_examples)
    for out, shard_examples in (("one", 1 << 24), ("four", 38)):
        monkeypatch.setattr(store, "SHARD_EXAMPLES", shard_examples)
        arguments = [*train_arguments(tmp_path, out, 12), "--set=log.every=1", "--set=validate.every=12"]
        assert jumok("train", "translator", *arguments, "--quiet").code == 0
    one, four = tmp_path / "one", tmp_path / "four"
    assert [len(list(run.glob("store/train/source*.ids"))) for run in (one, four)] == [1, 4]
    assert losses(one) == losses(four)
    assert len(set(losses(one))) == 12
    expected, found = (load_file(run / "model" / "weights.safetensors") for run in (one, four))
    assert all(found[name].equal(expected[name]) for name in expected)
