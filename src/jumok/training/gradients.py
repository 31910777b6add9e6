"""Gradients of a sum over batches, whatever fits into memory: a batch that does not is cut, and the sum is the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from jumok.errors import TrainingError
from jumok.training.progress import TrainingBatch


class Gradients:
    """Fills the gradients that an optimizer will use. `told` is called with the number of parts when it grows."""

    def __init__(
        self,
        loss: Callable[[Any], Tensor],
        optimizer: torch.optim.Optimizer,
        told: Callable[[int], None] = lambda _: None,
        *,
        may_cut: bool = True,
    ) -> None:
        self.loss, self.optimizer, self.told, self.may_cut = loss, optimizer, told, may_cut
        self.pieces = 1  # into how many parts a batch is cut because it did not fit into memory

    def fill(self, batches: Sequence[TrainingBatch], before: Callable[[int], None] = lambda _: None) -> float:
        """The summed loss over all batches. `before` is called with the number of each batch, whenever it begins."""
        while True:
            self.optimizer.zero_grad()
            try:
                return sum(self._add(batch, number, before) for number, batch in enumerate(batches))
            except (RuntimeError, MemoryError) as error:
                if not _is_out_of_memory(error):
                    raise
                self._cut(batches, error)

    def _add(self, batch: TrainingBatch, number: int, before: Callable[[int], None]) -> float:
        before(number)
        total = 0.0
        for part in self._parts(batch):
            loss = self.loss(part)
            loss.backward()  # type: ignore[no-untyped-call]
            total += float(loss.detach())
        return total

    def _cut(self, batches: Sequence[TrainingBatch], error: BaseException) -> None:
        """Parts half as large from now on."""
        if not self.may_cut:  # processes that share a model must compute equally often, whoever ran out of memory
            raise TrainingError(
                "A batch does not fit into memory. Take a smaller batch.tokens, or more processes; what was saved is "
                "intact."
            ) from error
        parts = [part for batch in batches for part in self._parts(batch)]
        if not any(part.halves() for part in parts):
            largest = max(parts, key=lambda part: part.tokens)
            raise TrainingError(
                f"Not even one example fits into memory: {largest.describe()}. Take a smaller preset, leave such "
                "examples out, or free some memory; what was saved is intact."
            ) from error
        self.pieces *= 2
        self.told(self.pieces)

    def _parts(self, batch: TrainingBatch) -> list[TrainingBatch]:
        parts = [batch]
        for _ in range(self.pieces.bit_length() - 1):
            parts = [half for part in parts for half in (part.halves() or (part,))]
        return parts


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
