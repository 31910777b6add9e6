"""Many processes that train one model: each learns from its share of a batch, and all make the same update.

A process knows its place from the environment (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), as torchrun sets it, and
`--processes`. Weights are never sent: all begin with the same ones and add up their gradients.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Protocol

import torch
import torch.distributed as dist
from torch import Tensor

from jumok.errors import ConfigError, TrainingError

PATIENCE = timedelta(hours=6)  # the others wait while the first one validates


class World(Protocol):
    """The processes of one training, seen from one of them."""

    @property
    def rank(self) -> int:
        """Which one this is; 0 is the one that validates, saves and speaks."""

    @property
    def size(self) -> int:
        """How many there are."""

    def add_up(self, gradients: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """Adds up gradients, in place, and numbers over all processes; the sums are the same bits everywhere."""

    def from_first(self, value: Any) -> Any:
        """What the first process has here; anything JSON can hold."""

    def wait(self) -> None:
        """Returns when all processes have come here."""


class Alone:
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


class Together:
    """Several processes, connected by torch.distributed (gloo)."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    def add_up(self, gradients: Sequence[Tensor], numbers: Sequence[float]) -> list[float]:
        """One message for all gradients: many small ones would cost more than they carry."""
        with _explained():
            flat = torch.cat([gradient.flatten() for gradient in gradients])
            dist.all_reduce(flat)
            for gradient, part in zip(gradients, torch.split(flat, [each.numel() for each in gradients]), strict=True):
                gradient.copy_(part.view_as(gradient))
            sums = torch.tensor(numbers, dtype=torch.float64)
            dist.all_reduce(sums)
        return [float(number) for number in sums]

    def from_first(self, value: Any) -> Any:
        """As JSON: nothing that comes over the network is ever executed."""
        with _explained():
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
        with _explained():
            dist.barrier()


@contextmanager
def join_world() -> Iterator[World]:
    """The world this process belongs to, by its environment."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size <= 1:
        yield Alone()
        return
    missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]
    if missing:
        raise ConfigError(f"WORLD_SIZE is {size}, but {', '.join(missing)} is not set. Start it with torchrun.")
    dist.init_process_group("gloo", timeout=PATIENCE)
    try:
        yield Together(dist.get_rank(), size)
    finally:
        dist.destroy_process_group()


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise TrainingError(
            f"Another process of this training has ended ({error}). The last checkpoint is intact; "
            "the same command goes on from there."
        ) from error
