"""What all `jumok train` commands share: run a training, show its progress, stop it, and say what to do next."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumok.cli.options import say
from jumok.cli.processes import is_follower, processes_started
from jumok.cli.train_options import TrainOptions
from jumok.errors import counted
from jumok.tasks import task_named

if TYPE_CHECKING:
    from jumok.display.lines import Display
    from jumok.display.status import Event, Status
    from jumok.recipes.training import TrainingResult

# A training stopped after one of these events has nothing to save yet.
_PREPARING = (
    "stage",
    "reading",
    "vocabulary",
    "encoding",
    "file",
    "corpus",
    "finding",
    "translating",
    "measuring",
    "plan",
    "settings",
    "resumed",
)


def run_training(task: str, data: Sequence[Path], options: TrainOptions, **extra: Any) -> None:
    """Train a model and report how it went, or only print the settings. `extra` are arguments of this recipe alone."""
    arguments = {**options.recipe_arguments(), **extra}
    if options.print_config:
        from jumok.recipes.training import plan

        print(plan(task, *data, **{name: value for name, value in arguments.items() if name != "out"}).to_toml())
        return
    with processes_started(options.processes, arguments["settings"].device, quiet=options.quiet):
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
    began = time.perf_counter()  # before PyTorch is imported: the minutes asked for count from here
    from jumok.recipes.training import train
    from jumok.training.interrupts import Interrupts
    from jumok.training.trainer import StoppedEarly

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # a closed output pipe is no reason to stop training
    with Interrupts() as interrupts:

        def on_event(event: Event) -> None:
            display(event)
            if interrupts.requested() and event["event"] in _PREPARING:
                raise StoppedEarly

        said = False

        def stop_requested() -> bool:
            nonlocal said
            if interrupts.requested() and not said:
                said = True
                say("Saving …")
            return said

        try:
            arguments |= {"on_event": on_event, "stop_requested": stop_requested, "progress": False, "began": began}
            return 0, train(task, *data, **arguments)
        except StoppedEarly:
            return 128 + (interrupts.received or signal.SIGINT), None


def _print_result(task: str, result: TrainingResult, status: Status) -> None:
    """How the training went, and a command that uses the model, on an input of the last validation: that may have been
    in an earlier process."""
    from jumok.training.records import read_sample_inputs

    best = next(iter(status.best.items()), None)
    score = "" if best is None else f", best {best[0]} {best[1]}"
    print(f"Done: {counted(result.steps, 'step')}{score}. The model: {result.model}")
    text = next(iter(read_sample_inputs(result.run)), "Hello!").split("\n")[0][:200]
    usage = task_named(task).usage.format(run=shlex.quote(str(result.run)), text=shlex.quote(text))
    print(f"Now: {usage}")
