"""Accumulated gradients. A batch that does not fit into memory is split: the same sum, but for what parts draw anew."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from jumok.errors import TrainingError
from jumok.model.devices import describe_memory, is_out_of_memory
from jumok.training.precision import Precision
from jumok.training.progress import TrainingBatch


class Gradients:
    """Computes the gradients for an optimizer. `on_split` is called with the number of parts when it grows."""

    def __init__(
        self,
        loss: Callable[[Any], Tensor],
        optimizer: torch.optim.Optimizer,
        on_split: Callable[[int], None] = lambda _: None,
        *,
        may_split: bool = True,
        precision: Precision | None = None,
    ) -> None:
        self.loss, self.optimizer, self.on_split, self.may_split = loss, optimizer, on_split, may_split
        self.precision = precision or Precision()
        self.parts = 1  # into how many parts a batch is split, because it did not fit into memory

    def fill(
        self,
        batches: Sequence[TrainingBatch],
        before: Callable[[int], None] = lambda _: None,
        before_last: Callable[[], None] = lambda: None,
    ) -> Tensor:
        """Sum loss and gradients over all batches; returns the loss. `before` is called with each batch's index,
        `before_last` when only one forward and backward pass is left; both again, if a batch must be split.
        With a loss scale the gradients are that many times too large."""
        while True:
            self.optimizer.zero_grad()
            try:
                total = torch.zeros((), device=self.precision.device)
                for index, batch in enumerate(batches):
                    before(index)
                    *others, last = self.split(batch)
                    for part in others:
                        total = total + self._add(part)
                    if index == len(batches) - 1:
                        before_last()
                    total = total + self._add(last)
                return total
            except (RuntimeError, MemoryError) as error:
                if not is_out_of_memory(error):
                    raise
                self._split(batches, error)

    def _add(self, part: TrainingBatch) -> Tensor:
        with self.precision.computing():
            loss = self.loss(part)
        scale = self.precision.scale
        (loss if scale is None else loss * scale.factor).backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def _split(self, batches: Sequence[TrainingBatch], error: BaseException) -> None:
        """Halve the parts from now on."""
        if not self.may_split:  # sharded processes must compute equally often
            raise TrainingError(
                "A batch does not fit into memory. Take a smaller batch.tokens, or more processes; what was saved is "
                "intact."
            ) from error
        parts = [part for batch in batches for part in self.split(batch)]
        if not any(part.halves() for part in parts):
            largest = max(parts, key=lambda part: part.tokens)
            raise TrainingError(
                f"Not even one example fits into the memory of {describe_memory(self.precision.device)}: "
                f"{largest.describe()}. Take a smaller preset, leave such "
                "examples out, or free some memory; what was saved is intact."
            ) from error
        self.parts *= 2
        self.on_split(self.parts)

    def split(self, batch: TrainingBatch) -> list[TrainingBatch]:
        """The parts of a batch that fit into memory, as far as is known."""
        parts = [batch]
        for _ in range(self.parts.bit_length() - 1):
            parts = [half for part in parts for half in (part.halves() or (part,))]
        return parts
