"""Gradients summed over all processes while the backward pass still computes others, as PyTorch's DDP does.

A backward pass completes the gradients of the last layers first. They are collected in buckets, and each bucket is
sent as soon as it is full. Every process fills and sends the same buckets in the same order.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

BUCKET_BYTES = 8 << 20  # fewer, larger messages cost less; smaller ones can be sent earlier
_ALIGNMENT = 16  # numbers: gradients begin where PyTorch would allocate them, because rounding may depend on it


def start_sum(tensor: Tensor, *, by_host: bool) -> Callable[[], object]:
    """Begin to replace a tensor by its sum over all processes; returns what waits for it."""
    if not by_host:
        sent: dist.Work = dist.all_reduce(tensor, async_op=True)
        return sent.wait
    message = tensor.cpu()
    dist.all_reduce(message)
    tensor.copy_(message)
    return lambda: None


class _Bucket:
    """Gradients that are sent as one message, in one buffer."""

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        sizes = [-(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT for parameter in parameters]
        self.buffer = parameters[0].new_zeros(sum(sizes))
        parts = torch.split(self.buffer, sizes)
        self.parts = {
            parameter: part[: parameter.numel()].view_as(parameter)
            for parameter, part in zip(parameters, parts, strict=True)
        }
        self.missing = set(parameters)
        self.wait: Callable[[], object] | None = None  # for the sums, if it was sent

    def add(self, parameter: Tensor) -> None:
        """Copy the gradient into the buffer, which holds it from now on. No gradient counts as zeros."""
        if parameter.grad is None:
            self.parts[parameter].zero_()
        else:
            self.parts[parameter].copy_(parameter.grad)
        parameter.grad = self.parts[parameter]
        self.missing.discard(parameter)

    def finish(self) -> None:
        """Wait for the sums, and make them the gradients."""
        assert self.wait is not None
        self.wait()
        self.wait, self.missing = None, set(self.parts)
        for parameter, part in self.parts.items():
            parameter.grad = part


class GradientSums:
    """Sums the gradients of some parameters over all processes. If they are sent `by_host`, that is done after the
    backward pass: the host would have to wait for the card."""

    def __init__(
        self, parameters: Sequence[Tensor], bucket_bytes: float = BUCKET_BYTES, *, by_host: bool = False
    ) -> None:
        self._by_host = by_host
        size = math.inf if by_host else bucket_bytes
        self._buckets = [_Bucket(group) for group in _grouped(reversed(parameters), size)]
        self._bucket_of = {parameter: bucket for bucket in self._buckets for parameter in bucket.parts}
        self._next = 0  # the first bucket that was not sent
        self._is_last = False
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._on_gradient)  # type: ignore[no-untyped-call]

    def before_last_backward(self) -> None:
        """From now on a gradient that is computed is complete. To be called before the last backward pass of an update;
        again, if that has failed and is repeated: buckets that were sent hold the same sums."""
        self._is_last = not self._by_host
        for bucket in self._buckets[self._next :]:
            bucket.missing = set(bucket.parts)

    def send_rest(self) -> None:
        """Send what was not sent during the backward pass. All processes must call this before they send anything else:
        some may have had no batch, and no backward pass."""
        self._is_last = False
        for bucket in self._buckets[self._next :]:
            for parameter in list(bucket.missing):
                bucket.add(parameter)
        self._send_full()

    def finish(self) -> None:
        """Wait for all sums. From now on they are the gradients of the parameters."""
        for bucket in self._buckets:
            bucket.finish()
        self._next = 0

    def _on_gradient(self, parameter: Tensor) -> None:
        bucket = self._bucket_of[parameter]
        if self._is_last and bucket.wait is None:
            bucket.add(parameter)
            self._send_full()

    def _send_full(self) -> None:
        """Always in the same order, whichever is full first."""
        while self._next < len(self._buckets) and not self._buckets[self._next].missing:
            bucket = self._buckets[self._next]
            bucket.wait = start_sum(bucket.buffer, by_host=self._by_host)
            self._next += 1


def _grouped(parameters: Iterable[Tensor], bucket_bytes: float) -> Iterator[list[Tensor]]:
    """Neighbours, at least one, of at most so many bytes and of one data type."""
    group: list[Tensor] = []
    for parameter in parameters:
        too_large = sum(each.nbytes for each in [*group, parameter]) > bucket_bytes
        if group and (too_large or parameter.dtype != group[0].dtype):
            yield group
            group = []
        group.append(parameter)
    if group:
        yield group
