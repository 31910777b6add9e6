"""Dropout with cheap random numbers on a CPU.

PyTorch draws them one by one on a single thread, a fifth of the training time of a small model. Here 16 random bits
decide each element (the rate is met to 1/131072), four elements to one draw of a fast generator. Each call takes its
seed from PyTorch's generator, so `torch.manual_seed` makes it reproducible, and there is no other state to save.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from jumok.errors import ConfigError

_LEVELS = 1 << 16


def keep_mask(x: Float[Tensor, "..."], rate: float) -> Float[Tensor, "..."]:
    """Shaped like `x`: 0 with probability `rate`, else 1 / (1 - rate), which keeps the mean."""
    seed = int(torch.randint(2**63 - 1, (), device="cpu").item())
    draws = np.random.SFC64(seed).random_raw(-(-x.numel() // 4))
    bits = torch.from_numpy(draws.view(np.int16))[: x.numel()].view(x.shape)
    dropped = min(round(rate * _LEVELS), _LEVELS - 1)  # something stays, however close the rate is to 1
    mask = torch.empty(x.shape, dtype=x.dtype, device="cpu")
    torch.ge(bits, dropped - _LEVELS // 2, out=mask)  # straight to floats: a boolean in between would double the time
    return mask.mul_(_LEVELS / (_LEVELS - dropped))


class Dropout(nn.Module):
    """Zeroes each element with probability `rate` while training and scales the rest, so that the mean stays."""

    def __init__(self, rate: float) -> None:
        super().__init__()
        if not 0 <= rate < 1:
            raise ConfigError(f"dropout={rate} is not a rate. It must be at least 0 and below 1.")
        self.rate = rate

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        if not self.training or self.rate == 0:
            return x
        if x.device.type != "cpu":
            return nn.functional.dropout(x, self.rate)
        return x * keep_mask(x, self.rate)

    def extra_repr(self) -> str:
        return f"{self.rate}"
