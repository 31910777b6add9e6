"""The result of an evaluation, and what the evaluations of several tasks share."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from jumok.data.examples import Rejections
from jumok.engines.batching import growing_chunks
from jumok.errors import ConfigError

Result = TypeVar("Result")
OnProgress: TypeAlias = Callable[[int, int], None]


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


def in_chunks(
    texts: Sequence[str], run: Callable[[Sequence[str]], Iterable[Result]], on_progress: OnProgress | None
) -> list[Result]:
    """The results of all texts. With `on_progress`, they are given to `run` in chunks, and it is called before the
    first and after each with the number of texts done and of all texts."""
    if on_progress is None:
        return list(run(texts))
    on_progress(0, len(texts))
    found: list[Result] = []
    rest = iter(texts)
    for chunk in growing_chunks(lambda count: list(islice(rest, count))):
        found.extend(run(chunk))
        on_progress(len(found), len(texts))
    return found


def only_file(files: Sequence[Path]) -> Path:
    """The file of a task whose examples stand in one file."""
    if len(files) != 1:
        raise ConfigError(f"{files[1]}: only a translator is compared with a second file. Give one file.")
    return files[0]
