"""The options that all `jumok train` commands share. A new option is one more field of `TrainOptions`."""

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

import click

from jumok.cli.options import PATH

if TYPE_CHECKING:
    from jumok.training.settings import Settings

# Attributes of a click option by the type of its field.
_TYPES: dict[object, dict[str, Any]] = {
    bool: {"is_flag": True},
    str: {},
    int | None: {"type": int},
    float | None: {"type": float},
    str | None: {},
    Path: {"type": PATH, "required": True},
    Path | None: {"type": PATH},
    tuple[str, ...]: {"multiple": True},
    tuple[Path, ...]: {"type": PATH, "multiple": True},
}


@dataclass(frozen=True)
class _Flag:
    """A field on the command line. Its value goes to a setting, or to the recipe, or is used by the command itself."""

    metavar: str | None
    help: str
    flags: tuple[str, ...] = ()  # the field's name with dashes, unless given
    setting: str = ""  # dotted name
    argument: bool = False  # of the recipe, under the field's name


@dataclass(frozen=True)
class TrainOptions:
    """What was asked for, apart from the training data."""

    out: Annotated[Path, _Flag("RUN", "The run directory; created if missing.", ("-o", "--out"), argument=True)]
    valid: Annotated[
        tuple[Path, ...],
        _Flag("FILE...", "Validation data. Default: some of the training data is held out.", argument=True),
    ] = ()
    preset: Annotated[
        str | None,
        _Flag(
            "NAME",
            "Model size: tiny, small, base, big or auto; translators also rnn, rnn-attention.  [default: auto]",
            setting="preset",
        ),
    ] = None
    minutes: Annotated[float | None, _Flag("N", "Train for N minutes.", setting="stop.minutes")] = None
    steps: Annotated[int | None, _Flag("N", "Train for N updates.", setting="stop.steps")] = None
    epochs: Annotated[float | None, _Flag("N", "Train for N passes over the corpus.", setting="stop.epochs")] = None
    assignments: Annotated[
        tuple[str, ...],
        _Flag("NAME=VALUE", "Change a setting, such as batch.tokens=2048; may be repeated.", ("--set",)),
    ] = ()
    config: Annotated[Path | None, _Flag("FILE.toml", "Read settings from a file; options and --set override it.")] = (
        None
    )
    device: Annotated[
        str | None,
        _Flag(
            "NAME", "cpu, cuda, cuda:N, mps, xpu or auto: a card if there is one.  [default: auto]", setting="device"
        ),
    ] = None
    precision: Annotated[
        str | None,
        _Flag(
            "NAME",
            "float32, bfloat16, float16 or auto: bfloat16 on hardware made for it, else float32.  [default: auto]",
            setting="precision",
        ),
    ] = None
    seed: Annotated[int | None, _Flag("N", "Random seed.  [default: 1]", setting="seed")] = None
    fresh: Annotated[bool, _Flag(None, "Delete what was trained in RUN and start again.", argument=True)] = False
    continue_with_changes: Annotated[
        bool, _Flag(None, "Continue even if settings or data files have changed.", argument=True)
    ] = False
    skip_unusable: Annotated[
        bool, _Flag(None, "Train even if more than a third of a file cannot be used.", argument=True)
    ] = False
    note: Annotated[
        str | None, _Flag("TEXT", "Free text to keep with the model; `jumok info` shows it.", argument=True)
    ] = None
    print_config: Annotated[bool, _Flag(None, "Print all settings as TOML, with reasons, and do not train.")] = False
    processes: Annotated[
        str,
        _Flag("N", "Train with N processes on this machine, which share its cores; auto: one for each card."),
    ] = "1"
    shard: Annotated[
        bool,
        _Flag(None, "Split the model between the processes (FSDP), if it is too large for one.", argument=True),
    ] = False
    quiet: Annotated[bool, _Flag(None, "Print warnings and errors only.")] = False
    as_json: Annotated[bool, _Flag(None, "Print every event as a line of JSON.", ("--json",))] = False

    def recipe_arguments(self) -> dict[str, Any]:
        """The keyword arguments for the recipe, all settings among them."""
        given = {name: getattr(self, name) for name, flag in _FLAGS.items() if flag.argument}
        return given | {"valid": list(self.valid) or None, "settings": self.settings()}

    def settings(self) -> "Settings":
        """All settings asked for: those of the file, replaced by those of the options, replaced by those of --set."""
        from jumok.training.settings import Settings, parse_assignments, read_settings_file

        asked = {flag.setting: getattr(self, name) for name, flag in _FLAGS.items() if flag.setting}
        changes = {name: value for name, value in asked.items() if value is not None}
        lengths = dict.fromkeys(name for name in asked if name.startswith("stop."))
        if lengths.keys() & changes.keys():  # a length given here replaces whichever length the file has
            changes = lengths | changes
        settings = Settings.from_dict({} if self.config is None else read_settings_file(self.config))
        return settings.changed(changes).changed(parse_assignments(self.assignments))


_FLAGS: dict[str, _Flag] = {each.name: get_args(each.type)[1] for each in fields(TrainOptions)}


def train_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of `TrainOptions`; the function gets them as one object, its first argument."""

    @wraps(function)
    def with_options(**values: Any) -> None:
        options = TrainOptions(**{name: values.pop(name) for name in _FLAGS})
        function(options, **values)

    decorated: Callable[..., None] = with_options
    for each in reversed(fields(TrainOptions)):
        flag = _FLAGS[each.name]
        attributes = {**_TYPES[get_args(each.type)[0]], "metavar": flag.metavar, "help": flag.help}
        if each.default is not MISSING:
            attributes["default"] = each.default
        flags = flag.flags or (f"--{each.name.replace('_', '-')}",)
        decorated = click.option(*flags, each.name, **attributes)(decorated)
    return decorated
