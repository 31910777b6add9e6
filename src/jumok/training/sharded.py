"""Sharded training (FSDP2), for a model that is too large for the memory of one process. Each process holds a
part of every weight, gradient and Adam moment; the weights of a layer are gathered only while it is computed.
Checkpoints hold full tensors: a training may continue with any number of processes, sharded or not."""

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from jumok.model.layers import DecoderLayer, EncoderLayer
from jumok.training.checkpoint_parts import Rows
from jumok.training.distributed import MultiProcess


class _Loss(nn.Module):
    """A loss as a module: FSDP gathers the weights before its forward pass and frees them after it."""

    def __init__(self, model: nn.Module, loss: Callable[[Any], Tensor]) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch: Any) -> Tensor:
        return self.loss(batch)


class Sharded(MultiProcess):
    """Like `MultiProcess`, but the processes share one model."""

    sharded = True

    def shard(
        self, model: nn.Module, loss: Callable[[Any], Tensor], product: torch.dtype = torch.float32
    ) -> Callable[[Any], Tensor]:
        """Keep only this process's part of every trained weight. Returns the loss function to use from then on.
        The weights of layers are sent in the number format of matrix products; gradients are summed in float32."""
        # A view matters only to code that changes it in place, which no layer does.
        warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
        wrapped = _Loss(model, loss)
        # Weights that are not trained have neither gradient nor moments: every process holds them in full.
        fixed = {parameter for parameter in model.parameters() if not parameter.requires_grad}
        mesh = init_device_mesh(self.device.type, (self.size,))
        policies: dict[nn.Module, MixedPrecisionPolicy] = {}
        if product != torch.float32:
            # Autocast converts the inputs. Norms and what the loss uses are computed in float32.
            policy = MixedPrecisionPolicy(param_dtype=product, reduce_dtype=torch.float32, cast_forward_inputs=False)
            for unit in _units(model):
                policies |= {norm: MixedPrecisionPolicy() for norm in unit.modules() if isinstance(norm, nn.LayerNorm)}
                policies[unit] = policy
        for module in [*(policies or _units(model)), wrapped]:
            mixed = policies.get(module, MixedPrecisionPolicy())
            fully_shard(module, mesh=mesh, mp_policy=mixed, ignored_params=fixed)
            assert isinstance(module, FSDPModule)
            module.set_gradient_divide_factor(1.0)  # the sum of the gradients, not their mean
            module.set_force_sum_reduction_for_comms(True)
        return wrapped

    def use_parameters(self, parameters: Sequence[Tensor]) -> None:
        """No-op: FSDP sums the gradients itself, in the backward pass."""

    def unsharded(self) -> MultiProcess:
        """The same processes, each with a full model, for one that is small."""
        return MultiProcess(self.rank, self.size, self.device)

    def full_tensor(self, tensor: Tensor) -> Tensor:
        """The whole of a sharded tensor. A collective."""
        return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor

    def full_tensors(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """See `ProcessGroup`. Every process sends as many rows of a tensor, the last of them may be empty."""
        held = [tensor.to_local() for tensor in tensors if isinstance(tensor, DTensor)]
        assert len(held) == len(tensors), "every tensor is sharded"
        rows = [-(-len(tensor) // self.size) for tensor in tensors]
        sent = [
            torch.cat([part, part.new_zeros(count - len(part), *part.shape[1:])])
            for part, count in zip(held, rows, strict=True)
        ]
        parts = self._all_gather(torch.cat([part.flatten() for part in sent]))
        pieces = zip(*(torch.split(part, [each.numel() for each in sent]) for part in parts), strict=True)
        return [
            torch.cat(each).view(-1, *tensor.shape[1:])[: len(tensor)].to(tensor.device)
            for each, tensor in zip(pieces, tensors, strict=True)
        ]

    def clip_grad_norm(self, parameters: Sequence[Tensor], max_norm: float) -> Tensor:
        """Clip the gradients by the norm over the parts of all processes."""
        norm = nn.utils.clip_grad_norm_(parameters, max_norm)
        return self.full_tensor(norm)

    def all_finite(self, tensors: Sequence[Tensor]) -> bool:
        """Whether no number in this process's parts of the tensors is NaN or infinite."""
        return super().all_finite([each.to_local() if isinstance(each, DTensor) else each for each in tensors])

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The full tensors on rank 0, nothing elsewhere. A collective: all processes must call it."""
        found = {}
        for name, tensor in tensors.items():
            full = self.full_tensor(tensor)
            if self.rank == 0:
                found[name] = full
        return found

    def rows_to_read(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Rows:
        """Which rows of the tensors of a checkpoint this process holds; None: all of them."""
        parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
        held = {("model", name): tensor for name, tensor in model.state_dict().items()}
        held |= {("optimizer", f"optimizer.state.{index}"): each for index, each in enumerate(parameters)}

        def rows(group: str, name: str, shape: Sequence[int]) -> slice | None:
            like = held.get((group, name if group == "model" else name.rpartition(".")[0]))
            if not isinstance(like, DTensor) or tuple(shape) != like.shape:
                return None
            most = -(-shape[0] // self.size)
            start = min(self.rank * most, shape[0])
            return slice(start, start + len(like.to_local()))

        return rows

    def with_rows(self, rows: Tensor, like: Tensor) -> Tensor:
        """The tensor, sharded as `like` is, of which this process has read these rows; another shape is left alone."""
        if not isinstance(like, DTensor) or rows.shape != like.to_local().shape:
            return rows
        shape, stride = like.shape, like.stride()
        return DTensor.from_local(rows, like.device_mesh, like.placements, shape=shape, stride=stride)

    def local_part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """The part of a full tensor that this process holds, sharded as `like` is; another shape is left alone."""
        if not isinstance(like, DTensor) or tensor.shape != like.shape:
            return tensor
        return distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)


def _units(model: nn.Module) -> Iterator[nn.Module]:
    """The modules whose weights are gathered at a time. Each must be used through its own `forward` only."""
    for module in model.modules():
        if isinstance(module, EncoderLayer) or (isinstance(module, DecoderLayer) and not module.cross):
            yield module
        elif isinstance(module, DecoderLayer):
            yield module.feed_forward  # its cross-attention is also used outside of the layer's forward pass
