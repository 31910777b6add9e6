"""Where a model computes: on the CPU, or on a card of any kind that PyTorch knows (CUDA, ROCm, MPS, XPU …).
Whoever reads a value from a card waits until it has computed everything before: that is done as rarely as possible."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
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
    if values.device == device:
        return values
    if device.type == "cuda" and values.device.type == "cpu":
        values = values.pin_memory()  # the card copies by itself only from memory that cannot be swapped out
    return values.to(device, non_blocking=True)


def seed_device(device: torch.device, seed: int) -> None:
    """Seed the generators that dropout draws from: that of the host, and that of the card."""
    # Not torch.manual_seed: for devices that are not there it notes where it was called from, which takes longer.
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        module: Any = torch.get_device_module(device)
        # `manual_seed` would seed the current card, which need not be this one.
        getattr(module, "manual_seed_all", module.manual_seed)(seed)


@contextmanager
def deterministic(device: torch.device) -> Iterator[None]:
    """Context in which a card computes the same bits every time, where PyTorch can; it warns of what cannot. A CPU does
    so anyway."""
    if device.type == "cpu":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by CUDA's products when they are first used
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    options: Any = torch.utils.deterministic
    filled, options.fill_uninitialized_memory = (
        options.fill_uninitialized_memory,
        False,
    )  # nothing here reads what it has not written
    torch._C._set_deterministic_algorithms(True, warn_only=True)  # the public function imports PyTorch's compiler
    try:
        yield
    finally:
        torch._C._set_deterministic_algorithms(before[0], warn_only=before[1])
        options.fill_uninitialized_memory = filled


@cache
def widest_float(device: torch.device) -> torch.dtype:
    """For sums of many numbers: float64, or float32 where the device does not know it, as MPS and some XPUs."""
    try:
        torch.ones(1, dtype=torch.float64, device=device).sum()
    except (TypeError, RuntimeError):
        return torch.float32
    return torch.float64


def free_memory(device: torch.device) -> tuple[int, int] | None:
    """Free bytes of a card, and all its bytes; None for a CPU, or a card that does not say."""
    if device.type == "cpu":
        return None
    module: Any = torch.get_device_module(device)
    if hasattr(module, "mem_get_info"):
        free, size = module.mem_get_info(device)
        return int(free), int(size)
    if hasattr(module, "recommended_max_memory"):  # MPS
        size = module.recommended_max_memory()
        return size - module.driver_allocated_memory(), size
    return None


def describe_memory(device: torch.device) -> str:
    """Such as "cuda:0 (free: 0.41 of 7.93 GB)"."""
    memory = free_memory(device)
    return str(device) if memory is None else f"{device} (free: {memory[0] / 1e9:.2f} of {memory[1] / 1e9:.2f} GB)"


def is_out_of_memory(error: BaseException) -> bool:
    """Whether it says that there is not enough memory, on whatever device."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and any(
        phrase in str(error) for phrase in ("can't allocate memory", "out of memory")
    )


@contextmanager
def explain_lack_of_memory(device: torch.device, what: str, advice: Callable[[], str]) -> Iterator[None]:
    """Context in which a lack of memory is an error that says what did not fit, what is there, and what to do."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise ConfigError(f"{what} does not fit into the memory of {describe_memory(device)}. {advice()}") from error
