"""What `auto` chooses: sizes from the corpus, length from the speed this machine has. Every choice has a reason."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jumok.errors import ConfigError
from jumok.model.config import PRESETS
from jumok.training.settings import Settings, StopSettings

# When the length of the training depends on it, a hundredth of it within these bounds; and when only its forecast does.
LEAST_SECONDS, MOST_SECONDS, GLANCE_SECONDS = 5.0, 20.0, 1.0
# Above these many tokens to learn, the next larger preset learns enough more to be worth its time.
PRESET_TOKENS = (("tiny", 3_000_000.0), ("small", 30_000_000.0), ("base", math.inf))
BATCH_TOKENS = ((1024, 3_000_000.0), (2048, 30_000_000.0), (4096, math.inf))
PEAK_RATES = {"tiny": 3e-3, "small": 2e-3, "base": 7e-4, "big": 5e-4}
# Below so many epochs, this much dropout is enough.
DROPOUTS = ((0.0, 5.0), (0.1, 30.0), (0.2, 60.0))
DEFAULT_TOKENS = 20_000_000  # without a given length, about this many are learned from …
LEAST_EPOCHS, MOST_EPOCHS = 3.0, 40.0  # … within these bounds
MOST_HOURS = 12  # without a given length: a night
MOST_WARMUP, LEAST_WARMUP, WARMUP_SHARE = 4000, 500, 0.1
MOST_VALIDATIONS, VALIDATION_SHARE = 15, 0.1  # at most so many, and at most this share of all time
FINAL_VALIDATIONS = 2  # of the averages at the end
SPARE = 0.9  # for checkpoints, and because no machine is for an hour what it was for five seconds
CHECKPOINT_SECONDS = 300.0


@dataclass(frozen=True)
class Choice:
    """One thing `auto` decided: the setting's dotted name, its value, and why."""

    name: str
    value: Any
    why: str


def choose_sizes(settings: Settings, tokens: int, processes: int = 1) -> list[Choice]:
    """Preset, batch and peak rate, where they are not given. Several processes share what one would learn from."""
    choices = []
    size = f"the corpus has {tokens:,} tokens to learn"
    preset = settings.preset
    if preset == "auto":
        preset = next(name for name, limit in PRESET_TOKENS if tokens < limit)
        choices.append(Choice("preset", preset, size))
    if settings.batch.tokens is None:
        batch = next(size for size, limit in BATCH_TOKENS if tokens < limit)
        shared = "" if processes == 1 else f", shared by {processes} processes"
        choices.append(Choice("batch.tokens", -(-batch // processes), size + shared))
    if settings.batch.accumulate is None:
        choices.append(Choice("batch.accumulate", processes, "one batch for each process"))
    if settings.optimizer.lr is None:
        choices.append(Choice("optimizer.lr", PEAK_RATES.get(preset, 1e-3), f"suits {preset}"))
    return choices


@dataclass(frozen=True)
class Costs:
    """What this machine takes, measured on the real model and data."""

    step: float  # seconds for one update
    validation: float  # seconds for one validation
    spent: float = 0.0  # seconds since the command began


def smaller_preset(settings: Settings, steps_per_epoch: int, costs: Costs) -> Choice | None:
    """The next smaller preset, if this machine is too slow for the one that suits the corpus; else None."""
    names = [name for name, _ in PRESET_TOKENS]
    stop = settings.stop
    if settings.preset not in names[1:] or stop.steps is not None or stop.epochs is not None:
        return None
    seconds = MOST_HOURS * 3600 if stop.minutes is None else stop.minutes * 60 - costs.spent
    epochs = seconds * SPARE / (costs.step * steps_per_epoch)
    if epochs >= LEAST_EPOCHS:
        return None
    time_given = f"{MOST_HOURS} hours" if stop.minutes is None else f"{stop.minutes:g} minutes"
    smaller = names[names.index(settings.preset) - 1]
    return Choice("preset", smaller, f"{settings.preset} would see the corpus {epochs:.2g} times in {time_given} here")


def measure_step(
    step: Callable[[], None], stop: StopSettings, agreed: Callable[[bool], bool] = lambda mine: mine
) -> float:
    """Seconds one update takes: the mean over the later ones, because the first warm up.

    `agreed` is asked before each whether to go on: processes that compute together must stop together.
    """
    times: list[float] = []
    share = GLANCE_SECONDS if stop.minutes is None else min(MOST_SECONDS, max(LEAST_SECONDS, 0.6 * stop.minutes))
    end = time.perf_counter() + share
    while agreed(time.perf_counter() < end or len(times) < 3):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    later = times[len(times) // 3 :]
    return sum(later) / len(later)


def choose_length(settings: Settings, steps_per_epoch: int, tokens: int, costs: Costs) -> list[Choice]:
    """How long to train, the schedule that fits it, and how often to validate and save, where they are not given."""
    steps, why = _steps(settings, steps_per_epoch, tokens, costs)
    choices = [Choice("stop.steps", steps, why)]
    if settings.schedule.name is None:
        choices.append(Choice("schedule.name", "linear", "the length is known, so the rate can end at zero with it"))
    if settings.schedule.warmup is None:
        norm = settings.model.get("norm") or PRESETS.get(settings.preset, {}).get("norm", "post")
        choices.append(Choice("schedule.warmup", _warmup(steps, norm), f"suits {steps:,} steps of {norm}-norm"))
    rate = PRESETS.get(settings.preset, {}).get("dropout", 0.0)
    if "dropout" not in settings.model and (less := _less_dropout(rate, steps / steps_per_epoch)) < rate:
        choices.append(Choice("model.dropout", less, f"{steps / steps_per_epoch:.0f} epochs overfit little"))
    if settings.validation.every is None:
        times = _validations(steps * costs.step, costs)
        choices.append(Choice("validate.every", math.ceil(steps / times), f"{costs.validation:.1f} seconds each time"))
    if settings.checkpoint.every is None:
        every = max(1, round(CHECKPOINT_SECONDS / costs.step))
        choices.append(Choice("checkpoint.every", every, f"about every {CHECKPOINT_SECONDS / 60:g} minutes"))
    return choices


def forecast(settings: Settings, costs: Costs) -> float:
    """Seconds until the end, from the beginning of the command."""
    steps, every = settings.stop.steps or 0, settings.validation.every or 1
    validations = math.ceil(steps / every) + FINAL_VALIDATIONS
    return costs.spent + steps * costs.step / SPARE + validations * costs.validation


def _warmup(steps: int, norm: str) -> int:
    """A tenth of the training; for post-norm, which diverges without it, 500 steps where the training has 1,500."""
    least = 1 if norm == "pre" else min(LEAST_WARMUP, math.ceil(steps / 3))
    return max(least, min(MOST_WARMUP, round(steps * WARMUP_SHARE)))


def _less_dropout(rate: float, epochs: float) -> float:
    """What is seen few times cannot be learned by heart, and dropout then only slows the learning."""
    return min([rate, *(enough for enough, limit in DROPOUTS if epochs < limit)])


def _validations(seconds: float, costs: Costs) -> int:
    return max(1, min(MOST_VALIDATIONS, int(VALIDATION_SHARE * seconds / costs.validation)))


def _steps(settings: Settings, steps_per_epoch: int, tokens: int, costs: Costs) -> tuple[int, str]:
    stop = settings.stop
    if stop.steps is not None:
        return stop.steps, "as asked"
    if stop.minutes is not None:
        rest = stop.minutes * 60 - costs.spent
        validating = (_validations(rest, costs) + FINAL_VALIDATIONS) * costs.validation
        steps = max(1, int((rest - validating) * SPARE / costs.step))
        return steps, f"{stop.minutes:g} minutes at {costs.step * 1e3:.0f} ms a step, measured here"
    epochs, why = stop.epochs, "as asked"
    if epochs is None:
        epochs = min(MOST_EPOCHS, max(LEAST_EPOCHS, DEFAULT_TOKENS / tokens))
        why = f"for {tokens:,} tokens to learn"
    return max(1, round(epochs * steps_per_epoch)), f"{epochs:.3g} epochs {why}"


def require_one_length(stop: StopSettings) -> None:
    """Raises when more than one is given."""
    given = [name for name in ("steps", "epochs", "minutes") if getattr(stop, name) is not None]
    if len(given) > 1:
        raise ConfigError(f"stop.{given[0]} and stop.{given[1]} are both given. Give one length.")
