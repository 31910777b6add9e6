"""What an image classifier learns from a batch."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from jumok.data.examples import Example
from jumok.data.pictures import PictureBatch
from jumok.engines.image_classifier.torch import standardised
from jumok.files import MAX_JSON_BYTES
from jumok.pictures import picture_to_text, png_bytes
from jumok.recipes.image_classifier import LARGEST_ASKED, ImageClassifierRecipe
from jumok.recipes.labelled import SAMPLES
from jumok.recipes.planning import new_model
from jumok.training.settings import Settings

SIZES = {"model.d_model": 16, "model.heads": 2, "model.d_ff": 16, "model.patch": 4, "model.stem": "linear"}


def test_a_mixture_is_to_be_recognised_as_both_pictures_by_their_shares(tmp_path: Path) -> None:
    draw = np.random.default_rng(0)
    for name in ("one", "other"):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(20):
            picture = draw.integers(0, 256, (8, 8, 1), dtype=np.uint8)
            (tmp_path / "data" / name / f"{number}.png").write_bytes(png_bytes(picture))
    recipe = ImageClassifierRecipe([tmp_path / "data"])
    settings = Settings.from_dict({}).changed({"preset": "tiny", "model.dropout": 0.0, "loss.smoothing": 0.0, **SIZES})
    recipe.prepare(tmp_path / "store", settings, expected=None, encoder=None, skip_unusable=False)
    model = new_model(recipe, settings).eval()
    pictures = draw.integers(0, 256, (6, 8, 8, 1), dtype=np.uint8)
    labels, partners = np.array([0, 1, 0, 1, 1, 0]), np.array([1, 0, 0, 1, 0, 1])
    shares = np.array([1, 0, 0.5, 0.2, 0.7, 0.9], np.float32)
    batch = PictureBatch(pictures, labels, partners, shares, np.arange(6))
    loss = recipe.loss(model, settings)  # type: ignore[arg-type]
    surprise = -torch.log_softmax(model(standardised(pictures, recipe.encoder, torch.device("cpu"))), -1)
    weights = recipe.class_weights()
    weighted = surprise * (torch.ones(2) if weights is None else weights)
    rows = np.arange(6)
    expected = sum(
        share * weighted[row, label] + (1 - share) * weighted[row, partner]
        for row, label, partner, share in zip(rows, labels, partners, shares, strict=True)
    )
    torch.testing.assert_close(loss(batch), torch.as_tensor(expected))
    whole = replace(batch, shares=np.ones(6, np.float32))
    torch.testing.assert_close(loss(whole), weighted[rows, labels].sum())


def test_samples_of_the_largest_pictures_fit_into_a_line_of_the_log(tmp_path: Path) -> None:
    picture = picture_to_text(np.zeros((LARGEST_ASKED, LARGEST_ASKED, 3), np.uint8))
    sample = ImageClassifierRecipe([tmp_path]).sample(Example((picture,), "data/cat/1.png:1", "cat"))
    assert sample["source"] == "data/cat/1.png"
    assert SAMPLES * len(json.dumps(sample)) < MAX_JSON_BYTES / 100
