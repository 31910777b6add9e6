"""In which number format the forward and backward passes compute. Weights, gradients, moments and sums are float32."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import ConfigError, require_choice
from jumok.training.products import has_fast_bfloat16, products_in, use_bfloat16_products
from jumok.training.settings import PRECISIONS

FIRST_SCALE, LEAST_SCALE = 2.0**16, 2.0**-4
STEPS_TO_DOUBLE = 2000  # without an overflow


def choose_precision(name: str, device: torch.device, *, wide: bool = False) -> str:
    """The name of a number format; "auto" is bfloat16 on cards that are fast at it, and on a CPU with instructions for
    it if products are large enough to gain from them (`wide`), else float32."""
    require_choice("precision", name, ("auto", *PRECISIONS))
    if name == "auto":
        return "bfloat16" if _gains_from_bfloat16(device, wide) else "float32"
    if name == "bfloat16" and not _has_bfloat16(device):
        raise ConfigError(f'precision="bfloat16" is not supported by {device}. Use "float16" or "float32".')
    return name


def _gains_from_bfloat16(device: torch.device, wide: bool) -> bool:
    if device.type == "cpu":
        return wide and has_fast_bfloat16()
    return device.type != "mps" and _has_bfloat16(device)  # nobody has measured yet whether it is faster on MPS


def _has_bfloat16(device: torch.device) -> bool:
    """Whether a device computes in bfloat16; some cards only imitate it, slowly, and are not asked to."""
    if device.type == "cpu":
        return True
    if device.type == "mps":
        return bool(torch.backends.mps.is_macos_or_newer(14, 0))
    if device.type == "cuda":
        with torch.cuda.device(device):  # it asks the current card
            return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    module: Any = torch.get_device_module(device)
    return bool(getattr(module, "is_bf16_supported", lambda: False)())


class LossScale:
    """A factor that the loss is multiplied with before the backward pass, and gradients are divided by: float16 rounds
    small gradients to 0. After an overflow it is halved and the update skipped; after many steps without, doubled.
    It stays on the device: the host never waits for it."""

    def __init__(self, device: torch.device) -> None:
        self.factor = torch.full((), FIRST_SCALE, device=device)
        self.steps = torch.zeros((), device=device)  # since the last change

    def update(self, overflowed: Tensor) -> None:
        """Adapt the factor to the last step."""
        self.steps = torch.where(overflowed, 0.0, self.steps + 1)
        grown = self.steps >= STEPS_TO_DOUBLE
        self.factor = torch.where(overflowed, self.factor / 2, torch.where(grown, self.factor * 2, self.factor))
        self.steps = torch.where(grown, 0.0, self.steps)

    def to_state(self) -> list[float]:
        """For a checkpoint."""
        return [float(self.factor), float(self.steps)]

    def restore(self, state: list[float]) -> None:
        """Continue with the state of a checkpoint."""
        self.factor.fill_(state[0])
        self.steps.fill_(state[1])


class Precision:
    """The number format of a training. `scale` is None but for float16."""

    def __init__(self, name: str = "float32", device: torch.device | None = None) -> None:
        self.name, self.device = name, device or torch.device("cpu")
        self.scale = LossScale(self.device) if name == "float16" else None

    def prepare(self, model: nn.Module) -> None:
        """Get a new model ready for being trained in this format."""
        if self._rounds_products:
            use_bfloat16_products(model)

    def computing(self) -> AbstractContextManager[Any]:
        """Context of a forward pass: matrix products are computed in this format, sums and norms in float32."""
        if self.name == "float32":
            return nullcontext()
        if self._rounds_products:
            return products_in(self.dtype)
        return torch.autocast(self.device.type, self.dtype)

    @property
    def _rounds_products(self) -> bool:
        return self.device.type == "cpu" and self.name == "bfloat16"

    @property
    def dtype(self) -> torch.dtype:
        """The number format of matrix products."""
        dtype: torch.dtype = getattr(torch, self.name)
        return dtype
