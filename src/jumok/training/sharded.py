"""Several processes that share one model's weights, for a model too large for each of them (FSDP2).

Weights, gradients and Adam's moments lie in parts, one a process; the weights of a layer come together only while it
is computed. What is saved is whole: a training may go on with any number of processes, sharded or not.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from jumok.model.layers import DecoderLayer, EncoderLayer
from jumok.training.distributed import Together


class _Loss(nn.Module):
    """A loss as a module: what it computes with is brought together before it, and parted again after it."""

    def __init__(self, model: nn.Module, loss: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Any) -> Tensor:
        return self.loss(batch)


class Sharded(Together):
    """Like `Together`, but with one model among all."""

    sharded = True

    def shard(self, model: nn.Module, loss: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
        """Leaves each process a part of every weight that is learned; the loss must be computed by what is returned."""
        # That something is a view matters only to those who change it in place, which no layer does.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
        whole = _Loss(model, loss)
        # What is not learned has neither gradient nor moments: it stays whole, and may belong to another model too.
        fixed = {parameter for parameter in model.parameters() if not parameter.requires_grad}
        for module in [*_units(model), whole]:
            fully_shard(module, ignored_params=fixed)
            assert isinstance(module, FSDPModule)
            module.set_gradient_divide_factor(1.0)  # the sum of gradients, as everywhere; not their mean
            module.set_force_sum_reduction_for_comms(True)
        return whole

    def add_up(self, gradients: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """Gradients were added up on the way back through the model."""
        del gradients
        return super().add_up((), numbers)

    def clip(self, parameters: Sequence[Tensor], most: float) -> float:
        """By the length of all parts together."""
        norm = nn.utils.clip_grad_norm_(parameters, most)
        return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Brought together from all processes, which must all ask; only the first keeps them."""
        found = {}
        for name, tensor in tensors.items():
            full = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
            if self.rank == 0:
                found[name] = full
        return found

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """What this process has of a whole tensor, parted as `like` is; a tensor of another shape stays whole."""
        if not isinstance(like, DTensor) or tensor.shape != like.shape:
            return tensor
        return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


def _units(model: nn.Module) -> Iterator[nn.Module]:
    """What is brought together at a time. It must be used through its own `forward` and in no other way."""
    for module in model.modules():
        if isinstance(module, EncoderLayer) or (isinstance(module, DecoderLayer) and not module.cross):
            yield module
        elif isinstance(module, DecoderLayer):
            yield module.feed_forward  # its attention also looks at the source, before the layer's turn comes
