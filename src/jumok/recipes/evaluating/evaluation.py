"""The result of an evaluation, and what the evaluations of several tasks share."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jumok.data.examples import Rejections
from jumok.errors import ConfigError


@dataclass(frozen=True)
class Evaluation:
    """Metrics as values, and the same as lines of text."""

    values: dict[str, Any]
    lines: list[str]


def with_layouts(evaluation: Evaluation, rejections: Rejections) -> Evaluation:
    """The evaluation, which begins with how the files were read."""
    said = [layout for layout in rejections.layouts if layout.describe()]
    lines = [*(layout.describe() for layout in said), *evaluation.lines]
    return Evaluation({**evaluation.values, "files": [layout.to_json() for layout in said]}, lines)


def only_file(files: Sequence[Path]) -> Path:
    """The file of a task whose examples stand in one file."""
    if len(files) != 1:
        raise ConfigError(f"{files[1]}: only a translator is compared with a second file. Give one file.")
    return files[0]
