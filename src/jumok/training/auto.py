"""What `auto` chooses, with a reason: sizes and length from the corpus; from the clock only if minutes are asked for.
So two trainings with the same files, settings and number of cores are the same training."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jumok.errors import ConfigError, counted
from jumok.training.settings import Settings, StopSettings

# A hundredth of the minutes asked for is spent measuring, within these bounds.
LEAST_SECONDS, MOST_SECONDS = 3.0, 20.0
QUIET_SHARE = 0.25  # of the measured steps, the fastest: what the machine can do when nothing else runs on it
# Above these many tokens to learn, the next larger preset learns enough more to be worth its time.
PRESET_TOKENS = (("tiny", 3_000_000.0), ("small", 30_000_000.0), ("base", math.inf))
BATCH_TOKENS = ((1024, 3_000_000.0), (2048, 30_000_000.0), (4096, math.inf))
PEAK_RATES = {"tiny": 3e-3, "small": 2e-3, "base": 7e-4, "big": 5e-4, "rnn": 3e-3, "rnn-attention": 3e-3}
MUON_RATES = {"tiny": 6e-3}  # benchmarks/multi30k.md, "Learning rate"
# Target tokens a second on one core, to choose a preset without a clock (benchmarks/training_speed.md).
TOKENS_PER_CORE = {"tiny": 3000.0, "small": 900.0, "base": 200.0}
# Below so many epochs, this much dropout is enough.
DROPOUTS = ((0.0, 5.0), (0.1, 15.0), (0.15, 30.0), (0.2, 60.0))
DEFAULT_TOKENS = 20_000_000  # without a given length, about this many are learned from …
LEAST_EPOCHS, MOST_EPOCHS = 3.0, 40.0  # … within these bounds
MOST_HOURS = 12  # without a given length: a night
MOST_WARMUP, LEAST_WARMUP, WARMUP_SHARE = 4000, 500, 0.1
MOST_VALIDATIONS, VALIDATION_SHARE = 15, 0.1  # at most so many, and at most this share of the work


@dataclass(frozen=True)
class Choice:
    """One thing `auto` decided: the setting's dotted name, its value, and why."""

    name: str
    value: Any
    why: str


@dataclass(frozen=True)
class Workload:
    """What there is to do, counted and not measured."""

    tokens: int  # targets to learn in an epoch
    steps_per_epoch: int
    validation_steps: float  # a validation takes as long as so many updates


def choose_sizes(settings: Settings, tokens: int, processes: int = 1) -> list[Choice]:
    """Preset and batch, where they are not given. Several processes share the batch of one."""
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
    return choices


def choose_rate(settings: Settings) -> list[Choice]:
    """The peak learning rate that suits the preset and the optimizer, if it is not given."""
    if settings.optimizer.lr is not None:
        return []
    if settings.optimizer.name == "muon" and settings.preset in MUON_RATES:
        return [Choice("optimizer.lr", MUON_RATES[settings.preset], f"suits {settings.preset} and Muon")]
    return [Choice("optimizer.lr", PEAK_RATES.get(settings.preset, 1e-3), f"suits {settings.preset}")]


def smaller_preset(settings: Settings, work: Workload, cores: int, step_seconds: float | None) -> Choice | None:
    """The next smaller preset, if the machine is too slow for the one that suits the corpus; else None.
    With minutes the speed is measured, `step_seconds`; without any length a nominal one for so many cores is taken."""
    names = [name for name, _ in PRESET_TOKENS]
    stop = settings.stop
    if settings.preset not in names[1:] or stop.steps is not None or stop.epochs is not None:
        return None
    if stop.minutes is not None:
        if step_seconds is None:
            return None
        epochs, time_given = (
            stop.minutes * 60 / (step_seconds * work.steps_per_epoch),
            counted(stop.minutes, "minute", form="g"),
        )
    else:
        speed = TOKENS_PER_CORE[settings.preset] * cores
        epochs, time_given = MOST_HOURS * 3600 * speed / work.tokens, f"{MOST_HOURS} hours on {counted(cores, 'core')}"
    if epochs >= LEAST_EPOCHS:
        return None
    smaller = names[names.index(settings.preset) - 1]
    return Choice("preset", smaller, f"{settings.preset} would see the corpus {epochs:.2g} times in {time_given}")


def measure_step(
    step: Callable[[], None], minutes: float, all_agree: Callable[[bool], bool] = lambda mine: mine
) -> float:
    """Seconds one update takes when nothing else runs on this machine: the mean of the fastest, the first left out.
    `all_agree` is asked before each whether to continue: processes that compute together must stop together."""
    times: list[float] = []
    end = time.perf_counter() + min(MOST_SECONDS, max(LEAST_SECONDS, 0.6 * minutes))
    while all_agree(time.perf_counter() < end or len(times) < 3):
        started = time.perf_counter()
        step()
        times.append(time.perf_counter() - started)
    later = times[len(times) // 3 :]
    # Batches differ in size, so the fastest of single steps would be the smallest; groups of steps are alike.
    group = max(1, len(later) // 12)
    means = sorted(sum(later[i : i + group]) / group for i in range(0, len(later) - group + 1, group))
    fastest = means[: max(1, round(QUIET_SHARE * len(means)))]
    return sum(fastest) / len(fastest)


def choose_length(
    settings: Settings, work: Workload, config: Mapping[str, Any], estimated_steps: int | None
) -> list[Choice]:
    """How long to train, the schedule that fits it, and how often to validate, where they are not given.
    `config` is that of the model. `estimated_steps`: how many fit into the minutes asked for."""
    steps, why = (estimated_steps, "") if estimated_steps is not None else _steps(settings, work)
    choices = [] if estimated_steps is not None else [Choice("stop.steps", steps, why)]
    if settings.schedule.name is None:
        choices.append(Choice("schedule.name", "linear", "the length is known, so the rate can end at zero with it"))
    if settings.schedule.warmup is None:
        norm = config.get("norm")  # only Transformers have one
        why = f"suits {counted(steps, 'step')}" + (f" of {norm}-norm" if norm else "")
        choices.append(Choice("schedule.warmup", _warmup(steps, norm), why))
    rate, epochs = config.get("dropout", 0.0), steps / work.steps_per_epoch
    if "dropout" not in settings.model and (less := _less_dropout(rate, epochs)) < rate:
        length = counted(round(epochs), "epoch") if epochs >= 1 else "less than an epoch"
        choices.append(Choice("model.dropout", less, f"little overfitting in {length}"))
    if settings.validation.every is None and estimated_steps is None:
        times = choose_validations(steps, work)
        choices.append(Choice("validate.every", math.ceil(steps / times), f"{counted(times, 'validation')} in all"))
    return choices


def choose_validations(steps: int, work: Workload) -> int:
    """How often to validate in so many steps."""
    return max(1, min(MOST_VALIDATIONS, int(VALIDATION_SHARE * steps / work.validation_steps)))


def _warmup(steps: int, norm: str | None) -> int:
    """A tenth of the training; for post-norm, which diverges without it, 500 steps where the training has 1,500."""
    least = 1 if norm != "post" else min(LEAST_WARMUP, math.ceil(steps / 3))
    return max(least, min(MOST_WARMUP, round(steps * WARMUP_SHARE)))


def _less_dropout(rate: float, epochs: float) -> float:
    """Examples that are seen a few times only are not memorised; dropout would just slow the learning."""
    return min([rate, *(enough for enough, limit in DROPOUTS if epochs < limit)])


def _steps(settings: Settings, work: Workload) -> tuple[int, str]:
    stop = settings.stop
    if stop.steps is not None:
        return stop.steps, "as asked"
    epochs, why = stop.epochs, "as asked"
    if epochs is None:
        epochs = min(MOST_EPOCHS, max(LEAST_EPOCHS, DEFAULT_TOKENS / work.tokens))
        why = f"for {work.tokens:,} tokens to learn"
    return max(1, round(epochs * work.steps_per_epoch)), f"{counted(epochs, 'epoch', form='.3g')} {why}"


def require_one_length(stop: StopSettings) -> None:
    """Raises when more than one is given."""
    given = [name for name in ("steps", "epochs", "minutes") if getattr(stop, name) is not None]
    if len(given) > 1:
        raise ConfigError(f"stop.{given[0]} and stop.{given[1]} are both given. Give one length.")
