"""Validation examples in a file, one JSON object a line: each is read when it is asked for, so that all of them may be
larger than memory."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from jumok import files
from jumok.data.examples import Example
from jumok.files import REAL_FILES


class ExamplesFile(Sequence[Example]):
    """The examples in a file. All are parsed once: ValueError, KeyError, TypeError or OSError if it is damaged."""

    def __init__(self, path: Path) -> None:
        files.regular_size(path)
        self._ends = [0]
        with open(path, "rb") as file:
            for line in file:
                _parse(line)
                self._ends.append(self._ends[-1] + len(line))
        self._data = np.memmap(path, np.uint8, mode="r")  # of this file, whatever takes its name

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            return [self[number] for number in range(len(self))[index]]
        number = range(len(self))[index]
        return _parse(self._data[self._ends[number] : self._ends[number + 1]].tobytes())

    @classmethod
    def write(cls, path: Path, examples: Iterable[Example]) -> "ExamplesFile":
        """Replace a file by one of these examples. It stays as it is if they end in an error."""
        with files.replacing_durably(REAL_FILES, path) as file:
            for example in examples:
                line = json.dumps(example._asdict(), ensure_ascii=False) + "\n"
                file.write(line.encode(errors="backslashreplace"))  # a file's name need not be Unicode
        return cls(path)


def _parse(line: bytes) -> Example:
    if not line.endswith(b"\n"):
        raise ValueError("a file of examples ends within a line")
    value = json.loads(line)
    # Stores of earlier versions call the inputs "texts".
    return Example(tuple(value["inputs"] if "inputs" in value else value["texts"]), value["where"], value["label"])
