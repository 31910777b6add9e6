"""Probes for an export: read as the model's training data is, whatever its task."""

from pathlib import Path

import numpy as np
import pytest

from jumok.bundle import save_bundle
from jumok.errors import InputError
from jumok.recipes.export import read_probe
from jumok.tasks import TASKS

PROBES = {
    "translator": ("a.tsv", "en\tko\na cat\t고양이\na dog\t개\n", [("a cat", "고양이"), ("a dog", "개")]),
    "classifier": ("a.tsv", "a cat\tgood\na dog\tbad\n", [("a cat",), ("a dog",)]),
    "language_model": ("a.txt", "a cat\n\na dog\n", [("a cat",), ("a dog",)]),
}


@pytest.mark.parametrize("task", TASKS)
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
