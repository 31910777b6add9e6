"""The progress of a command over files: one line on the terminal, redrawn in place."""

import shutil
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from jumok.cli.options import say, show_status
from jumok.data.reading.lines import STANDARD_INPUT, byte_lines
from jumok.display.status import duration
from jumok.errors import JumokError, counted


class Progress:
    """Context that shows how many lines are done, the speed and the time left if somebody sees it: standard error is
    a terminal, and the output goes elsewhere. An interrupt is answered with the number of lines written."""

    def __init__(self, files: Sequence[Path], out: Path | None, *, quiet: bool) -> None:
        self.lines = self.sentences = 0
        self._out = out
        self._total: int | None = None
        self._began = time.monotonic()
        to_terminal = out is None and sys.stdout.isatty()
        self._shown = sys.stderr.isatty() and not quiet and not to_terminal
        if self._shown and files and STANDARD_INPUT not in map(str, files):
            threading.Thread(target=self._count, args=(files,), daemon=True).start()

    def __enter__(self) -> Self:
        self._draw()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._shown:
            show_status("")
        if kind is KeyboardInterrupt and self._out is None and not sys.stdout.isatty():
            say(f"jumok: interrupted after {counted(self.lines, 'line')}")

    def add(self, lines: int, sentences: int) -> None:
        """Count lines whose output is written, and the sentences in them."""
        self.lines += lines
        self.sentences += sentences
        self._draw()

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
        total = self._total
        text = counted(self.lines, "line") if total is None else f"{self.lines:,} of {counted(total, 'line')}"
        seconds = time.monotonic() - self._began
        if self.lines:
            text += f"  {self.sentences / seconds:,.0f} sentences/s"
            if total is not None:
                text += f"  {duration(seconds / self.lines * max(0, total - self.lines))} left"
        show_status(text[: shutil.get_terminal_size().columns - 1])
