"""Lines to standard output, or to a file that has its name only when it is complete."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from jumok.cli.options import say
from jumok.errors import InputError


@contextmanager
def output_to(path: Path | None) -> Iterator[TextIO]:
    """Somewhere to write: standard output, or a file beside `path` that takes its place at the end.

    When something fails on the way, what was written so far stays there and is named.
    """
    if path is None:
        yield sys.stdout
        return
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            try:
                yield file
            except BaseException:
                say(f"jumok: what was written so far is in {part}")
                raise
        part.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}). Choose another place with -o.") from error
