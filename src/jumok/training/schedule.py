"""The learning rate: a warm-up, then a decay. A function of the step and of how much of the decay remains, no more."""

import math
from collections.abc import Callable

from jumok.errors import ConfigError, counted, did_you_mean
from jumok.training.length import Length

Schedule = Callable[[int], float]
"""Step, counted from 1, to learning rate."""

# Share of the peak rate after the warm-up, from the share of the decay that remains: 1 at the peak, 0 behind the end.
DECAYS: dict[str, Callable[[float], float]] = {
    "linear": lambda remaining: remaining,
    "cosine": lambda remaining: 0.5 * (1 + math.cos(math.pi * (1 - remaining))),
    "constant": lambda _remaining: 1.0,
}
SCHEDULES = (*DECAYS, "inverse_sqrt")


def make_schedule(name: str, *, peak: float, warmup: int, length: Length) -> Schedule:
    """The schedule of that name: linear warm-up to `peak` in `warmup` steps, then its decay over the rest of `length`.
    `inverse_sqrt` is the paper's: it decays with 1/√step, whatever the length."""
    if name not in SCHEDULES:
        raise ConfigError(f'Unknown schedule "{name}".{did_you_mean(name, SCHEDULES)}')
    if not (math.isfinite(peak) and peak > 0):
        raise ConfigError(f"optimizer.lr={peak} must be a positive number.")
    if name == "inverse_sqrt":
        return lambda step: peak * min(step / warmup, math.sqrt(warmup / step))
    if length.last_step(0) < warmup and name != "constant":
        raise ConfigError(
            f"schedule.warmup={warmup} is longer than the training of {counted(length.last_step(0), 'step')}."
        )
    decay = DECAYS[name]
    return lambda step: peak * min(step / warmup, decay(length.remaining(step)))
