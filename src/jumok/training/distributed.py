"""Many processes that train one model: each learns from its share of a batch, and all make the same update.

A process knows its place from the environment (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), as torchrun sets it, and
`--processes`. Weights are never sent: all begin with the same ones and add up their gradients. (With `--shard` they
are: see sharded.py.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.rendezvous import rendezvous

from jumok.errors import ConfigError, TrainingError

MEETING = timedelta(minutes=5)  # until all have come: machines need not start at the same moment
PATIENCE = timedelta(hours=6)  # from then on: the others wait while the first one validates
RESTART_COUNT = "TORCHELASTIC_RESTART_COUNT"  # set by torchrun: how often it has started the same command again


class World(Protocol):
    """The processes of one training, seen from one of them."""

    @property
    def rank(self) -> int:
        """Which one this is; 0 is the one that validates, saves and speaks."""

    @property
    def size(self) -> int:
        """How many there are."""

    @property
    def sharded(self) -> bool:
        """Whether each has only a part of every weight. Then all must compute a loss equally often."""

    def shard(self, model: nn.Module, loss: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
        """Leaves each process its part of the model, if that is wanted; the loss is computed by what is returned."""

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors of the model or its optimizer as one process would have them. All must ask; the first is answered."""

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """What this process has of such a tensor, if it is parted as `like` is."""

    def clip(self, parameters: Sequence[Tensor], most: float) -> float:
        """Shortens gradients that are longer than `most` together; returns how long they were."""

    def add_up(self, gradients: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """Adds up gradients, in place, and numbers over all processes; the sums are the same bits everywhere."""

    def from_first(self, value: Any) -> Any:
        """What the first process has here; anything JSON can hold."""

    def wait(self) -> None:
        """Returns when all processes have come here."""


class _Unsharded:
    """Every process has the whole model."""

    sharded = False

    def shard(self, model: nn.Module, loss: Callable[[Any], Tensor]) -> Callable[[Any], Tensor]:
        """Into one part."""
        del model
        return loss

    def whole(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """They are."""
        return dict(tensors)

    def part(self, tensor: Tensor, like: Tensor) -> Tensor:
        """All of it."""
        del like
        return tensor

    def clip(self, parameters: Sequence[Tensor], most: float) -> float:
        """Everywhere the same."""
        return float(nn.utils.clip_grad_norm_(parameters, most))


class Alone(_Unsharded):
    """One process: nobody to wait for."""

    rank, size = 0, 1

    def add_up(self, gradients: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """They are the sums already."""
        del gradients
        return list(numbers)

    def from_first(self, value: Any) -> Any:
        """This is the first."""
        return value

    def wait(self) -> None:
        """At once."""


ALONE = Alone()


class Together(_Unsharded):
    """Several processes, connected by torch.distributed (gloo)."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def add_up(self, gradients: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """One message for all gradients: many small ones would cost more than they carry."""
        if gradients:
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            dist.all_reduce(flat)
            for gradient, part in zip(gradients, torch.split(flat, [each.numel() for each in gradients]), strict=True):
                gradient.copy_(part.view_as(gradient))
        sums = torch.tensor(numbers, dtype=torch.float64)
        dist.all_reduce(sums)
        return [float(number) for number in sums]

    def from_first(self, value: Any) -> Any:
        """As JSON: nothing that comes over the network is ever executed."""
        data = json.dumps(value).encode() if self.rank == 0 else b""
        length = torch.tensor([len(data)])
        dist.broadcast(length, 0)
        content = torch.zeros(int(length), dtype=torch.uint8)
        if self.rank == 0:
            content.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        dist.broadcast(content, 0)
        return json.loads(bytes(content.tolist()))

    def wait(self) -> None:
        """A barrier."""
        dist.barrier()


@contextmanager
def join_world(*, shard: bool = False) -> Iterator[World]:
    """The world this process belongs to, by its environment."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size <= 1:
        if shard:
            raise ConfigError("--shard is for several processes, and this is one. Add --processes N, or use torchrun.")
        yield Alone()
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(f"WORLD_SIZE is {size}, but {', '.join(missing)} is not set. Start it with torchrun.")
    rank = int(os.environ["RANK"])
    try:
        _meet(rank, size)
        yield _world_of_many(rank, size, shard)
    except RuntimeError as error:
        if "gloo" not in str(error):
            raise
        raise TrainingError(
            f"Another process of this training has ended ({error}). The last checkpoint is intact; "
            "the same command goes on from there."
        ) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def _meet(rank: int, size: int) -> None:
    try:
        dist.init_process_group("gloo", store=_meeting_place(), rank=rank, world_size=size, timeout=MEETING)
    except RuntimeError as error:
        raise TrainingError(
            f"The {size} processes of this training have not found each other ({error}). See how the others ended, "
            "and start all of them again."
        ) from error
    dist.distributed_c10d._set_pg_timeout(PATIENCE)


def _meeting_place() -> Any:
    """Where the processes find each other's addresses.

    After a restart torchrun offers the same place again, with the addresses of those that are gone. On one machine all
    know which attempt this is; on several they need not agree, and docs/scaling.md says what torchrun must be told.
    """
    store, _, _ = next(rendezvous("env://", timeout=MEETING))
    on_one_machine = os.environ.get("LOCAL_WORLD_SIZE") == os.environ["WORLD_SIZE"]
    attempt = os.environ.get(RESTART_COUNT, "0") if on_one_machine else "0"
    return dist.PrefixStore(f"jumok-{attempt}", store)  # type: ignore[attr-defined]


def _world_of_many(rank: int, size: int, shard: bool) -> World:
    if not shard:
        return Together(rank, size)
    from jumok.training.sharded import Sharded  # here, because it takes a second to import

    return Sharded(rank, size)
