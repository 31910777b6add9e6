"""An engine without a model: it answers with the source, and writes down what it was asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jumok.engines.batching import FloatMatrix
from jumok.engines.options import SearchOptions
from jumok.search.hypothesis import Hypothesis

Ids = Sequence[Sequence[int]]


class EchoEngine:
    """`answers` says otherwise for some sources: what to answer while nothing may repeat, and while it may."""

    def __init__(self, longest: int | None = None) -> None:
        self.longest = longest
        self.answers: dict[tuple[int, ...], dict[bool, Hypothesis]] = {}
        self.asked: list[list[list[int]]] = []
        self.prefixes: list[Ids | None] = []
        self.bias: Mapping[int, float] | None = None

    def generate(
        self,
        sources: Ids,
        options: SearchOptions,
        *,
        prefixes: Ids | None = None,
        bias: Mapping[int, float] | None = None,
    ) -> list[list[Hypothesis]]:
        if sources:
            self.asked.append([list(source) for source in sources])
            self.prefixes.append(prefixes)
            self.bias = bias
        return [self._hypotheses(source, options) for source in sources]

    def score(self, sources: Ids, targets: Ids) -> list[list[float]]:
        return [[-1.0] * (len(target) + 1) for _, target in zip(sources, targets, strict=True)]

    def align(self, sources: Ids, targets: Ids) -> list[FloatMatrix]:
        """Everything comes from its own place."""
        return [
            np.eye(len(target) + 1, len(source) + 1, dtype=np.float32)
            for source, target in zip(sources, targets, strict=True)
        ]

    def vectors(self, texts: Ids) -> FloatMatrix:
        return np.ones((len(texts), 1), np.float32)

    def _hypotheses(self, source: Sequence[int], options: SearchOptions) -> list[Hypothesis]:
        answer = self.answers.get(tuple(source), {}).get(options.no_repeat_ngram > 0)
        first = answer or Hypothesis(list(source), -0.1, [-0.1] * (len(source) + 1), True)
        others = [
            Hypothesis(first.ids[:-place], first.score - place * len(source), first.log_probs[:-place], True)
            for place in range(1, options.n_best)
        ]
        return [first, *others]
