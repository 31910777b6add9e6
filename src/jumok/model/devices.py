"""Where a model computes: on the CPU, or on a card of any kind that PyTorch knows (CUDA, ROCm, MPS, XPU …).
Whoever reads a value from a card waits until it has computed everything before: that is done as rarely as possible."""

from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import ConfigError

CPU = torch.device("cpu")


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name: "cpu", "cuda", "cuda:1", "mps", "xpu" …; "auto" is a card if there is one."""
    if name == "auto":
        return torch.accelerator.current_accelerator(check_available=True) or CPU
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f'device="{name}" is not the name of a device. {_present()}') from None
    if device.type == "cpu":
        return CPU
    count = _count(device.type)
    if not count:
        raise ConfigError(
            f'device="{name}" is not there, or this PyTorch was built without support for it. {_present()}'
        )
    if device.index is not None and device.index >= count:
        raise ConfigError(f'device="{name}" is not there: the last one is {device.type}:{count - 1}. {_present()}')
    return device


def cards_of(name: str) -> list[torch.device]:
    """The cards that a device name stands for: all of a kind, or the one whose number it gives; none for the CPU."""
    device = choose_device(name)
    if device.type == "cpu":
        return []
    numbers = range(_count(device.type)) if ":" not in name else [device.index]
    return [torch.device(device.type, number) for number in numbers]


def _count(kind: str) -> int:
    """How many devices of that kind there are."""
    module: Any = getattr(torch, kind, None)
    return module.device_count() if module is not None and module.is_available() else 0


def _present() -> str:
    card = torch.accelerator.current_accelerator(check_available=True)
    cards = [] if card is None else [f"{card.type}:{index}" for index in range(_count(card.type))]
    return f"Here are: {', '.join(['cpu', *cards])}."


def device_of(model: nn.Module) -> torch.device:
    """The device of the weights of a model."""
    return next(model.parameters()).device


def to_device(values: Tensor, device: torch.device) -> Tensor:
    """The same values on the device. The host does not wait for the copy."""
    if device.type == "cpu":
        return values
    if device.type == "cuda":
        values = values.pin_memory()  # the card copies by itself only from memory that cannot be swapped out
    return values.to(device, non_blocking=True)


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the generators that dropout draws from: that of the host, and that of the card."""
    # Not torch.manual_seed: for devices that are not there it notes where it was called from, which takes longer.
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        torch.get_device_module(device).manual_seed(seed)


def widest_float(device: torch.device) -> torch.dtype:
    """For sums of many numbers: float64, but where the device does not know it (MPS)."""
    return torch.float32 if device.type == "mps" else torch.float64
