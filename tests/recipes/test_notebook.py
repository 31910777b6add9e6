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
from jumok.recipes.classifier import NOTEBOOK, ClassifierRecipe
from jumok.recipes.planning import resolve_settings
from jumok.training.settings import Settings


def prepared(directory: Path, settings: Settings) -> ClassifierRecipe:
    """Three of four texts are of one class, and no word comes twice."""
    draw = random.Random(1)
    rows = []
    for number in range(120):
        words = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=6)) for _ in range(60)]
        rows.append(f"{'a' if number % 4 else 'b'}\t{' '.join(words)}\n")
    (directory / "a.tsv").write_text("".join(rows), encoding="utf-8")
    recipe = ClassifierRecipe([directory / "a.tsv"], None)
    recipe.prepare(directory / "store", settings, expected=None, encoder=None)
    return recipe


def planned(recipe: ClassifierRecipe, asked: Settings) -> Settings:
    return resolve_settings(recipe, asked, began=0.0).settings


@pytest.fixture(scope="module")
def asked() -> Settings:
    return Settings.from_dict({"preset": NOTEBOOK})


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory, asked: Settings) -> ClassifierRecipe:
    return prepared(tmp_path_factory.mktemp("notebook"), asked)


def test_it_has_the_notebook_s_vocabulary_and_sizes(recipe: ClassifierRecipe, asked: Settings) -> None:
    size = recipe.corpus.tokenizer.size
    assert LARGEST_VOCABULARY < size <= preset(NOTEBOOK).vocabulary
    assert recipe.config(planned(recipe, asked)) == preset(NOTEBOOK, vocabulary=size)


def test_its_loss_is_plain_cross_entropy(recipe: ClassifierRecipe, asked: Settings) -> None:
    settings = planned(recipe, asked)
    model = recipe.model(settings).eval()
    batch: LabelledBatch = next(recipe.epochs(settings).batches(0, range(1)))
    expected = cross_entropy(model(torch.from_numpy(batch.text)), torch.from_numpy(batch.labels), reduction="sum")
    torch.testing.assert_close(recipe.loss(model, settings)(batch), expected)


@pytest.mark.parametrize("smoothing", [0.1, 0.3])
def test_what_was_asked_for_stays(tmp_path: Path, smoothing: float) -> None:
    given: dict[str, Any] = {"preset": NOTEBOOK, "tokenizer": {"size": 400}, "loss": {"smoothing": smoothing}}
    asked = Settings.from_dict(given)
    recipe = prepared(tmp_path, asked)
    assert recipe.corpus.tokenizer.size <= 400
    assert planned(recipe, asked).loss.smoothing == smoothing
