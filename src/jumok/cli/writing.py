"""Lines to standard output, or to a file that has its name only when it is complete."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from jumok.cli.options import say
from jumok.errors import InputError, WriteError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

PICTURES = (".png", ".svg", ".pdf")


@contextmanager
def output_to(path: Path | None) -> Iterator[TextIO]:
    """Somewhere to write: standard output, or a file beside `path` that takes its place at the end.

    When something fails on the way, what was written so far stays there and is named.
    """
    if path is None:
        yield sys.stdout
        return
    require_file(path)
    special = os.path.exists(path) and not os.path.isfile(path)  # /dev/null, a pipe: nothing can take its place
    part = path if special else path.with_name(path.name + ".part")
    with explained(path):
        with open(part, "w", encoding="utf-8", newline="\n") as file:
            try:
                yield file
            except BaseException:
                say(f"jumok: what was written so far is in {part}")
                raise
        if not special:
            part.replace(path)


def require_file(path: Path | None) -> None:
    """Raises if no file can have this name: better now than when there is something to write."""
    if path is None:
        return
    if os.path.isdir(path):
        raise InputError(f"{path}: cannot be written (it is a directory). Give the name of a file.")
    if not os.path.isdir(path.parent):
        raise InputError(f"{path}: cannot be written (there is no directory {path.parent}). Choose another place.")


def require_picture(path: Path | None) -> None:
    """The same for a picture, whose kind its name must tell."""
    require_file(path)
    if path is not None and path.suffix.lower() not in PICTURES:
        raise InputError(f"{path}: the name of a picture must end in {', '.join(PICTURES[:-1])} or {PICTURES[-1]}.")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Says which file it is that cannot be written."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}). Choose another place.") from error


class StandardOutput(FileIO):
    """Where standard output goes. When that cannot be written, it is a WriteError, once; the rest goes nowhere."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Writes as much as is possible at once."""
        try:
            return super().write(data)
        except BrokenPipeError:  # nobody reads on, which is no error
            raise
        except OSError as error:
            discard(self.fileno())
            raise WriteError(
                f"standard output: cannot be written ({error.strerror}). Make room there, or send it elsewhere."
            ) from error


def standard_output(stream: TextIOWrapper) -> TextIOWrapper:
    """The same stream as UTF-8, whatever the locale says, and with errors that can be understood."""
    return TextIOWrapper(
        BufferedWriter(StandardOutput(stream.fileno(), "wb", closefd=False)),
        encoding="utf-8",
        errors="backslashreplace",
        line_buffering=stream.line_buffering or stream.write_through,
    )


def discard(descriptor: int) -> None:
    """Whatever else is written to it goes nowhere."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
