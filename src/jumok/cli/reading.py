"""Lines from files and pipes, in chunks: as many lines as are available, within a bound on memory."""

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jumok.data.reading.pairs import read_lines
from jumok.data.source_files import require_files

READ_AHEAD, READ_AHEAD_CHARACTERS = 4096, 4_000_000  # the most lines and characters of a chunk
PAUSE = 0.02  # seconds without a new line after which the lines so far are processed: somebody may be typing


def lines_of(files: Sequence[Path]) -> Iterator[str]:
    """The lines of all files, one after the other; of standard input if there are none."""
    require_files(files)  # before work is spent on the first of them
    for file in files or [Path("-")]:
        yield from read_lines(file)


def chunks_as_they_come(lines: Iterable[str]) -> Iterator[list[str]]:
    """Chunks of lines: long ones while lines arrive quickly, short ones when somebody types and waits."""
    return iter(_Ahead(lines).take, [])


class _Ahead:
    """Reads in a thread of its own, as far ahead as `READ_AHEAD` allows."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._waiting: list[str] = []
        self._characters = 0
        self._done = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def take(self) -> list[str]:
        """The lines read so far, at least one; none at the end. Raises the reader's error after its last lines."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._done)
            before = 0
            while before < len(self._waiting) and self._has_room() and not self._done:
                before = len(self._waiting)
                self._changed.wait_for(lambda: self._done or not self._has_room(), PAUSE)
            taken, self._waiting, self._characters = self._waiting, [], 0
            self._changed.notify_all()
        if not taken and self._error is not None:
            raise self._error
        return taken

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                with self._changed:
                    self._changed.wait_for(self._has_room)
                    self._waiting.append(line)
                    self._characters += len(line)
                    self._changed.notify_all()
        except BaseException as error:  # raised in the thread that takes the lines
            self._error = error
        finally:
            with self._changed:
                self._done = True
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < READ_AHEAD and self._characters < READ_AHEAD_CHARACTERS
