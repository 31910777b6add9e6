"""The engine that runs a classifier in PyTorch, and finds what decided.

Axes: B texts, S tokens with `</s>`, C classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from jumok.bundle import Bundle
from jumok.engines.engine import sorted_batches
from jumok.engines.torch_models import Ids, load_model, padded, undisturbed
from jumok.engines.vectors import sentence_vectors
from jumok.metrics.classification import Scores
from jumok.model.classifier import Classifier
from jumok.model.ngrams import NgramScores
from jumok.tokenizer import EOS

BATCH_TOKENS = 16_384  # padded tokens that go through the model at a time


def class_scores(model: Classifier, texts: Ids, part: nn.Module | Callable[[Tensor], Tensor] | None = None) -> Scores:
    """Scores [B, C] of texts given as ids without `</s>`, in their order. They do not depend on what else is asked.

    `part` is what gives them, if it is not the whole model.
    """
    score = part or model
    result = np.zeros((len(texts), model.config.classes), np.float32)
    lengths = [len(text) + 1 for text in texts]
    with undisturbed(model, model.attended(max(lengths, default=1)) - 1):
        for batch in sorted_batches(lengths, BATCH_TOKENS):
            result[batch] = score(padded([[*texts[i], EOS] for i in batch])).numpy()
    return result


class TorchClassifier:
    """A `ClassifierEngine` around a model."""

    def __init__(self, model: Classifier) -> None:
        self.model = model

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> TorchClassifier:
        """An engine with a model of its own."""
        return cls(load_model(bundle, Classifier))

    @property
    def classes(self) -> int:
        """C."""
        return self.model.config.classes

    def scores(self, texts: Ids) -> Scores:
        """Scores [B, C]."""
        return class_scores(self.model, texts)

    def vectors(self, texts: Ids) -> npt.NDArray[np.float32]:
        """A vector [B, D] of length 1 for every text; zeros for a text without any token."""
        return sentence_vectors(self.model, texts)

    def worth(self, text: Sequence[int], chosen: int | None) -> list[float]:
        """How much each token spoke for a class (None: the most probable) against the others.

        Of the encoder it is gradient × input, of the scores of runs their own value, shared by the tokens of the run.
        """
        row = padded([[*text, EOS]])
        seen: list[Tensor] = []

        def remember(_module: nn.Module, _inputs: Any, vectors: Tensor) -> Tensor:
            seen.append(vectors.detach().requires_grad_())
            return seen[0]

        with undisturbed(self.model, self.model.attended(row.shape[1]) - 1):
            pass  # the table of positions is long enough now
        hook = self.model.embed.register_forward_hook(remember)
        try:
            with torch.enable_grad():
                scores = self.model(row)[0]
                chosen = int(scores.argmax()) if chosen is None else chosen
                others = torch.cat((scores[:chosen], scores[chosen + 1 :]))
                (scores[chosen] - others.mean()).backward()
        finally:
            hook.remove()
        [vectors] = seen
        assert vectors.grad is not None
        worth = (vectors.grad * vectors).detach().flatten(0, 1).sum(-1)[: row.shape[1]]  # windows in their order
        for part in self.model.ngrams:
            assert isinstance(part, NgramScores)
            worth = worth + part.attribution(row, chosen)
        result: list[float] = worth[: len(text)].tolist()
        return result
