"""What all `jumok train` commands share: their options, watching, stopping, and what is said at the end."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.options import say
from jumok.cli.processes import is_follower, processes_started
from jumok.errors import ConfigError

if TYPE_CHECKING:
    from jumok.cli.panel import Watcher
    from jumok.cli.status import Event
    from jumok.recipes import TrainingResult
    from jumok.training.settings import Settings

LENGTHS = ("minutes", "steps", "epochs")
_NOTHING_DONE_YET = ("corpus", "plan", "settings", "resumed")  # a training can be left here without saving

Out = Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="The run directory; made if need be.")]
Preset = Annotated[
    str | None, typer.Option("--preset", metavar="NAME", help="tiny, small, base, big; auto chooses by the corpus.")
]
Minutes = Annotated[
    float | None,
    typer.Option("--minutes", metavar="N", help="The best model that N minutes can give, schedule fitted to it."),
]
Steps = Annotated[int | None, typer.Option("--steps", metavar="N", help="So many updates.")]
Epochs = Annotated[float | None, typer.Option("--epochs", metavar="N", help="So many times through the corpus.")]
Assignments = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any setting by its dotted name; may be repeated."),
]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE.toml", help="Settings; options and --set come after it.")
]
Seed = Annotated[int | None, typer.Option("--seed", metavar="N", help="All that is random follows from it.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget what was trained in RUN and start again.")]
ContinueWithChanges = Annotated[
    bool, typer.Option("--continue-with-changes", help="Go on with settings or files that changed.")
]
PrintConfig = Annotated[
    bool, typer.Option("--print-config", help="Show all settings and why, as TOML for --config; do not train.")
]
Processes = Annotated[
    int,
    typer.Option(
        "--processes", metavar="N", help="Train with N processes on this machine, each with its share of cores."
    ),
]
Shard = Annotated[
    bool,
    typer.Option("--shard", help="Several processes share one model's weights: for one too large for each (FSDP)."),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say only what must be said.")]


@dataclass(frozen=True)
class Command:
    """A training that somebody asked for."""

    recipe: str  # a function of jumok.recipes
    data: tuple[Path | None, ...]  # its files
    valid: list[Path] | None
    out: Path
    settings: Settings
    fresh: bool
    continue_with_changes: bool
    quiet: bool
    as_json: bool
    processes: int = 1
    shard: bool = False
    extra: dict[str, Any] = field(default_factory=dict)  # what only this recipe can be asked for

    def arguments(self) -> dict[str, Any]:
        """What the recipe is given beside its files."""
        return {"valid": self.valid, "settings": self.settings, **self.extra}


def run_training(command: Command, *, print_config: bool) -> None:
    """Trains, shows it, and says how it ended and what to do next."""
    if print_config:
        print(planned_settings(command))
        return
    with processes_started(command.processes):
        _train_and_tell(command)


def _train_and_tell(command: Command) -> None:
    from jumok.cli.panel import watching

    title = f"jumok {shlex.join(sys.argv[1:3])} → {command.out}"
    quiet = command.quiet or is_follower()
    with watching(title, quiet=quiet, as_json=command.as_json and not is_follower()) as watcher:
        code, result = train_watched(
            watcher,
            command.recipe,
            *command.data,
            **command.arguments(),
            out=command.out,
            shard=command.shard,
            fresh=command.fresh,
            continue_with_changes=command.continue_with_changes,
        )
    if result is None and is_follower():
        raise typer.Exit(code)
    if result is None:
        again = shlex.join(word for word in sys.argv[1:] if word != "--fresh")
        where = f" at step {watcher.status.step:,}" if watcher.status.step else ""
        say(f"Stopped{where}; everything so far is saved. Go on with the same command:\n  jumok {again}")
        raise typer.Exit(code)
    if not quiet and not command.as_json:
        say_what_next(command, result, watcher)


def resolve_settings(
    config: Path | None, flags: dict[str, Any], lengths: dict[str, Any], assignments: list[str] | None
) -> Settings:
    """The TOML file first, then the options, then --set."""
    from jumok.training.settings import Settings, parse_assignments, read_settings_file

    given = [name for name in LENGTHS if lengths[name] is not None]
    if len(given) > 1:
        raise ConfigError(f"--{given[0]} and --{given[1]} are both given. Give one length.")
    settings = Settings.from_dict({} if config is None else read_settings_file(config))
    changes = {name: value for name, value in flags.items() if value is not None}
    if given:  # it takes the place of whichever length the file has
        changes |= {f"stop.{name}": lengths[name] for name in LENGTHS}
    return settings.changed(changes).changed(parse_assignments(assignments or []))


def train_watched(
    watcher: Watcher, recipe: str, *data: Path | None, **arguments: Any
) -> tuple[int, TrainingResult | None]:
    """Trains until the end, or until Ctrl-C or kill: then the exit code says which, and there is no result."""
    from jumok import recipes
    from jumok.training.interrupts import Interrupts
    from jumok.training.trainer import StoppedEarly

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # nobody reading the output is no reason to stop training
    with Interrupts() as interrupts:

        def watch(event: Event) -> None:
            watcher(event)
            if interrupts.requested() and event["event"] in _NOTHING_DONE_YET:
                raise StoppedEarly

        train = getattr(recipes, recipe)
        try:
            return 0, train(*data, **arguments, watch=watch, stop_requested=_announced(interrupts.requested))
        except StoppedEarly:
            return 128 + (interrupts.received or signal.SIGINT), None


def _announced(requested: Callable[[], bool]) -> Callable[[], bool]:
    said = False

    def asked() -> bool:
        nonlocal said
        if requested() and not said:
            said = True
            say("Saving …")
        return said

    return asked


class _Planned(Exception):
    """Everything is decided: no need to go on."""


def planned_settings(command: Command) -> str:
    """All settings as they would be used, with reasons, as TOML; in a directory of its own that is removed."""
    from jumok import recipes

    reasons: dict[str, str] = {}
    values: dict[str, Any] = {}
    vocabulary: dict[str, Any] = {}

    def watch(event: Event) -> None:
        if event["event"] == "corpus":
            vocabulary.update(event["tokenizer"])
        elif event["event"] == "plan":
            reasons.update({choice["name"]: choice["why"] for choice in event["choices"]})
        elif event["event"] == "settings":
            values.update(event["settings"])
            raise _Planned

    train = getattr(recipes, command.recipe)
    with tempfile.TemporaryDirectory(prefix="jumok-") as directory, suppress(_Planned):
        train(*command.data, **command.arguments(), out=Path(directory) / "run", watch=watch)
    lines = _toml_lines(values, reasons)
    if values["tokenizer"]["size"] is None:  # to ask for as many pieces as came out would change them
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


def say_what_next(command: Command, result: TrainingResult, watcher: Watcher) -> None:
    """How it went, and what to do with it."""
    best = next(iter(watcher.status.best.items()), None)
    score = "" if best is None else f", best {best[0]} {best[1]}"
    print(f"Done: {result.steps:,} steps{score}. The model: {result.model}")
    samples = watcher.status.samples
    sentence = samples[0]["source"].split("\n")[0][:200] if samples else "Hello!"
    run = shlex.quote(str(result.run))
    if command.recipe == "train_lm":
        print(f"Now: jumok generate -m {run} --prompt {shlex.quote(sentence)}")
    else:
        use = "classify" if command.recipe == "train_classifier" else "translate"
        print(f"Now: echo {shlex.quote(sentence)} | jumok {use} -m {run}")
