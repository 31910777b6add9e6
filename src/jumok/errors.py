"""Errors a user can cause. Each says what is wrong, where, and what to do; no traceback is shown for them."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any


class JumokError(Exception):
    """Base of every error that is the input's fault, not the program's. The command line exits with `exit_code`."""

    exit_code = 2


class ConfigError(JumokError):
    """A model size or a setting that cannot be used."""


class ArgumentError(ConfigError, TypeError):
    """An argument of a Python function that does not exist or is not of the type it must be."""


class ShapeError(JumokError):
    """A tensor, mask or id that does not fit the model it was given to."""


class InputError(JumokError):
    """A text file, a corpus or a line of it that cannot be used."""


class ChangedDataError(InputError):
    """Files that are not what they were when the training began. `files`: name, bytes and sha256 of each."""

    def __init__(self, files: Sequence[Mapping[str, Any]], message: str = "") -> None:
        names = ", ".join(file["name"] for file in files)
        super().__init__(message or f"{names}: not what this training began with.")
        self.files = files


class BundleError(JumokError):
    """A model directory that is missing, damaged, of another task, or unsafe to read."""


class CheckpointError(JumokError):
    """A run directory or checkpoint that cannot be written, read or continued."""


class TrainingError(JumokError):
    """A training that cannot go on: a loss that is not a number, a batch that does not fit."""

    exit_code = 4


class OtherProcessError(TrainingError):
    """A training that cannot go on because another of its processes has ended."""


class WriteError(JumokError):
    """Something could not be written: no space, no permission, a failing disk."""


class UnreadableError(JumokError):
    """Something that was written cannot be used. `damaged` is False if it may be whole, but not for this reader."""

    def __init__(self, where: Path, problem: str, advice: str = "", *, damaged: bool = True) -> None:
        self.problem = f"{where}: {problem}."
        super().__init__(f"{self.problem} {advice}".rstrip())
        self.advice = advice
        self.damaged = damaged


class MissingExtraError(JumokError):
    """An optional part of Jumok is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package, self.extra = package, extra
        super().__init__(
            f'{purpose} needs {package}, which is not installed. Install it with: pip install "jumok[{extra}]"'
        )


def require_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Raises unless the value is one of those known."""
    known = list(known)
    if value not in known:
        raise ConfigError(f"{name}={value!r} is unknown.{did_you_mean(str(value), known)}")


def require_at_least(least: int, **sizes: int) -> None:
    """Raises unless every size is a whole number and not below `least`."""
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < least:
            raise ConfigError(f"{name}={size!r} must be a whole number, at least {least}.")


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """' Did you mean "d_model"?' when something known is close to what was written, else the list of what is known."""
    candidates = sorted(known)
    close = get_close_matches(str(wrong), candidates, n=1)
    return f' Did you mean "{close[0]}"?' if close else f" Known: {', '.join(candidates)}."


def counted(number: float, noun: str, plural: str = "", form: str = ",") -> str:
    """The number with its noun, for messages: "1 line", "2,000 lines"; `plural` if it is not the noun and an s."""
    return f"{number:{form}} {noun if number == 1 else plural or f'{noun}s'}"
