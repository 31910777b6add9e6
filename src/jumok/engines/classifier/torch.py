"""Runs a classifier in PyTorch and attributes its scores to tokens. Axes: B texts, S tokens with `</s>`, C classes."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jumok.engines.batching import FloatMatrix, TokenIds, sorted_batches
from jumok.engines.torch_models import TorchEngine, computing, padded
from jumok.metrics.classification import ClassScores
from jumok.model.classifier import Classifier
from jumok.model.ngrams import NgramScores
from jumok.tokenizer import EOS

BATCH_TOKENS = 16_384  # padded tokens in a batch


class TorchClassifier(TorchEngine):
    """A `ClassifierEngine` around a model."""

    model: Classifier

    @property
    def classes(self) -> int:
        return self.model.config.classes

    @computing
    def scores(self, texts: TokenIds, part: Callable[[Tensor], Tensor] | None = None) -> ClassScores:
        """Scores [B, C] of the classes, before the softmax; `part` is the part of the model to evaluate, if not all."""
        score = part or self.model
        result = np.zeros((len(texts), self.classes), np.float32)
        lengths = [len(text) + 1 for text in texts]
        with self.evaluating(self.model.attended(max(lengths, default=1)) - 1):
            for batch in sorted_batches(lengths, BATCH_TOKENS):
                result[batch] = score(padded([[*texts[i], EOS] for i in batch], self.device)).cpu().numpy()
        return result

    @computing
    def states(self, rows: TokenIds) -> FloatMatrix:
        """The encoder states [B, S, D] of rows of ids with `</s>`; those of shorter ones padded."""
        with self.evaluating(self.model.attended(max(map(len, rows))) - 1):
            states: FloatMatrix = self.model.encode(padded(rows, self.device)).cpu().numpy()
        return states

    @computing
    def vectors(self, texts: TokenIds) -> FloatMatrix:
        longest = max(map(len, texts), default=0)
        with self.evaluating(self.model.attended(longest + 1) - 1):
            return self.mean_states(self.model.encode, texts, max(1, longest))

    @computing
    def attribution(self, text: Sequence[int], chosen: int | None) -> list[float]:
        """How much each token adds to the score of a class (None: the most probable), less that of the others.
        Gradient × input for the encoder; the score of an n-gram is shared by its tokens."""
        row = padded([[*text, EOS]], self.device)
        seen: list[Tensor] = []

        def record(_module: nn.Module, _inputs: Any, vectors: Tensor) -> Tensor:
            seen.append(vectors.detach().requires_grad_())
            return seen[0]

        with self.evaluating(self.model.attended(row.shape[1]) - 1):
            pass  # grows the table of positions outside inference mode
        hook = self.model.embed.register_forward_hook(record)
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
        found = (vectors.grad * vectors).detach().flatten(0, 1).sum(-1)[: row.shape[1]]  # windows in their order
        for part in self.model.ngrams:
            assert isinstance(part, NgramScores)
            found = found + part.attribution(row, chosen)
        result: list[float] = found[: len(text)].tolist()
        return result
