"""What `auto` chooses: sizes from the corpus, length from the speed this machine really has. Every choice has a reason."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from jumok.errors import ConfigError
from jumok.training.settings import Settings

MEASURE_SECONDS = 5.0
# Above these many target tokens in the corpus, the next larger preset learns enough more to be worth its time.
PRESET_TOKENS = (("tiny", 3_000_000), ("small", 30_000_000), ("base", math.inf))
DEFAULT_EPOCHS_OF_TOKENS = 30_000_000  # without a given length: about this many tokens are learned from …
LEAST_EPOCHS, MOST_EPOCHS = 3.0, 60.0  # … within these bounds


@dataclass(frozen=True)
class Choice:
    """One thing `auto` decided."""

    name: str
    value: object
    why: str


@dataclass(frozen=True)
class Speed:
    """Seconds one update takes, measured on real batches."""

    seconds_per_step: float


def choose_preset(target_tokens: int) -> Choice:
    """The smallest preset that the corpus does not outgrow."""
    name = next(name for name, limit in PRESET_TOKENS if target_tokens < limit)
    return Choice("preset", name, f"the corpus has {target_tokens:,} target tokens")


def choose_batch_tokens(target_tokens: int) -> Choice:
    """Small corpora want many small updates, large ones fewer large ones."""
    tokens = 1024 if target_tokens < 2_000_000 else 2048 if target_tokens < 20_000_000 else 4096
    return Choice("batch.tokens", tokens, "small batches learn more per minute from a small corpus")


def measure_speed(step: Callable[[], None], seconds: float = MEASURE_SECONDS) -> Speed:
    """Runs updates for a few seconds; the median of the later ones, because the first warm up."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    later = sorted(times[len(times) // 3 :])
    return Speed(later[len(later) // 2])


def choose_steps(settings: Settings, steps_per_epoch: int, target_tokens: int, speed: Speed) -> Choice:
    """How many updates the training has, from whichever length was asked for."""
    stop = settings.stop
    given = [name for name in ("steps", "epochs", "minutes") if getattr(stop, name) is not None]
    if len(given) > 1:
        raise ConfigError(f"stop.{given[0]} and stop.{given[1]} are both given. Give one length.")
    if stop.steps is not None:
        return Choice("stop.steps", stop.steps, "as asked")
    if stop.minutes is not None:
        # Validation, checkpoints and the averages at the end come out of the same minutes.
        steps = max(1, int(stop.minutes * 60 * TRAINING_SHARE / speed.seconds_per_step))
        return Choice("stop.steps", steps, f"{stop.minutes:g} minutes at {speed.seconds_per_step * 1e3:.0f} ms a step")
    if stop.epochs is not None:
        return Choice("stop.steps", max(1, round(stop.epochs * steps_per_epoch)), f"{stop.epochs:g} epochs")
    epochs = min(MOST_EPOCHS, max(LEAST_EPOCHS, DEFAULT_EPOCHS_OF_TOKENS / target_tokens))
    return Choice("stop.steps", max(1, round(epochs * steps_per_epoch)), f"{epochs:.0f} epochs suit a corpus of this size")


TRAINING_SHARE = 0.9
