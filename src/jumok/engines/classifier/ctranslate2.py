"""The engine that runs an exported classifier: its encoder in CTranslate2, what comes after it in NumPy. No PyTorch.

What decided, and texts longer than the exported model has positions for, are left to PyTorch, which is imported only
then. Axes: B texts, S tokens of a row, D d_model, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt

from jumok.bundle import Bundle
from jumok.engines.classifier.text import ClassifierEngine, Ids
from jumok.engines.conversion import longest_text
from jumok.engines.engine import sorted_batches, to_unit_length
from jumok.metrics.classification import Scores
from jumok.model.config.classifier import ClassifierConfig
from jumok.model.ngram_table import LONGEST_NGRAM, NgramTable
from jumok.system import usable_cores
from jumok.tokenizer import EOS, PAD

BATCH_TOKENS = 4096  # padded tokens that one thread takes at a time

Reals = npt.NDArray[np.float32]
Measure = Callable[[Reals, Sequence[int]], Reals]  # the states [S, D] of a row, its tokens → one vector


class Ctranslate2Classifier:
    """A `ClassifierEngine` around a CTranslate2 model. `fallback` makes the engine for what this one cannot do."""

    def __init__(self, directory: Path, bundle: Bundle, fallback: Callable[[], ClassifierEngine]) -> None:
        import ctranslate2

        self._config = ClassifierConfig.from_dict(bundle.config)
        weights = bundle.weights()
        self._head, self._bias = weights["head.weight"], weights["head.bias"]
        self._ngrams = _ngram_tables(self._config, weights)
        self._share = weights.get("encoder_share", np.float32(1))
        self._make_fallback = fallback
        self._fallback: ClassifierEngine | None = None
        # Threads across batches: inside an operation of a small model they cost more than they bring.
        self._workers = usable_cores()
        self._encoder = ctranslate2.Encoder(str(directory), device="cpu", inter_threads=self._workers, intra_threads=1)

    @property
    def classes(self) -> int:
        """C."""
        return self._config.classes

    def too_long(self, text: Sequence[int]) -> bool:
        """Whether a text has more positions than were exported. One that is read in windows never has."""
        return min(len(text), (self._config.window or len(text) + 1) - 1) > longest_text(self._config)

    def scores(self, texts: Ids) -> Scores:
        """Scores [B, C]."""
        if any(map(self.too_long, texts)):
            return self._other().scores(texts)
        if not texts:
            return np.zeros((0, self.classes), np.float32)
        result = self._share * self._encoder_scores(texts)
        for ngrams in self._ngrams:
            result = result + self._ngram_scores(ngrams, texts)
        return result

    def vectors(self, texts: Ids) -> Reals:
        """A vector [B, D] of length 1 for every text; zeros for a text without any token."""
        if any(map(self.too_long, texts)):
            return self._other().vectors(texts)
        if not texts:
            return np.zeros((0, self._config.d_model), np.float32)
        return to_unit_length(
            self._pooled(texts, np.add, lambda states, row: states[: len(row) - (row[-1] == EOS)].sum(0))
        )

    def worth(self, text: Sequence[int], chosen: int | None) -> list[float]:
        """How much each token spoke for a class (None: the most probable) against the others."""
        return self._other().worth(text, chosen)

    def _encoder_scores(self, texts: Ids) -> Scores:
        """As `Classifier.encoder_scores`."""
        if self._config.pooling == "answers":
            return self._pooled(texts, np.maximum, lambda states, _row: self._answers(states).max(0))
        if self._config.pooling == "max":
            return self._answers(self._pooled(texts, np.maximum, lambda states, _row: states.max(0)))
        lengths = np.array([len(text) + 1 for text in texts], np.float32)
        return self._answers(self._pooled(texts, np.add, lambda states, _row: states.sum(0)) / lengths[:, None])

    def _answers(self, states: Reals) -> Scores:
        result: Scores = states @ self._head.T + self._bias
        return result

    def _pooled(self, texts: Ids, together: np.ufunc, measure: Measure) -> Reals:
        """For every text the measures of its windows, put together: [B, …]."""
        rows: list[list[int]] = []
        starts = []
        for text in texts:
            whole = [*text, EOS]
            starts.append(len(rows))
            window = self._config.window or len(whole)
            rows += [whole[start : start + window] for start in range(0, len(whole), window)]

        def run(batch: list[int]) -> list[Reals]:
            states = np.array(self._encoder.forward_batch([rows[i] for i in batch]).last_hidden_state)
            return [measure(state[: len(rows[i])], rows[i]) for i, state in zip(batch, states, strict=True)]

        batches = self._batches(rows)
        measured: dict[int, Reals] = {}
        with ThreadPoolExecutor(self._workers) as pool:
            for batch, found in zip(batches, pool.map(run, batches), strict=True):
                measured.update(zip(batch, found, strict=True))
        result: Reals = together.reduceat(np.stack([measured[i] for i in range(len(rows))]), starts)
        return result

    def _ngram_scores(self, ngrams: NgramTable, texts: Ids) -> Scores:
        rows = [[*text, EOS] for text in texts]
        batches = self._batches(rows)
        result = np.zeros((len(texts), self.classes), np.float32)
        with ThreadPoolExecutor(self._workers) as pool:
            padded = ([rows[i] for i in batch] for batch in batches)
            for batch, scores in zip(batches, pool.map(lambda some: ngrams(_padded(some)), padded), strict=True):
                result[batch] = scores
        return result

    def _batches(self, rows: Ids) -> list[list[int]]:
        lengths = [len(row) for row in rows]
        return sorted_batches(lengths, min(BATCH_TOKENS, max(1, sum(lengths) // self._workers)))

    def _other(self) -> ClassifierEngine:
        if self._fallback is None:
            self._fallback = self._make_fallback()
        return self._fallback


def _ngram_tables(config: ClassifierConfig, weights: dict[str, Reals]) -> list[NgramTable]:
    return [
        NgramTable(
            weights[f"ngrams.{number}.scores"],
            weights[f"ngrams.{number}.scale"],
            LONGEST_NGRAM[unit],
            weights.get(f"ngrams.{number}.spelling"),
        )
        for number, unit in enumerate(config.ngram_units)
    ]


def _padded(rows: Ids) -> npt.NDArray[np.int64]:
    result = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
    for number, row in enumerate(rows):
        result[number, : len(row)] = row
    return result
