"""Software and hardware that the last bits of a result depend on."""

import platform
from importlib.metadata import version
from typing import Any

import torch
from torch import Tensor


def versions() -> dict[str, str]:
    """Versions of the packages that compute something."""
    return {name: version(name) for name in ("jumok", "torch", "sentencepiece", "numpy")}


def environment(weight: Tensor, processes: int) -> dict[str, Any]:
    """What every checkpoint records; a change is reported at resume. `weight` is any trained parameter."""
    return {
        **versions(),
        "processor": f"{platform.machine()} {torch.backends.cpu.get_cpu_capability()}",
        "threads": torch.get_num_threads(),
        "processes": processes,
        "device": weight.device.type,
        "dtype": str(weight.dtype),
    }
