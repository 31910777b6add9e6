"""What all `jumok train` commands share: run a training, show its progress, stop it, and say what to do next."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumok.cli.options import say
from jumok.cli.processes import is_follower, processes_started
from jumok.cli.train_options import TrainOptions
from jumok.tasks import task_named

if TYPE_CHECKING:
    from jumok.cli.panel import Display
    from jumok.cli.status import Event, Status
    from jumok.recipes import TrainingResult

# A training stopped after one of these events has nothing to save yet.
_BEFORE_THE_FIRST_STEP = ("reading", "corpus", "finding", "plan", "settings", "resumed")


def run_training(task: str, data: Sequence[Path], options: TrainOptions, **extra: Any) -> None:
    """Train a model and report how it went, or only print the settings. `extra` are arguments of this recipe alone."""
    arguments = {**options.recipe_arguments(), **extra}
    if options.print_config:
        print(planned_settings(task, data, arguments))
        return
    with processes_started(options.processes):
        _train_and_report(task, data, options, arguments)


def _train_and_report(task: str, data: Sequence[Path], options: TrainOptions, arguments: dict[str, Any]) -> None:
    from jumok.cli.panel import open_display

    title = f"jumok {shlex.join(sys.argv[1:3])} → {options.out}"
    quiet = options.quiet or is_follower()
    with open_display(title, quiet=quiet, as_json=options.as_json and not is_follower()) as display:
        code, result = train_with_display(display, task, *data, **arguments)
    if result is None:
        if not is_follower():
            again = shlex.join(word for word in sys.argv[1:] if word != "--fresh")
            where = f" at step {display.status.step:,}" if display.status.step else ""
            say(f"Stopped{where}; everything so far is saved. Continue with the same command:\n  jumok {again}")
        raise click.exceptions.Exit(code)
    if not quiet and not options.as_json:
        _print_result(task, result, display.status)


def train_with_display(display: Display, task: str, *data: Path, **arguments: Any) -> tuple[int, TrainingResult | None]:
    """Train to the end and return 0 and the result; after Ctrl-C or another signal, its exit code and no result."""
    from jumok.training.interrupts import Interrupts
    from jumok.training.trainer import StoppedEarly

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a closed output pipe is no reason to stop training
    with Interrupts() as interrupts:

        def on_event(event: Event) -> None:
            display(event)
            if interrupts.requested() and event["event"] in _BEFORE_THE_FIRST_STEP:
                raise StoppedEarly

        stop_requested = _announced(interrupts.requested)
        try:
            return 0, _recipe(task)(*data, **arguments, watch=on_event, stop_requested=stop_requested)
        except StoppedEarly:
            return 128 + (interrupts.received or signal.SIGINT), None


def _recipe(task: str) -> Callable[..., TrainingResult]:
    from jumok import recipes

    known: dict[str, Callable[..., TrainingResult]] = {
        "translator": recipes.train_translator,
        "classifier": recipes.train_classifier,
        "language_model": recipes.train_lm,
    }
    return known[task]


def _announced(requested: Callable[[], bool]) -> Callable[[], bool]:
    """The same question; the first time the answer is yes, a message says that the training is being saved."""
    said = False

    def asked() -> bool:
        nonlocal said
        if requested() and not said:
            said = True
            say("Saving …")
        return said

    return asked


class _Planned(Exception):
    """Raised to end a training before its first step, when all settings are known."""


def planned_settings(task: str, data: Sequence[Path], arguments: dict[str, Any]) -> str:
    """All settings as they would be used, with reasons, as TOML; worked out in a temporary directory."""
    reasons: dict[str, str] = {}
    values: dict[str, Any] = {}
    vocabulary: dict[str, Any] = {}

    def on_event(event: Event) -> None:
        if event["event"] == "corpus":
            vocabulary.update(event["tokenizer"])
        elif event["event"] == "plan":
            reasons.update({choice["name"]: choice["why"] for choice in event["choices"]})
        elif event["event"] == "settings":
            values.update(event["settings"])
            raise _Planned

    with tempfile.TemporaryDirectory(prefix="jumok-") as directory, suppress(_Planned):
        _recipe(task)(*data, **(arguments | {"out": Path(directory) / "run"}), watch=on_event)
    lines = _toml_lines(values, reasons)
    if values["tokenizer"]["size"] is None:  # asking for the size that came out could change the vocabulary
        lines.append(f"# tokenizer.size is left to the corpus: {vocabulary['why']}; it offers {vocabulary['size']:,}")
    return "\n".join(lines)


def _toml_lines(values: dict[str, Any], reasons: dict[str, str], prefix: str = "") -> list[str]:
    import json

    lines = []
    for name, value in values.items():
        dotted = prefix + name
        if isinstance(value, dict):
            lines += _toml_lines(value, reasons, f"{dotted}.")
        elif value is not None and dotted not in ("stop.minutes", "stop.epochs"):  # they became stop.steps
            why = f"  # {reasons[dotted]}" if dotted in reasons else ""
            lines.append(f"{dotted} = {json.dumps(value, ensure_ascii=False)}{why}")
    return lines


def _print_result(task: str, result: TrainingResult, status: Status) -> None:
    """How the training went, and a command that uses the model."""
    best = next(iter(status.best.items()), None)
    score = "" if best is None else f", best {best[0]} {best[1]}"
    print(f"Done: {result.steps:,} steps{score}. The model: {result.model}")
    text = status.samples[0]["source"].split("\n")[0][:200] if status.samples else "Hello!"
    usage = task_named(task).usage.format(run=shlex.quote(str(result.run)), text=shlex.quote(text))
    print(f"Now: {usage}")
