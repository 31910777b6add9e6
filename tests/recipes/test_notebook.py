"""The preset imdb-notebook trains the notebook's model: its sizes, its vocabulary, its loss."""

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from jumok.data.batch import LabelledBatch
from jumok.data.kinds import LARGEST_VOCABULARY
from jumok.model.config import preset
from jumok.recipes.classifier import NOTEBOOK, ClassifierTask
from jumok.recipes.planning import Plan
from jumok.training.distributed import ALONE
from jumok.training.settings import Settings


def prepared(directory: Path, settings: Settings) -> ClassifierTask:
    """Three of four texts are of one class, and no word comes twice."""
    draw = random.Random(1)
    rows = []
    for number in range(120):
        words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(60)]
        rows.append(f"{'a' if number % 4 else 'b'}\t{' '.join(words)}\n")
    (directory / "a.tsv").write_text("".join(rows), encoding="utf-8")
    task = ClassifierTask([directory / "a.tsv"], None)
    task.prepare(directory / "store", settings, expected=None, tokenizer=None)
    return task


def planned(task: ClassifierTask, asked: Settings) -> Settings:
    return Plan(task, asked, task.corpus.facts["tokens"], ALONE).settings


@pytest.fixture(scope="module")
def asked() -> Settings:
    return Settings.from_dict({"preset": NOTEBOOK})


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory, asked: Settings) -> ClassifierTask:
    return prepared(tmp_path_factory.mktemp("notebook"), asked)


def test_it_has_the_notebook_s_vocabulary_and_sizes(task: ClassifierTask, asked: Settings) -> None:
    size = task.tokenizer.size
    assert LARGEST_VOCABULARY < size <= preset(NOTEBOOK).vocabulary
    assert task.config(planned(task, asked)) == preset(NOTEBOOK, vocabulary=size)


def test_its_loss_is_plain_cross_entropy(task: ClassifierTask, asked: Settings) -> None:
    settings = planned(task, asked)
    model = task.model(settings).eval()
    batch: LabelledBatch = next(task.epochs(settings).batches(0, range(1)))
    expected = cross_entropy(model(torch.from_numpy(batch.text)), torch.from_numpy(batch.labels), reduction="sum")
    torch.testing.assert_close(task.loss(model, settings)(batch), expected)


@pytest.mark.parametrize("smoothing", [0.1, 0.3])
def test_what_was_asked_for_stays(tmp_path: Path, smoothing: float) -> None:
    given: dict[str, Any] = {"preset": NOTEBOOK, "tokenizer": {"size": 400}, "loss": {"smoothing": smoothing}}
    asked = Settings.from_dict(given)
    task = prepared(tmp_path, asked)
    assert task.tokenizer.size <= 400
    assert planned(task, asked).loss.smoothing == smoothing
