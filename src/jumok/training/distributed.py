"""Data-parallel training: every process computes the gradients of its share of a batch, and all make the same update.

A process knows its rank from the environment (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), as torchrun sets it.
Weights are never sent, except in sharded.py: all processes start with the same ones and sum their gradients.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from jumok.errors import ConfigError, OtherProcessError, TrainingError
from jumok.model.devices import CPU
from jumok.training.checkpoint_parts import Rows
from jumok.training.gradient_sums import GradientSums, start_sum

JOIN_TIMEOUT = timedelta(minutes=5)  # for all processes to start: machines need not start at the same moment
COLLECTIVE_TIMEOUT = timedelta(hours=6)  # from then on: the others wait while rank 0 validates
# Rank 0 waits only for the others' part of a step. gloo may miss that a process has ended just when it sends to it.
RANK_0_TIMEOUT = timedelta(minutes=30)
CARD_BACKENDS = {"cuda": "nccl", "xpu": "xccl"}  # how cards send to each other; others send by way of the host
RESTART_COUNT = "TORCHELASTIC_RESTART_COUNT"  # set by torchrun: how often it has started the same command again


class ProcessGroup:
    """The processes of one training, seen from one of them. This is a group of one: nothing is sent. Rank 0 validates,
    saves and reports. If `sharded` (FSDP), each holds a part of every weight; all must compute losses equally often."""

    rank, size, sharded = 0, 1, False

    def shard(
        self, model: nn.Module, loss: Callable[[Any], Tensor], product: torch.dtype = torch.float32
    ) -> Callable[[Any], Tensor]:
        """Keep only this process's part of the model, if sharded. Returns the loss function to use from then on.
        `product` is the number format of matrix products."""
        return loss

    def unsharded(self) -> "ProcessGroup":
        """The same processes, each with a full model, for one that is small."""
        return self

    def gather(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The full tensors of the model or its optimizer on rank 0. A collective: all processes must call it."""
        return dict(tensors)

    def rows_to_read(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Rows | None:
        """Which rows of the tensors of a checkpoint this process holds; None: all of them."""
        return None

    def with_rows(self, rows: Tensor, like: Tensor) -> Tensor:
        """The tensor, sharded as `like` is, of which this process has read these rows (see `rows_to_read`)."""
        return rows

    def local_part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """The part of a full tensor that this process holds, sharded as `like` is."""
        return tensor

    def full_tensors(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """The wholes of tensors with rows, of which this process may hold parts only. A collective, one for all."""
        return tensors

    def compute_shared(self, compute: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """`compute(rows)`, which works on each row alone and keeps its shape: each process computes its share of the
        rows and sends it to the others."""
        return compute(rows)

    def clip_grad_norm(self, parameters: Sequence[Tensor], max_norm: float) -> Tensor:
        """Clip the gradients to a total norm of `max_norm`; returns the norm before."""
        return nn.utils.clip_grad_norm_(parameters, max_norm)

    def all_finite(self, tensors: Sequence[Tensor]) -> bool:
        """Whether no number in this process's parts of the tensors is NaN or infinite."""
        extremes = [value for tensor in tensors if tensor.numel() for value in torch.aminmax(tensor.detach())]
        devices = {value.device for value in extremes}
        alike = (torch.stack([value for value in extremes if value.device == device]) for device in devices)
        return all(bool(values.isfinite().all()) for values in alike)

    def start_alike(self, model: nn.Module) -> None:
        """Give the model of every process the weights of rank 0: what was fitted, each has computed for itself, and
        other hardware may round otherwise."""

    def use_parameters(self, parameters: Sequence[Tensor]) -> None:
        """Sum the gradients of these parameters from now on."""

    def before_last_backward(self) -> None:
        """To be called before the last backward pass of an update: while it runs, gradients may be sent already."""

    def send_gradients(self) -> None:
        """Send the gradients that were not sent yet. All processes must call it before they send anything else."""

    def sum_gradients(self, loss: Tensor) -> None:
        """Replace gradients and loss by their sums over all processes, the same bits everywhere."""

    def sum_numbers(self, numbers: Sequence[float]) -> list[float]:
        """The sums of some numbers over all processes, the same bits everywhere. They never go through a card."""
        return list(numbers)

    def broadcast(self, value: Any) -> Any:
        """The value that rank 0 passes; anything JSON can hold."""
        return value

    def all_gather(self, value: Any) -> list[Any]:
        """The values that all processes pass, in the order of their ranks; anything JSON can hold."""
        return [value]

    def barrier(self) -> None:
        """Wait until all processes have come here."""


SINGLE_PROCESS = ProcessGroup()


class MultiProcess(ProcessGroup):
    """Several processes, connected by torch.distributed. Gradients are summed on the cards, where these have a way to
    do it (NCCL); everything else is sent by gloo, and waits for no card."""

    def __init__(self, rank: int, size: int, device: torch.device = CPU) -> None:
        self.rank, self.size, self.device = rank, size, device
        self.gradients = GradientSums(())

    def use_parameters(self, parameters: Sequence[Tensor]) -> None:
        """Sum the gradients of these parameters from now on."""
        self.gradients = GradientSums(parameters, by_host=self._sends_by_host)

    def before_last_backward(self) -> None:
        """To be called before the last backward pass of an update: while it runs, gradients may be sent already."""
        self.gradients.before_last_backward()

    def send_gradients(self) -> None:
        """Send the gradients that were not sent yet. All processes must call it before they send anything else."""
        self.gradients.send_rest()

    def sum_gradients(self, loss: Tensor) -> None:
        """Replace gradients and loss by their sums over all processes, the same bits everywhere."""
        wait_for_loss = start_sum(loss, by_host=self._sends_by_host)
        self.gradients.finish()
        wait_for_loss()

    @property
    def _sends_by_host(self) -> bool:
        """Whether tensors of this device are copied to the host to be sent: gloo knows no cards."""
        return self.device.type not in ("cpu", *CARD_BACKENDS)

    def compute_shared(self, compute: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
        """See `ProcessGroup`. Shares are of one size, so the last may hold rows twice."""
        share = -(-len(rows) // self.size)
        start = min(self.rank * share, len(rows) - share)
        own = compute(rows[start : start + share]).contiguous()
        whole = torch.empty_like(rows)
        for rank, part in enumerate(self._all_gather(own)):
            first = min(rank * share, len(rows) - share)
            whole[first : first + share] = part
        return whole

    def _all_gather(self, own: Tensor) -> list[Tensor]:
        """The tensors of all processes, which have one shape; on the host, if they are sent from there."""
        own = own.cpu() if self._sends_by_host else own
        parts = [torch.empty_like(own) for _ in range(self.size)]
        dist.all_gather(parts, own)
        return parts

    def start_alike(self, model: nn.Module) -> None:
        """Give the model of every process the weights of rank 0: what was fitted, each has computed for itself, and
        other hardware may round otherwise."""
        for tensor in model.state_dict().values():
            sent = tensor.cpu().contiguous()
            dist.broadcast(sent, 0)
            tensor.copy_(sent)

    def sum_numbers(self, numbers: Sequence[float]) -> list[float]:
        """The sums of some numbers over all processes, the same bits everywhere."""
        sums = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(sums)
        return [float(number) for number in sums]

    def broadcast(self, value: Any) -> Any:
        """The value that rank 0 passes; anything JSON can hold."""
        return self._broadcast(value, 0)

    def all_gather(self, value: Any) -> list[Any]:
        """The values that all processes pass, in the order of their ranks; anything JSON can hold."""
        return [self._broadcast(value, rank) for rank in range(self.size)]

    def _broadcast(self, value: Any, source: int) -> Any:
        """As JSON: nothing that comes over the network is ever executed."""
        data = json.dumps(value).encode() if self.rank == source else b""
        length = torch.tensor([len(data)])
        dist.broadcast(length, source)
        content = torch.zeros(int(length), dtype=torch.uint8)
        if self.rank == source:
            content.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        dist.broadcast(content, source)
        return json.loads(bytes(content.tolist()))

    def barrier(self) -> None:
        """Wait until all processes have come here."""
        self.sum_numbers([0.0])  # dist.barrier would go through the cards


@contextmanager
def join_process_group(
    *, shard: bool = False, device: torch.device = CPU, precision: str = "float32"
) -> Iterator[ProcessGroup]:
    """The group this process belongs to, by its environment; left at the end. `device` is where it will compute, and
    `precision` the number format of its matrix products."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size <= 1:
        if shard:
            raise ConfigError(
                "`shard=True` is for several processes, and this is one. Start them with torchrun, or on the command "
                "line with `processes=N`."
            )
        yield SINGLE_PROCESS
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(f"WORLD_SIZE is {size}, but {', '.join(missing)} is not set. Start it with torchrun.")
    rank = int(os.environ["RANK"])
    try:
        _connect(rank, size, device)
        group = _multi_process(rank, size, shard, device)
        _require_same_hardware(group.all_gather([device.type, precision]))
        yield group
    except RuntimeError as error:
        if not (isinstance(error, dist.DistError) or "gloo" in str(error)):
            raise
        raise OtherProcessError(
            f"Another process of this training has ended{_reason(error)}. The same command continues from the last "
            "checkpoint."
        ) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _reason(error: RuntimeError) -> str:
    """What gloo says, in parentheses, without the position in its source code and its general advice."""
    found = re.search(r"gloo\S*:\d+\] (.+?)(?:\. |$)", str(error))
    return f" ({found[1]})" if found else ""


def _connect(rank: int, size: int, device: torch.device) -> None:
    backend = "gloo"
    if device.type in CARD_BACKENDS:
        backend = f"cpu:gloo,{device.type}:{CARD_BACKENDS[device.type]}"
        torch.accelerator.set_device_index(device)
    try:
        dist.init_process_group(backend, store=_rendezvous_store(), rank=rank, world_size=size, timeout=JOIN_TIMEOUT)
    except RuntimeError as error:
        raise TrainingError(
            f"The {size} processes of this training could not connect ({error}). Look how the others ended, "
            "and start all of them again."
        ) from error
    dist.distributed_c10d._set_pg_timeout(RANK_0_TIMEOUT if rank == 0 else COLLECTIVE_TIMEOUT)


def _rendezvous_store() -> Any:
    """Where the processes find each other's addresses. After a restart torchrun offers the same store with old
    addresses. On one machine all know which attempt this is; on several they may not: see docs/scaling.md."""
    store, _, _ = next(rendezvous("env://", timeout=JOIN_TIMEOUT))
    on_one_machine = os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]
    attempt = os.environ.get(RESTART_COUNT, "0") if on_one_machine else "0"
    return dist.PrefixStore(f"jumok-{attempt}", store)  # type: ignore[attr-defined]


def _require_same_hardware(found: Sequence[Sequence[str]]) -> None:
    """Refuse processes that would not compute the same bits: each has a kind of device and a number format."""
    for name, values in zip(("device", "precision"), zip(*found, strict=True), strict=True):
        if len(set(values)) > 1:
            described = ", ".join(f"process {rank}: {value}" for rank, value in enumerate(values))
            raise ConfigError(
                f"The processes of this training have different {name}s ({described}). Choose one with `{name}=`."
            )


def _multi_process(rank: int, size: int, shard: bool, device: torch.device) -> ProcessGroup:
    if not shard:
        return MultiProcess(rank, size, device)
    from jumok.training.sharded import Sharded  # here, because it takes a second to import

    return Sharded(rank, size, device)
