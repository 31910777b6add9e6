"""The engine that runs an exported classifier, its encoder in CTranslate2, the rest in NumPy; and its conversion.
Attribution, and texts longer than the exported positions, are left to PyTorch, which is imported only then.
Axes: B texts, S tokens of a row, D d_model, C classes."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from jumok.bundle import Bundle, Weights
from jumok.engines.batching import FloatMatrix, TokenIds, padded_array, sorted_batches, to_unit_length
from jumok.engines.classifier.text import ClassifierEngine
from jumok.engines.conversion import fill_encoder, layer_options, longest_text
from jumok.engines.ctranslate2_models import Ctranslate2Model
from jumok.engines.opening import needed_for
from jumok.metrics.classification import ClassScores
from jumok.model.config.classifier import ClassifierConfig
from jumok.model.ngram_table import NgramTable
from jumok.tokenizer import EOS

BATCH_TOKENS = 4096  # padded tokens in a batch of one thread
TOO_LONG = "A text longer than the exported model can read"

Reduce = Callable[[FloatMatrix, Sequence[int]], FloatMatrix]  # the states [S, D] of a row, its tokens → one vector


class Ctranslate2Classifier:
    """A `ClassifierEngine` around a CTranslate2 model. `fallback` makes the engine for what this one cannot do.
    `compute` is CTranslate2's type of computation; by default the type of the stored weights."""

    name = "CTranslate2"

    def __init__(
        self,
        directory: Path,
        bundle: Bundle,
        fallback: Callable[[], ClassifierEngine],
        *,
        threads: int | None = None,
        device: str = "cpu",
        compute: str = "default",
    ) -> None:
        self._config = ClassifierConfig.from_dict(bundle.config)
        weights = bundle.weights()
        self._head, self._bias = weights["head.weight"], weights["head.bias"]
        self._ngrams = [
            NgramTable.of_unit(
                unit,
                weights[f"ngrams.{number}.scores"],
                weights[f"ngrams.{number}.scale"],
                weights.get(f"ngrams.{number}.spelling"),
                weights.get(f"ngrams.{number}.fingerprints"),
            )
            for number, unit in enumerate(self._config.ngram_units)
        ]
        self._share = weights.get("encoder_share", np.float32(1))
        self.fallback = cache(fallback)
        self._model = Ctranslate2Model("Encoder", directory, threads, device, compute_type=compute)

    @property
    def classes(self) -> int:
        return self._config.classes

    @property
    def longest(self) -> int:
        """The most tokens of a text, or of a window of it, `</s>` not counted."""
        positions = longest_text(self._config)
        return min(self._config.window - 1, positions) if self._config.window else positions

    def states(self, rows: TokenIds) -> FloatMatrix:
        """The encoder states [B, S, D] of rows of ids with `</s>`, none longer than a window; shorter ones padded."""
        return np.array(self._model.get().forward_batch([list(row) for row in rows]).last_hidden_state)

    def too_long(self, text: Sequence[int]) -> bool:
        """Whether a text, or a window of it, has more positions than were exported."""
        return min(len(text), (self._config.window or len(text) + 1) - 1) > longest_text(self._config)

    def scores(self, texts: TokenIds) -> ClassScores:
        if any(map(self.too_long, texts)):
            return self._original(TOO_LONG).scores(texts)
        if not texts:
            return np.zeros((0, self.classes), np.float32)
        result = self._share * self._encoder_scores(texts)
        for ngrams in self._ngrams:
            result = result + self._ngram_scores(ngrams, texts)
        return result

    def vectors(self, texts: TokenIds) -> FloatMatrix:
        if any(map(self.too_long, texts)):
            return self._original(TOO_LONG).vectors(texts)
        if not texts:
            return np.zeros((0, self._config.d_model), np.float32)
        return to_unit_length(
            self._pooled(texts, np.add, lambda states, row: states[: len(row) - (row[-1] == EOS)].sum(0))
        )

    def attribution(self, text: Sequence[int], chosen: int | None) -> list[float]:
        return self._original("Explaining a classification").attribution(text, chosen)

    def _original(self, purpose: str) -> ClassifierEngine:
        with needed_for(purpose):
            return self.fallback()

    def _encoder_scores(self, texts: TokenIds) -> ClassScores:
        """The same as `Classifier.encoder_scores`."""
        if self._config.pooling == "answers":
            return self._pooled(texts, np.maximum, lambda states, _row: self._class_scores(states).max(0))
        if self._config.pooling == "max":
            return self._class_scores(self._pooled(texts, np.maximum, lambda states, _row: states.max(0)))
        lengths = np.array([len(text) + 1 for text in texts], np.float32)
        return self._class_scores(self._pooled(texts, np.add, lambda states, _row: states.sum(0)) / lengths[:, None])

    def _class_scores(self, states: FloatMatrix) -> ClassScores:
        result: ClassScores = states @ self._head.T + self._bias
        return result

    def _pooled(self, texts: TokenIds, combine: np.ufunc, reduce: Reduce) -> FloatMatrix:
        """`reduce` applied to the states of every window, and `combine` to the windows of each text: [B, …]."""
        rows: list[list[int]] = []
        starts = []
        for text in texts:
            ids = [*text, EOS]
            starts.append(len(rows))
            window = self._config.window or len(ids)
            rows += [ids[start : start + window] for start in range(0, len(ids), window)]

        def run(batch: list[int]) -> list[FloatMatrix]:
            states = self.states([rows[i] for i in batch])
            return [reduce(state[: len(rows[i])], rows[i]) for i, state in zip(batch, states, strict=True)]

        result: FloatMatrix = combine.reduceat(self._in_batches(rows, run), starts)
        return result

    def _ngram_scores(self, ngrams: NgramTable, texts: TokenIds) -> ClassScores:
        rows = [[*text, EOS] for text in texts]
        return self._in_batches(rows, lambda batch: ngrams(padded_array([rows[i] for i in batch])))

    def _in_batches(self, rows: TokenIds, run: Callable[[list[int]], Iterable[FloatMatrix]]) -> FloatMatrix:
        """`run` called in threads with the indices of every batch of the rows; its results in their order: [B, …]."""
        lengths = [len(row) for row in rows]
        batches = sorted_batches(lengths, min(BATCH_TOKENS, max(1, sum(lengths) // self._model.workers)))
        found: dict[int, FloatMatrix] = {}
        pool = ThreadPoolExecutor(self._model.workers)
        try:
            for batch, results in zip(batches, pool.map(run, batches), strict=True):
                found.update(zip(batch, results, strict=True))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)  # an interrupt does not wait for the batches that are left
        return np.stack([found[i] for i in range(len(rows))])


def make_spec(config: ClassifierConfig, weights: Weights, tokens: list[str]) -> Any:
    """The specification of the encoder alone: CTranslate2 knows neither the n-gram scores nor the windows."""
    from ctranslate2.specs import transformer_spec

    encoder = transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **layer_options(config))
    fill_encoder(encoder, config, weights)
    spec = transformer_spec.TransformerEncoderModelSpec(encoder)
    spec.register_vocabulary(tokens)
    return spec
