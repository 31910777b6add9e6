"""Lines from files and pipes, in chunks: as many lines as are available, within a bound on memory."""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, TypeAlias, TypeVar

from jumok.cli.options import say
from jumok.data.reading.lines import Damage, Side
from jumok.data.reading.pairs import read_lines
from jumok.data.source_files import require_files
from jumok.engines.batching import LARGEST_CHUNK, growing_chunks
from jumok.errors import InputError, counted

Result = TypeVar("Result")

READ_AHEAD, READ_AHEAD_CHARACTERS = LARGEST_CHUNK, 4_000_000  # the most lines and characters of a chunk
PAUSE = 0.02  # seconds without a new line after which the lines so far are processed: somebody may be typing

Line: TypeAlias = str | None  # None: a line that was skipped


class DamagedLines:
    """What happens to lines that are not text, by the option --on-error. The first few are named, all are counted."""

    _SHOWN = 3
    _OUTCOMES: ClassVar = {"replace": "invalid bytes were replaced by U+FFFD", "skip": "skipped, its output is empty"}

    def __init__(self, on_error: str) -> None:
        self._on_error = on_error
        self._count = 0

    def __call__(self, where: str, damage: Damage, line: Side) -> Line:
        """The text that takes the place of a damaged line; raises InputError if there can be none."""
        if self._on_error == "stop" or (self._on_error == "replace" and not isinstance(line, bytes)):
            raise InputError(f'{where}: {damage.reason}. Correct or remove this line, or give `on_error="skip"`.')
        self._count += 1
        if self._count <= self._SHOWN:
            say(f"jumok: warning: {where}: {damage.reason}; {self._OUTCOMES[self._on_error]}")
        if self._on_error == "skip":
            return None
        assert isinstance(line, bytes)
        return line.decode("utf-8", "replace").replace("\0", "\ufffd")

    def report(self) -> None:
        """Say how many there were, if not all were named."""
        if self._count > self._SHOWN:
            more = counted(self._count - self._SHOWN, "more line")
            say(f"jumok: warning: {more} of the same kind: {self._OUTCOMES[self._on_error]}")


def lines_of(files: Sequence[Path], damaged: DamagedLines, encoding: str | None) -> Iterator[Line]:
    """The lines of all files, one after the other; of standard input if there are none."""
    require_files(files)  # before work is spent on the first of them
    for file in files or [Path("-")]:
        yield from read_lines(file, damaged, encoding)


def chunks_as_they_come(lines: Iterable[Line], *, same_always: bool = False) -> Iterator[list[Line]]:
    """Chunks of lines: long ones while lines arrive quickly, short ones at first, when somebody types and waits, and
    when the work on them takes long. `same_always`: their lengths do not depend on how long it takes."""
    return growing_chunks(_Ahead(lines).take, same_always=same_always)


def results_for(chunk: Sequence[Line], run: Callable[[list[str]], Iterable[Result]]) -> list[tuple[str, Result] | None]:
    """Every line with the result of `run` for it; None for a line that was skipped."""
    results = iter(run([line for line in chunk if line is not None]))
    return [None if line is None else (line, next(results)) for line in chunk]


class _Ahead:
    """Reads in a thread of its own, as far ahead as `READ_AHEAD` allows."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self._waiting: list[Line] = []
        self._characters = 0
        self._done = False
        self._error: BaseException | None = None
        self._changed = threading.Condition()
        threading.Thread(target=self._read, args=(lines,), daemon=True).start()

    def take(self, most: int) -> list[Line]:
        """The lines read so far, one to `most`; none at the end. Raises the reader's error after its last lines."""

        def enough() -> bool:
            return self._done or len(self._waiting) >= most or not self._has_room()

        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._done)
            before = 0
            while before < len(self._waiting) and not enough():
                before = len(self._waiting)
                self._changed.wait_for(enough, PAUSE)
            taken, self._waiting = self._waiting[:most], self._waiting[most:]
            self._characters -= sum(len(line or "") for line in taken)
            self._changed.notify_all()
        if not taken and self._error is not None:
            raise self._error
        return taken

    def _read(self, lines: Iterable[Line]) -> None:
        try:
            for line in lines:
                with self._changed:
                    self._changed.wait_for(self._has_room)
                    self._waiting.append(line)
                    self._characters += len(line or "")
                    self._changed.notify_all()
        except BaseException as error:  # raised in the thread that takes the lines
            self._error = error
        finally:
            with self._changed:
                self._done = True
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < READ_AHEAD and self._characters < READ_AHEAD_CHARACTERS
