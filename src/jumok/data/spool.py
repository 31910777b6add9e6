"""Examples in a temporary file: a corpus is read and parsed once, however often its examples are needed."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from jumok.data.examples import Example
from jumok.files import REAL_FILES, explained_writing

_EXAMPLES_AT_A_TIME = 256
_CHARACTERS_AT_A_TIME = 1 << 24  # of texts and pictures


class Spool(AbstractContextManager["Spool"]):
    """A temporary file of numbered examples, as JSON. The system removes it with the last handle, after a crash too."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._pending: list[tuple[Any, ...]] = []
        self._sizes: list[int] = []  # of what was written, in bytes
        self._count = self._characters = 0
        with explained_writing(directory):
            self._file = REAL_FILES.create_unnamed(directory)

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, example: Example, number: int) -> None:
        """Append an example."""
        self._count += 1
        self._pending.append((number, example.where, example.label, *example.inputs))
        self._characters += sum(len(each) for each in example.inputs if isinstance(each, str))
        if len(self._pending) == _EXAMPLES_AT_A_TIME or self._characters > _CHARACTERS_AT_A_TIME:
            self._write_pending()

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[Example, int]]:
        """All examples in their order, with their numbers."""
        self._write_pending()
        offset = 0
        for size in self._sizes:
            self._file.seek(offset)
            offset += size
            for number, where, label, *inputs in json.loads(self._file.read(size)):
                yield Example(tuple(inputs), where, label), number

    def _write_pending(self) -> None:
        if self._pending:
            data = json.dumps(self._pending, ensure_ascii=False).encode()
            with explained_writing(self._directory):
                self._file.seek(0, 2)
                REAL_FILES.write(self._file, memoryview(data))
            self._sizes.append(len(data))
            self._pending.clear()
            self._characters = 0
