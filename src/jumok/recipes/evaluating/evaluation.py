"""The result of an evaluation, and what the evaluations of several tasks share."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumok.errors import ConfigError


@dataclass(frozen=True)
class Evaluation:
    """Metrics as values, and the same as lines of text."""

    values: dict[str, Any]
    lines: list[str]


def only_file(files: Sequence[Path]) -> Path:
    """The file of a task whose examples stand in one file."""
    if len(files) != 1:
        raise ConfigError(f"{files[1]}: only a translator is compared with a second file. Give one file.")
    return files[0]
