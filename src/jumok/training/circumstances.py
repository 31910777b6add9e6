"""What the last bits of a result depend on, beside data and settings."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor


def versions() -> dict[str, str]:
    """Of what takes part in the computing."""
    return {name: version(name) for name in ("jumok", "torch", "sentencepiece", "numpy")}


def circumstances(weight: Tensor, processes: int) -> dict[str, Any]:
    """Kept in every checkpoint; `weight` is one of those that are trained."""
    return {
        **versions(),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "threads": torch.get_num_threads(),
        "processes": processes,
        "device": weight.device.type,
        "dtype": str(weight.dtype),
    }
