"""Updates of the weights from the summed gradients, and what is known of each afterwards: its loss and gradient norm.

On a card these stay there until somebody needs them, because the host would wait for everything computed before. So
that no update is made from numbers that are not finite, the card skips it by itself; the error comes when it is read.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from jumok.errors import TrainingError
from jumok.model.devices import explain_lack_of_memory
from jumok.training.distributed import ProcessGroup
from jumok.training.precision import LEAST_SCALE, Precision
from jumok.training.progress import TrainingBatch

SMALLER = "Take a smaller preset."


@dataclass(frozen=True)
class _Unread:
    """An update whose results are still on the device."""

    step: int
    tokens: int
    batches: Sequence[TrainingBatch]  # of this process
    results: Tensor  # [4] loss of all processes, gradient norm, loss of this process, loss scale


class Updates:
    """Makes the updates of one training."""

    def __init__(
        self,
        parameters: Sequence[Tensor],
        optimizer: torch.optim.Optimizer,
        *,
        clip: float,
        precision: Precision,
        group: ProcessGroup,
    ) -> None:
        self.parameters, self.optimizer = parameters, optimizer
        self.clip, self.precision, self.group = clip, precision, group
        self._unread: list[_Unread] = []

    def make(self, step: int, rate: float, loss: Tensor, tokens: int, batches: Sequence[TrainingBatch]) -> None:
        """Update the weights: step number `step`, of the mean loss over `tokens` targets of all processes.
        `loss` is the sum over the batches of this process, whose gradients are there already."""
        scale = self.precision.scale
        own_loss = loss.clone()
        self.group.sum_gradients(loss)
        gradients = [_gradient(parameter) for parameter in self.parameters]
        torch._foreach_mul_(gradients, 1 / tokens)
        if scale is not None:
            torch._foreach_mul_(gradients, scale.factor.reciprocal())
        norm = self.group.clip_grad_norm(self.parameters, self.clip)
        factor = scale.factor if scale is not None else torch.ones_like(loss)
        results = torch.stack([value.to(loss.dtype) for value in (loss, norm, own_loss, factor)])
        self._unread.append(_Unread(step, tokens, batches, results))
        if scale is None and self.precision.device.type == "cpu":
            self._require_finite(self._unread[-1], results.tolist())  # before anything is changed
        else:
            self._skip_unless_finite(loss + norm)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with explain_lack_of_memory(self.precision.device, "The optimizer's state", lambda: SMALLER):
            self.optimizer.step()

    def _skip_unless_finite(self, sum_of_results: Tensor) -> None:
        """Tell the optimizer, on the device, not to change anything if the results are NaN or infinite."""
        skipped = ~sum_of_results.isfinite()
        self.optimizer.found_inf = skipped.float()  # type: ignore[attr-defined]
        if self.precision.scale is not None:
            self.precision.scale.update(skipped)

    def read(self) -> tuple[float, int]:
        """The sum of the loss and the number of targets since the last call. An error, in all processes alike, if one
        of these updates was not finite."""
        if not self._unread:
            return 0.0, 0
        unread, self._unread = self._unread, []
        results = torch.stack([update.results for update in unread]).tolist()  # one copy for all of them
        for update, row in zip(unread, results, strict=True):
            self._require_finite(update, row)
        # A gradient that overflowed in float16 was not used, but its loss may be known.
        counted = [
            (row[0], update.tokens) for update, row in zip(unread, results, strict=True) if math.isfinite(row[0])
        ]
        return math.fsum(loss for loss, _ in counted), sum(tokens for _, tokens in counted)

    def _require_finite(self, update: _Unread, results: Sequence[float]) -> None:
        """An error that names the batches, unless loss and norm are finite, or a smaller loss scale may help."""
        loss, norm, own_loss, scale = results
        if _is_finite(results) or (self.precision.scale is not None and scale > LEAST_SCALE):
            return
        own = [(math.isfinite(own_loss), batch.describe()) for batch in update.batches]
        everywhere = [each for process in self.group.all_gather(own) for each in process]
        suspects = [name for finite, name in everywhere if not finite]
        # If the losses are finite and only the gradient is not, it may have come from any of them.
        examples = "; ".join(suspects or [name for _, name in everywhere])
        raise TrainingError(
            f"The loss of step {update.step} is {loss / update.tokens}, its gradient norm {norm}: "
            f"no update was made. Batch: {examples}. Try a smaller optimizer.lr; the last checkpoint is intact."
        )


def _is_finite(results: Sequence[float]) -> bool:
    loss, norm, *_ = results
    return math.isfinite(loss) and math.isfinite(norm)


def _gradient(parameter: Tensor) -> Tensor:
    """Zeros where no batch needed the parameter."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
