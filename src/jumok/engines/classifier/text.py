"""Texts in, classes with probabilities out: what is the same whichever engine runs a classifier.

No torch here. Texts are the tokenizer's ids, without `</s>`. Axes: B texts, C classes, D d_model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from jumok.errors import BundleError
from jumok.metrics.classification import Scores, probabilities
from jumok.tokenizer import Tokenizer

Ids = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Classification:
    """What a text is."""

    label: str
    probability: float
    probabilities: dict[str, float]  # of every class


class ClassifierEngine(Protocol):
    """Runs a classifier. Results come in the order of the texts, and do not depend on what else is asked for."""

    @property
    def classes(self) -> int:
        """C."""
        ...

    def scores(self, texts: Ids) -> Scores:
        """Scores [B, C]."""
        ...

    def vectors(self, texts: Ids) -> npt.NDArray[np.float32]:
        """A vector [B, D] of length 1 for every text; zeros for a text without any token."""
        ...

    def worth(self, text: Sequence[int], chosen: int | None) -> list[float]:
        """How much each token spoke for a class (None: the most probable) against the others."""
        ...


class TextClassifier:
    """A classifier from a model directory."""

    def __init__(self, engine: ClassifierEngine, tokenizer: Tokenizer, card: dict[str, Any], path: Path) -> None:
        self.engine, self.tokenizer, self.card, self.path = engine, tokenizer, card, path
        self.classes = list(card.get("classes", {}))
        if len(self.classes) != engine.classes:
            raise BundleError(f"{path}: its card names {len(self.classes)} classes, the model has {engine.classes}.")
        self.temperature = float(card.get("metrics", {}).get("temperature", 1.0))

    def scores(self, texts: Sequence[str]) -> Scores:
        """Scores [B, C] before they become probabilities."""
        return self.engine.scores(self.tokenizer.encode(texts))

    def classify(self, texts: Sequence[str]) -> list[Classification]:
        """The most probable class of each text, and the probabilities of all."""
        results = []
        for row in probabilities(self.scores(texts), self.temperature).tolist():
            named = dict(zip(self.classes, row, strict=True))
            label = max(self.classes, key=named.__getitem__)
            results.append(Classification(label, named[label], named))
        return results

    def explain(self, text: str, label: str | None = None) -> list[tuple[str, float]]:
        """Each piece of the text and how much it spoke for `label` (else the most probable class) against the others.

        The sum over the pieces is not the score: it says which mattered more.
        """
        [ids] = self.tokenizer.encode([text])
        chosen = None if label is None else self.classes.index(label)
        return list(zip(self.tokenizer.pieces(ids), self.engine.worth(ids, chosen), strict=True))
