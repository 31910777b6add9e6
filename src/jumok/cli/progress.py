"""The progress of a command over files: one line on the terminal, redrawn in place."""

import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from jumok.cli.options import say, show_status
from jumok.data.reading.lines import STANDARD_INPUT, byte_lines
from jumok.display.status import duration
from jumok.errors import JumokError, counted


class Progress:
    """Context that shows how many lines are done, the speed and the time left if somebody sees it: standard error is
    a terminal, and the output goes elsewhere. An interrupt is answered with the number of lines written."""

    noun, unit = "line", "sentences"

    def __init__(self, files: Sequence[Path], out: Path | None, *, quiet: bool = False) -> None:
        self.lines = self.sentences = 0
        self._out = out
        self._total: int | None = None
        self._began = time.monotonic()
        to_terminal = out is None and sys.stdout.isatty()
        self._shown = sys.stderr.isatty() and not quiet and not to_terminal
        if self._shown and files and STANDARD_INPUT not in map(str, files):
            self._find_total(files)

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._shown:
            show_status("")
        if kind is KeyboardInterrupt and self._out is None and not sys.stdout.isatty():
            say(f"jumok: interrupted after {counted(self.lines, self.noun)}")

    def add(self, lines: int, sentences: int) -> None:
        """Count lines whose output is written, and the sentences in them."""
        self.lines += lines
        self.sentences += sentences
        self._draw()

    def _find_total(self, files: Sequence[Path]) -> None:
        threading.Thread(target=self._count, args=(files,), daemon=True).start()

    def _count(self, files: Sequence[Path]) -> None:
        """Count the lines of the files, beside the work on them."""
        try:
            self._total = sum(1 for file in files for _ in byte_lines(file))
        except JumokError:
            return  # reported by who reads the file for its texts
        self._draw()

    def _draw(self) -> None:
        if not self._shown:
            return
        seconds = time.monotonic() - self._began
        _show(self.noun, self.lines, self._total, seconds, self.sentences, self.unit)


class PictureProgress(Progress):
    """The same for pictures: each file is one."""

    noun, unit = "picture", "pictures"

    def _find_total(self, files: Sequence[Path]) -> None:
        self._total = len(files)


def _show(noun: str, done: int, total: int | None, seconds: float, units: int, unit: str) -> None:
    """Show what is done of a total, if that is known, the units per second and the time left."""
    text = counted(done, noun) if total is None else f"{done:,} of {counted(total, noun)}"
    if done:
        text += f"  {units / max(seconds, 0.001):,.0f} {unit}/s"
        if total is not None:
            text += f"  {duration(seconds / done * max(0, total - done))} left"
    show_status(text[: shutil.get_terminal_size().columns - 1])


@contextmanager
def shown_progress() -> Iterator[Callable[[int, int], None] | None]:
    """A callback that shows how many texts of a total are done; None if standard error is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    began = 0.0

    def show(done: int, total: int) -> None:
        nonlocal began
        began = began if done else time.monotonic()
        _show("text", done, total, time.monotonic() - began, done, "texts")

    try:
        yield show
    finally:
        show_status("")
