"""The options that all `jumok train` commands share. A new option is one more field of `TrainOptions`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumok.cli.options import PATH

if TYPE_CHECKING:
    from jumok.training.settings import Settings


# Attributes of a click option by the annotation of its field.
_TYPES: dict[str, dict[str, Any]] = {
    "bool": {"is_flag": True},
    "int": {"type": int, "show_default": True},
    "int | None": {"type": int},
    "float | None": {"type": float},
    "str | None": {},
    "Path": {"type": PATH, "required": True},
    "Path | None": {"type": PATH},
    "tuple[str, ...]": {"multiple": True},
    "tuple[Path, ...]": {"type": PATH, "multiple": True},
}


def _option(help: str, metavar: str = "", *flags: str, setting: str = "", argument: bool = False) -> dict[str, Any]:
    """What a field is on the command line. `flags` is the field's name with dashes unless given.

    Its value goes to the setting of that dotted name, or is an argument of the recipe under the field's own name, or is
    used by the command line itself.
    """
    shown = {"help": help} | ({"metavar": metavar} if metavar else {})
    return {"flags": flags, "setting": setting, "argument": argument, "attributes": shown}


@dataclass(frozen=True)
class TrainOptions:
    """What was asked for, apart from the training data."""

    out: Path = field(metadata=_option("The run directory; created if missing.", "RUN", "-o", "--out", argument=True))
    valid: tuple[Path, ...] = field(
        default=(),
        metadata=_option("Validation data. Default: held out of the training data.", "FILE...", argument=True),
    )
    preset: str | None = field(
        default=None, metadata=_option("Model size: tiny, small, base or big; auto chooses.", "NAME", setting="preset")
    )
    minutes: float | None = field(
        default=None,
        metadata=_option("Train for N minutes, with a schedule fitted to them.", "N", setting="stop.minutes"),
    )
    steps: int | None = field(default=None, metadata=_option("Train for N updates.", "N", setting="stop.steps"))
    epochs: float | None = field(
        default=None, metadata=_option("Train for N passes over the corpus.", "N", setting="stop.epochs")
    )
    assignments: tuple[str, ...] = field(
        default=(), metadata=_option("Set any setting by its dotted name; may be repeated.", "NAME=VALUE", "--set")
    )
    config: Path | None = field(
        default=None, metadata=_option("A file of settings; options and --set override it.", "FILE.toml")
    )
    seed: int | None = field(default=None, metadata=_option("Seed of everything random.", "N", setting="seed"))
    fresh: bool = field(
        default=False, metadata=_option("Delete what was trained in RUN and start again.", argument=True)
    )
    continue_with_changes: bool = field(
        default=False, metadata=_option("Continue although settings or data files have changed.", argument=True)
    )
    print_config: bool = field(
        default=False, metadata=_option("Print all settings and reasons as TOML for --config; do not train.")
    )
    processes: int = field(
        default=1, metadata=_option("Train with N processes on this machine; they divide its cores.", "N")
    )
    shard: bool = field(
        default=False,
        metadata=_option("Divide the model between the processes (FSDP), if it is too large.", argument=True),
    )
    quiet: bool = field(default=False, metadata=_option("Print only warnings and errors."))
    as_json: bool = field(default=False, metadata=_option("Print every event as a line of JSON.", "", "--json"))

    def recipe_arguments(self) -> dict[str, Any]:
        """The keyword arguments for the recipe, all settings among them."""
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.metadata["argument"]}
        return given | {"valid": list(self.valid) or None, "settings": self.settings()}

    def settings(self) -> Settings:
        """All settings asked for: those of the file, replaced by those of the options, replaced by those of --set."""
        from jumok.training.settings import Settings, parse_assignments, read_settings_file

        asked = {
            each.metadata["setting"]: getattr(self, each.name) for each in fields(self) if each.metadata["setting"]
        }
        changes = {name: value for name, value in asked.items() if value is not None}
        lengths = dict.fromkeys(name for name in asked if name.startswith("stop."))
        if lengths.keys() & changes.keys():  # a length given here replaces whichever length the file has
            changes = lengths | changes
        settings = Settings.from_dict({} if self.config is None else read_settings_file(self.config))
        return settings.changed(changes).changed(parse_assignments(self.assignments))


def train_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command all options of `TrainOptions`; the function gets them as one object, its first argument."""

    @wraps(function)
    def with_options(**values: Any) -> None:
        options = TrainOptions(**{each.name: values.pop(each.name) for each in fields(TrainOptions)})
        function(options, **values)

    decorated: Callable[..., None] = with_options
    for each in reversed(fields(TrainOptions)):
        attributes = _TYPES[str(each.type)] | each.metadata["attributes"]
        if each.default is not MISSING:
            attributes = attributes | {"default": each.default}
        flags = each.metadata["flags"] or (f"--{each.name.replace('_', '-')}",)
        decorated = click.option(*flags, each.name, **attributes)(decorated)
    return decorated
