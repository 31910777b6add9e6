"""The scores of runs: the minimum of logistic regression, found in one go."""

from collections.abc import Iterator

import numpy as np
import torch

from jumok.data.batch import LabelledBatch
from jumok.model.ngrams import NgramScores, run_places
from jumok.recipes.ngram_fit import TRUST, fit_ngram_scores

PLACES = 1 << 12
EVEN = torch.ones(2)


def batches(count: int = 300, seed: int = 0) -> Iterator[LabelledBatch]:
    """Texts of ten tokens; `7 8` makes one of class 1, `8 7` does not, and there is noise."""
    draw = np.random.default_rng(seed)
    for _ in range(count // 50):
        text = draw.integers(1, 7, size=(50, 10))
        labels = draw.integers(0, 2, size=50)
        for row, label in zip(text, labels, strict=True):
            place = draw.integers(0, 9)
            row[place : place + 2] = (7, 8) if label else (8, 7)
        yield LabelledBatch(text=text, labels=labels, lines=np.zeros(50, np.int64))


def fitted() -> NgramScores:
    layer = NgramScores(PLACES, 2)
    scores, loudness = fit_ngram_scores(batches(), PLACES, EVEN)
    layer.scores.copy_(scores)
    layer.loudness.copy_(loudness)
    return layer


def test_order_of_words_is_learned() -> None:
    layer = fitted()
    for batch in batches(seed=1):
        answers = layer(torch.from_numpy(batch.text)).argmax(1)
        assert float((answers == torch.from_numpy(batch.labels)).float().mean()) > 0.95


def test_it_is_the_minimum() -> None:
    """Autograd finds no slope where the search ended."""
    layer = fitted()
    loud = layer.loudness.sqrt()
    weights = (layer.scores / loud.clamp(min=1e-9)[:, None]).requires_grad_()
    loss = weights.square().sum() / 2
    for batch in batches():
        found, counted = run_places(torch.from_numpy(batch.text), PLACES)
        values = loud[found] * counted
        values = values / values.norm(dim=1, keepdim=True)
        logits = (weights[found] * values[..., None]).sum(1)
        loss = loss + TRUST * torch.nn.functional.cross_entropy(logits, torch.from_numpy(batch.labels), reduction="sum")
    [slope] = torch.autograd.grad(loss, weights)
    assert float(slope.norm()) < 0.01 * float(loss.detach())
