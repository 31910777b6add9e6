"""Texts in, classes with probabilities out: the engine that runs a classifier in PyTorch, and what decided.

Axes: B texts, S tokens with `</s>`, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jumok.bundle import Bundle
from jumok.classification import Scores, probabilities
from jumok.engines.engine import sorted_batches
from jumok.engines.torch_models import Ids, load_model, padded, undisturbed
from jumok.errors import BundleError
from jumok.model.classifier import Classifier
from jumok.tokenizer import EOS, Tokenizer

BATCH_TOKENS = 16_384  # padded tokens that go through the model at a time


@dataclass(frozen=True)
class Classification:
    """What a text is."""

    label: str
    probability: float
    probabilities: dict[str, float]  # of every class


def class_scores(model: Classifier, texts: Ids, part: nn.Module | Callable[[Tensor], Tensor] | None = None) -> Scores:
    """Scores [B, C] of texts given as ids without `</s>`, in their order. They do not depend on what else is asked.

    `part` is what gives them, if it is not the whole model.
    """
    score = part or model
    result = np.zeros((len(texts), model.config.classes), np.float32)
    lengths = [len(text) + 1 for text in texts]
    with undisturbed(model, max(map(len, texts), default=0)):
        for batch in sorted_batches(lengths, BATCH_TOKENS):
            result[batch] = score(padded([[*texts[i], EOS] for i in batch])).numpy()
    return result


class TextClassifier:
    """A classifier from a model directory."""

    def __init__(self, model: Classifier, tokenizer: Tokenizer, card: dict[str, Any], path: Path) -> None:
        self.model, self.tokenizer, self.card, self.path = model, tokenizer, card, path
        self.classes = list(card.get("classes", {}))
        if len(self.classes) != model.config.classes:
            raise BundleError(
                f"{path}: its card names {len(self.classes)} classes, the model has {model.config.classes}."
            )
        self.temperature = float(card.get("metrics", {}).get("temperature", 1.0))

    @classmethod
    def from_bundle(cls, bundle: Bundle, tokenizer: Tokenizer) -> TextClassifier:
        """A classifier with a model of its own."""
        return cls(load_model(bundle, Classifier), tokenizer, bundle.card, bundle.path)

    def scores(self, texts: Sequence[str]) -> Scores:
        """Scores [B, C] before they become probabilities."""
        return class_scores(self.model, self.tokenizer.encode(texts))

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

        The sum over the pieces is not the score: it says which mattered more. Of the encoder it is gradient × input, of
        the scores of runs of tokens their own value, shared by the tokens of the run.
        """
        [ids] = self.tokenizer.encode([text])
        row = padded([[*ids, EOS]])
        seen: list[Tensor] = []

        def remember(_module: nn.Module, _inputs: Any, vectors: Tensor) -> Tensor:
            seen.append(vectors.detach().requires_grad_())
            return seen[0]

        with undisturbed(self.model, len(ids)):
            pass  # the table of positions is long enough now
        hook = self.model.embed.register_forward_hook(remember)
        try:
            with torch.enable_grad():
                scores = self.model(row)[0]
                chosen = int(scores.argmax()) if label is None else self.classes.index(label)
                others = torch.cat((scores[:chosen], scores[chosen + 1 :]))
                (scores[chosen] - others.mean()).backward()
        finally:
            hook.remove()
        [vectors] = seen
        assert vectors.grad is not None
        worth = (vectors.grad * vectors).detach().flatten(0, 1).sum(-1)[: row.shape[1]]  # windows in their order
        if self.model.ngrams is not None:
            worth = worth + self.model.ngrams.worth(row, chosen)
        return list(zip(self.tokenizer.pieces(ids), worth[: len(ids)].tolist(), strict=True))
