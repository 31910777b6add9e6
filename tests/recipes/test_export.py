"""Probes for an export: read as the model's training data is, whatever its task."""

from pathlib import Path

import numpy as np
import pytest

from jumok.bundle import save_bundle
from jumok.data.examples import Rejections
from jumok.errors import ConfigError, InputError
from jumok.recipes.export import read_probe
from jumok.tasks import TASKS

PROBES = {
    "translator": ("a.tsv", "en\tko\na cat\t고양이\na dog\t개\n", [("a cat", "고양이"), ("a dog", "개")]),
    "classifier": ("a.tsv", "a cat\tgood\na dog\tbad\n", [("a cat",), ("a dog",)]),
    "language_model": ("a.txt", "a cat\n\na dog\n", [("a cat",), ("a dog",)]),
}


@pytest.mark.parametrize("task", [name for name, task in TASKS.items() if task.certify])
def test_probes_are_read_as_the_training_data_of_a_task(task: str, tmp_path: Path) -> None:
    weights = {"any": np.ones(1, np.float32)}
    card = {"classes": {"good": 1, "bad": 1}}
    encoder = ("tokenizer", b"any")
    save_bundle(tmp_path / "m", config={"task": task}, weights=weights, encoder=encoder, card=card)
    name, text, expected = PROBES[task]
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_probe(tmp_path / "m", [tmp_path / name]) == expected
    (tmp_path / name).write_bytes(b"\xff\xff\tx\n" * 3)
    with pytest.raises(InputError):
        read_probe(tmp_path / "m", [tmp_path / name])


def test_a_probe_may_be_a_table_of_which_columns_are_chosen(tmp_path: Path) -> None:
    card = {"classes": {"good": 1, "bad": 1}}
    (tmp_path / "a.csv").write_text("No;Note;Verdict\n1;a cat;good\n2;a dog;bad\n", encoding="utf-8")
    for task, columns, expected in (
        ("translator", ("Note", "Verdict"), [("a cat", "good"), ("a dog", "bad")]),
        ("classifier", ("Note", "Verdict"), [("a cat",), ("a dog",)]),
        ("language_model", ("Note",), [("a cat",), ("a dog",)]),
    ):
        save_bundle(
            tmp_path / task,
            config={"task": task},
            weights={"any": np.ones(1, np.float32)},
            encoder=("tokenizer", b"any"),
            card=card,
        )
        read = Rejections()
        assert read_probe(tmp_path / task, [tmp_path / "a.csv"], rejections=read, columns=columns) == expected
        assert 'column 2 "Note"' in read.layouts[0].describe()
    with pytest.raises(ConfigError, match="`languages=` has no effect on the examples of a language model"):
        read_probe(tmp_path / "language_model", [tmp_path / "a.csv"], languages=("en", "ko"))
