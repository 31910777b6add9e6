"""Output to standard output, or to a file that gets its name only when it is complete."""

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import click

from jumok.cli.options import PATH, say
from jumok.errors import InputError, WriteError, counted
from jumok.lens.plots.formats import require_format
from jumok.system import is_closed_pipe

UNENCODABLE = "backslashreplace"  # what becomes of the bytes of file names that are not UTF-8; in JSON it is valid


@contextmanager
def output_to(path: Path | None) -> Iterator[TextIO]:
    """Standard output, or `path`.part, renamed to `path` at the end. After an error, a message names the .part file."""
    if path is None:
        yield sys.stdout
        return
    require_file(path)
    special = os.path.exists(path) and not os.path.isfile(path)  # /dev/null or a pipe, which cannot be replaced
    part = path if special else path.with_name(path.name + ".part")
    with explained(path):
        with open(part, "w", encoding="utf-8", errors=UNENCODABLE, newline="\n") as file:
            try:
                yield file
            except BaseException:
                with suppress(OSError):
                    file.flush()
                say(f"jumok: incomplete output was kept in {part}" + ("" if special else f": {_lines_in(part)}"))
                raise
        if not special:
            part.replace(path)


def _lines_in(path: Path) -> str:
    """How many complete lines a file has, in words."""
    with open(path, "rb") as file:
        return counted(sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b"")), "line")


def require_file(path: Path | None) -> None:
    """Raise InputError if no file can be written here, before work is spent on its content."""
    if path is None:
        return
    if os.path.isdir(path):
        raise InputError(f"{path}: cannot be written (it is a directory). Give the name of a file.")
    if not os.path.isdir(path.parent):
        raise InputError(f"{path}: cannot be written (there is no directory {path.parent}). Choose another place.")


def require_picture(path: Path | None) -> None:
    """Raise InputError if no picture can be written here, before work is spent on it."""
    require_file(path)
    if path is not None:
        require_format(path)


def _checked(_context: click.Context, _option: click.Parameter, path: Path) -> Path:
    require_picture(path)
    return path


PICTURE = click.option(
    "-o",
    "--out",
    type=PATH,
    required=True,
    callback=_checked,
    metavar="FILE",
    help="The picture; its ending, .png, .svg or .pdf, is the format.",
)


def write_picture(figure: Any, path: Path) -> None:
    """Write a figure of `jumok.lens.plots` to a file, and say so."""
    from jumok.lens.plots import save_figure

    save_figure(figure, path)
    say(f"Saved {path}.")


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Turn an OSError into an InputError that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}). Choose another place.") from error


class StandardOutput(FileIO):
    """Standard output whose first failed write raises a WriteError; what follows is discarded."""

    def write(self, data: Any, /) -> int:  # bytes or another buffer
        try:
            return super().write(data)
        except OSError as error:
            if is_closed_pipe(error):  # the reader has exited; handled elsewhere
                raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)) from error
            discard(self.fileno())
            raise WriteError(
                f"standard output: cannot be written ({error.strerror}). Make room there, or send it elsewhere."
            ) from error


def standard_output(stream: TextIOWrapper) -> TextIOWrapper:
    """The same stream as UTF-8, whatever the locale says, with clear errors and the same bytes on every system."""
    if not isinstance(getattr(stream.buffer, "raw", stream.buffer), FileIO):  # a Windows console: text, not bytes
        stream.reconfigure(errors=UNENCODABLE)
        return stream
    return TextIOWrapper(
        BufferedWriter(StandardOutput(stream.fileno(), "wb", closefd=False)),
        encoding="utf-8",
        errors=UNENCODABLE,
        newline="\n",
        line_buffering=stream.line_buffering or stream.write_through,
    )


def discard(descriptor: int) -> None:
    """Redirect a file descriptor to the null device."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)
