"""jumok train translator: two files in, a translator out."""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.options import Json, Source, Target, Valid, say, valid_files
from jumok.errors import ConfigError

if TYPE_CHECKING:
    from jumok.cli.panel import Watcher
    from jumok.cli.status import Event
    from jumok.recipes import TrainingResult
    from jumok.training.settings import Settings

LENGTHS = ("minutes", "steps", "epochs")
_NOTHING_DONE_YET = ("corpus", "plan", "settings", "resumed")  # a training can be left here without saving


def train_translator_command(
    source: Source,
    out: Annotated[Path, typer.Option("-o", "--out", metavar="RUN", help="The run directory; made if need be.")],
    target: Target = None,
    valid: Valid = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="tiny, small, base, big; auto chooses by the corpus.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", help="The best model that N minutes can give, schedule fitted to it.")
    ] = None,
    steps: Annotated[int | None, typer.Option(metavar="N", help="So many updates.")] = None,
    epochs: Annotated[float | None, typer.Option(metavar="N", help="So many times through the corpus.")] = None,
    assignments: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any setting by its dotted name; may be repeated."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE.toml", help="Settings; options and --set come after it.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="All that is random follows from it.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what was trained in RUN and start again.")] = False,
    continue_with_changes: Annotated[
        bool, typer.Option("--continue-with-changes", help="Go on with settings or files that changed.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Show all settings and why, as TOML for --config; do not train.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Say only what must be said.")] = False,
    as_json: Json = False,
) -> None:
    """Train a translator on pairs of sentences.

    The same command again goes on where it stopped. Ctrl-C finishes the step and saves; twice leaves at once. RUN/model
    is the best model so far and can be used at any time: jumok translate -m RUN
    """
    from jumok.cli.panel import watching
    from jumok.cli.precheck import look_before_training

    lengths = {"minutes": minutes, "steps": steps, "epochs": epochs}
    settings = resolve_settings(config, {"preset": preset, "seed": seed}, lengths, assignments or [])
    measured_on = valid_files(valid)
    if not (out / "run.json").exists():
        look_before_training([source] if target is None else [source, target], measured_on)
    corpus = {"source": source, "target": target, "valid": measured_on, "settings": settings}
    if print_config:
        print(planned_settings(corpus))
        return
    with watching(f"jumok train translator → {out}", quiet=quiet, as_json=as_json) as watcher:
        code, result = train_watched(
            watcher, **corpus, out=out, fresh=fresh, continue_with_changes=continue_with_changes
        )
    if result is None:
        again = shlex.join(word for word in sys.argv[1:] if word != "--fresh")
        where = f" at step {watcher.status.step:,}" if watcher.status.step else ""
        say(f"Stopped{where}; everything so far is saved. Go on with the same command:\n  jumok {again}")
        raise typer.Exit(code)
    if not quiet and not as_json:
        say_what_next(result, watcher)


def resolve_settings(
    config: Path | None, flags: dict[str, Any], lengths: dict[str, Any], assignments: list[str]
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
    return settings.changed(changes).changed(parse_assignments(assignments))


def train_watched(watcher: Watcher, **arguments: Any) -> tuple[int, TrainingResult | None]:
    """Trains until the end, or until Ctrl-C or kill: then the exit code says which, and there is no result."""
    from jumok.recipes import train_translator
    from jumok.training.interrupts import Interrupts
    from jumok.training.trainer import StoppedEarly

    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # nobody reading the output is no reason to stop training
    with Interrupts() as interrupts:

        def watch(event: Event) -> None:
            watcher(event)
            if interrupts.requested() and event["event"] in _NOTHING_DONE_YET:
                raise StoppedEarly

        try:
            return 0, train_translator(**arguments, watch=watch, stop_requested=_announced(interrupts.requested))
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


def planned_settings(corpus: dict[str, Any]) -> str:
    """All settings as they would be used, with reasons, as TOML; in a directory of its own that is removed."""
    from jumok.recipes import train_translator

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

    with tempfile.TemporaryDirectory(prefix="jumok-") as directory, suppress(_Planned):
        train_translator(**corpus, out=Path(directory) / "run", watch=watch)
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


def say_what_next(result: TrainingResult, watcher: Watcher) -> None:
    """How it went, and what to do with it."""
    samples = watcher.status.samples
    sentence = samples[0]["source"] if samples else "Hello!"
    score = "" if result.score is None else f", best BLEU {result.score:.1f}"
    print(f"Done: {result.steps:,} steps{score}. The model: {result.model}")
    print(f"Now: echo {shlex.quote(sentence)} | jumok translate -m {shlex.quote(str(result.run))}")
