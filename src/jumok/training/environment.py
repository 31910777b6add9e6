"""Software and hardware that the last bits of a result depend on."""

import platform
from functools import cache
from importlib import metadata
from typing import Any

import torch

from jumok.system import usable_cores
from jumok.training.precision import Precision

version = cache(metadata.version)  # of an installed package: to read it takes as long as some training steps


def limit_threads() -> None:
    """Let PyTorch use no more threads than this process has cores; it does not know a container's CPU quota."""
    torch.set_num_threads(min(torch.get_num_threads(), usable_cores()))


def versions() -> dict[str, str]:
    """Versions of the packages that compute something."""
    return {name: version(name) for name in ("jumok", "torch", "sentencepiece", "numpy")}


def environment(precision: Precision, processes: int) -> dict[str, Any]:
    """What every checkpoint records; a change is reported at resume."""
    return {
        **versions(),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "threads": torch.get_num_threads(),
        "processes": processes,
        "device": precision.device.type,
        "dtype": str(precision.dtype),
    }
