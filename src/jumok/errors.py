"""Errors a user can cause. Each says what is wrong, where, and what to do; no traceback is shown for them."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class JumokError(Exception):
    """Base of every error that is the input's fault, not the program's. The command line exits with `exit_code`."""

    exit_code = 2


class ConfigError(JumokError):
    """A model size or a setting that cannot be used."""


class ShapeError(JumokError):
    """A tensor, mask or id that does not fit the model it was given to."""


class InputError(JumokError):
    """A text file, a corpus or a line of it that cannot be used."""


class BundleError(JumokError):
    """A model directory that is missing, damaged, of another task, or unsafe to read."""


class CheckpointError(JumokError):
    """A run directory or checkpoint that cannot be written, read or continued."""


class TrainingError(JumokError):
    """A training that cannot go on: a loss that is not a number, a batch that does not fit."""

    exit_code = 4


class MissingExtraError(JumokError):
    """An optional part of Jumok is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f'{purpose} needs {package}, which is not installed. Install it with: pip install "jumok[{extra}]"'
        )


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """' Did you mean "d_model"?' when something known is close to what was written, else the list of what is known."""
    candidates = sorted(known)
    close = get_close_matches(wrong, candidates, n=1)
    return f' Did you mean "{close[0]}"?' if close else f" Known: {', '.join(candidates)}."
