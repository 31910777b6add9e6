"""How the learning rate goes up and comes down: functions of the step alone, so a resumed run needs no memory of it."""

from __future__ import annotations

import math
from collections.abc import Callable

from jumok.errors import ConfigError, did_you_mean

Schedule = Callable[[int], float]
"""Step, counted from 1, to learning rate."""


def inverse_sqrt(peak: float, warmup: int, _total: int | None = None) -> Schedule:
    """The paper's: up in a straight line for `warmup` steps, then down with 1/√step. Has no end, so needs no total."""
    return lambda step: peak * min(step / warmup, math.sqrt(warmup / step))


def linear(peak: float, warmup: int, total: int | None = None) -> Schedule:
    """Up in a straight line, then down in one to zero after `total` steps: for a training of known length."""
    end = _known(total, warmup, "linear")
    return lambda step: peak * min(step / warmup, max(0.0, (end + 1 - step) / (end + 1 - warmup)))


def cosine(peak: float, warmup: int, total: int | None = None) -> Schedule:
    """Up in a straight line, then down along half a cosine to zero after `total` steps."""
    end = _known(total, warmup, "cosine")

    def rate(step: int) -> float:
        if step <= warmup:
            return peak * step / warmup
        return peak * 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / (end + 1 - warmup))))

    return rate


def constant(peak: float, warmup: int, _total: int | None = None) -> Schedule:
    """Up in a straight line, then level."""
    return lambda step: peak * min(step / warmup, 1.0)


SCHEDULES: dict[str, Callable[[float, int, int | None], Schedule]] = {
    "inverse_sqrt": inverse_sqrt,
    "linear": linear,
    "cosine": cosine,
    "constant": constant,
}


def paper_peak(d_model: int, warmup: int) -> float:
    """The largest rate of the paper's formula, d_model^-½ · warmup^-½, reached at the end of the warm-up."""
    return 1 / math.sqrt(d_model * warmup)


def make_schedule(name: str, *, peak: float, warmup: int, total: int | None) -> Schedule:
    """The schedule of that name."""
    if name not in SCHEDULES:
        raise ConfigError(f'Unknown schedule "{name}".{did_you_mean(name, SCHEDULES)}')
    if warmup < 1:
        raise ConfigError(f"schedule.warmup={warmup} must be at least 1 step.")
    if not (math.isfinite(peak) and peak > 0):
        raise ConfigError(f"optimizer.lr={peak} must be a positive number.")
    return SCHEDULES[name](peak, warmup, total)


def _known(total: int | None, warmup: int, name: str) -> int:
    if total is None:
        raise ConfigError(
            f'The schedule "{name}" must know how long the training is. Give --steps, --epochs or --minutes.'
        )
    if total < warmup:
        raise ConfigError(f"schedule.warmup={warmup} is longer than the whole training of {total} steps.")
    return total
