"""Texts from files and pipes: as many lines at a time as are there, and never more than memory can hold."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from jumok.data.reading.languages import Languages
from jumok.data.reading.lines import EMPTY, Damage, text_of
from jumok.data.reading.pairs import names_of, read_lines, read_records
from jumok.engines.translator.text import READ_AHEAD, READ_AHEAD_CHARACTERS
from jumok.errors import InputError

PAUSE = 0.02  # seconds without a new line after which a writer is not kept waiting for an answer


def lines_of(files: Sequence[Path]) -> Iterator[str]:
    """The lines of all files, one after the other; of standard input if there are none."""
    for file in files:
        if file != Path("-") and not file.exists():  # better now than after the work for those before it
            raise InputError(f"{file}: no such file.")
    for file in files or [Path("-")]:
        yield from read_lines(file)


def aligned_texts(paths: Sequence[Path], languages: Languages | None = None) -> Iterator[tuple[str, str]]:
    """Both sides of every line. Empty ones stay, so that lines out are lines in; what is no text is an error."""
    names = names_of(paths)
    for number, *sides in read_records(paths, languages):
        texts = ["" if text is EMPTY else text for text in map(text_of, sides)]
        for name, text in zip(names, texts, strict=True):
            if isinstance(text, Damage):
                raise InputError(f"{name}:{number}: {text.reason}. Correct or remove this line on both sides.")
        yield str(texts[0]), str(texts[1])


def chunks_as_they_come(lines: Iterable[str]) -> Iterator[list[str]]:
    """The lines in lists: long ones while lines come quickly, short ones when somebody types and waits."""
    ahead = _Ahead(lines)
    while chunk := ahead.take():
        yield chunk


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
        """What is there, at least a line; nothing at the end. An error of the reader comes after its last lines."""
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
        except BaseException as error:  # whatever it is belongs to the one who takes the lines
            self._error = error
        finally:
            with self._changed:
                self._done = True
                self._changed.notify_all()

    def _has_room(self) -> bool:
        return len(self._waiting) < READ_AHEAD and self._characters < READ_AHEAD_CHARACTERS
