"""Scores for runs of tokens: naive Bayes says how telling a run is, logistic regression what it says.

A text is the set of its runs, each as loud as its log-count ratios are large (Wang and Manning, 2012). The problem has
one minimum, so it is solved once, in seconds, and not learned step by step. Axes: N texts, P places, C classes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from jumok.data.batch import LabelledBatch
from jumok.model.ngrams import LONGEST_TOKEN, NgramScores
from jumok.tokenizer import FIRST_PIECE, PAD, Tokenizer

TRUST = 8.0  # in the texts against the wish for small weights
ITERATIONS = 60
HISTORY = 6  # of steps the search remembers
# Of all texts together, and of texts times classes; what comes after them is left out, to bound the memory.
MOST_RUNS, MOST_SCORES = 40_000_000, 50_000_000
MANY_CHARACTERS = 800  # more than any alphabet has
_BEYOND_UNICODE = 0x110000


@dataclass(frozen=True)
class _Runs:
    """Which text has which run."""

    places: Tensor  # [R] int32, text by text
    counts: Tensor  # [N] how many runs each text has
    labels: Tensor  # [N]

    @property
    def texts(self) -> Tensor:
        """[R] the text of each run."""
        return torch.repeat_interleave(torch.arange(len(self.counts), dtype=torch.int32), self.counts)


def fit_ngram_scores(batches: Iterable[LabelledBatch], ngrams: NgramScores, class_weights: Tensor) -> None:
    """Fit the scores and scales of n-grams to labelled texts."""
    runs = _collect(batches, ngrams, MOST_SCORES // len(class_weights))
    ratios = _log_count_ratios(runs, *ngrams.scores.shape)
    loud = ratios.norm(dim=1)
    weights = _logistic_regression(runs, loud, class_weights)
    ngrams.scores.copy_(weights * loud[:, None])
    ngrams.scale.copy_(loud.square())


def spelling_of(tokenizer: Tokenizer) -> Tensor:
    """[V, LONGEST_TOKEN] the characters of every token as numbers, then zeros; what is not text is a character too."""
    table = torch.zeros(tokenizer.size, LONGEST_TOKEN)
    for token, piece in enumerate(tokenizer.pieces(range(tokenizer.size))):
        characters = [ord(character) for character in piece] if token >= FIRST_PIECE else [_BEYOND_UNICODE + token]
        table[token, : len(characters)] = torch.tensor(characters)
    table[PAD] = 0
    return table


def writes_syllables_or_words(tokenizer: Tokenizer) -> bool:
    """Whether a character says as much as a short word does elsewhere: such scripts have a thousand and more."""
    return sum(len(piece) == 1 for piece in tokenizer.pieces(range(FIRST_PIECE, tokenizer.size))) >= MANY_CHARACTERS


def _collect(batches: Iterable[LabelledBatch], ngrams: NgramScores, most_texts: int) -> _Runs:
    found_places: list[Tensor] = []
    counts: list[Tensor] = []
    labels: list[Tensor] = []
    total = texts = 0
    for batch in batches:
        found, counted = ngrams.rows(torch.from_numpy(batch.text))
        found_places.append(found[counted].int())
        counts.append(counted.sum(1))
        labels.append(torch.from_numpy(batch.labels))
        total, texts = total + len(found_places[-1]), texts + len(batch.labels)
        if total >= MOST_RUNS or texts >= most_texts:
            break
    return _Runs(torch.cat(found_places), torch.cat(counts), torch.cat(labels))


def _log_count_ratios(runs: _Runs, places: int, classes: int) -> Tensor:
    """[P, C] how much more frequent a run is in the texts of a class than in the mean of all classes."""
    cells = runs.places.long() * classes + torch.repeat_interleave(runs.labels, runs.counts)
    counts = np.bincount(cells.numpy(), minlength=places * classes).reshape(places, classes)
    logs = np.log((counts + 1) / (counts + 1).sum(0))
    ratios = logs - logs.mean(1, keepdims=True)
    return torch.from_numpy(ratios * (counts.sum(1, keepdims=True) > 0)).float()  # what was never seen says nothing


def _logistic_regression(runs: _Runs, loud: Tensor, class_weights: Tensor) -> Tensor:
    """Weights [P, C] that tell the classes apart."""
    values = loud[runs.places]
    together = torch.zeros(len(runs.counts)).index_add_(0, runs.texts, values.square()).sqrt()
    values /= together.clamp(min=1e-6)[runs.texts]
    order = runs.places.argsort(stable=True)
    text_starts = _starts(runs.counts)
    place_starts = _starts(torch.bincount(runs.places, minlength=len(loud)))
    text_of_place, value_of_place = runs.texts[order], values[order]
    trust = TRUST * class_weights[runs.labels]
    weights = nn.Parameter(torch.zeros(len(loud), len(class_weights)))
    search = torch.optim.LBFGS([weights], max_iter=ITERATIONS, history_size=HISTORY, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        logits = _sums(weights, runs.places, text_starts, values)
        losses = nn.functional.cross_entropy(logits, runs.labels, reduction="none")
        errors = logits.softmax(1)
        errors[torch.arange(len(errors)), runs.labels] -= 1
        weights.grad = _sums(errors * trust[:, None], text_of_place, place_starts, value_of_place) + weights
        return (losses * trust).sum() + weights.square().sum() / 2

    with torch.no_grad():
        search.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach()


def _starts(counts: Tensor) -> Tensor:
    return torch.cat((torch.zeros(1, dtype=torch.int32), counts.cumsum(0)[:-1].int()))


def _sums(table: Tensor, rows: Tensor, starts: Tensor, values: Tensor) -> Tensor:
    """For each group of `rows` the sum of these rows of the table, each times its value."""
    result: Tensor = nn.functional.embedding_bag(rows, table, starts, mode="sum", per_sample_weights=values)
    return result
