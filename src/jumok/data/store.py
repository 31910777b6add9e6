"""Token ids and pictures on disk, memory-mapped: built once, read in any order, possibly larger than memory.
A store (source.ids, source.lengths, target.ids, target.lengths … store.json) is renamed to its name when complete."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import FileIO
from itertools import chain, islice
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from jumok import files
from jumok.files import REAL_FILES, FileRecord

INDEX = "store.json"
Indices = npt.NDArray[np.int64]
ValueType = type[np.int32] | type[np.uint8]

_EXAMPLES_AT_A_TIME = 1000


@dataclass(frozen=True)
class _Column:
    ids: npt.NDArray[Any]  # of all examples, concatenated
    lengths: npt.NDArray[np.int64]
    offsets: npt.NDArray[np.int64]


class TokenStore:
    """Examples, each with a sequence of ids in every column."""

    def __init__(self, columns: dict[str, _Column]) -> None:
        self._columns = columns

    def __len__(self) -> int:
        return len(next(iter(self._columns.values())).lengths)

    def lengths(self, column: str) -> npt.NDArray[np.int64]:
        """Number of ids of each example in a column."""
        return self._columns[column].lengths

    def example(self, column: str, index: int) -> list[int]:
        """The ids of one example."""
        data = self._columns[column]
        start = data.offsets[index]
        return list(data.ids[start : start + data.lengths[index]].tolist())

    def gather(self, column: str, indices: Indices) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The concatenated ids of several examples, and their lengths."""
        data = self._columns[column]
        lengths = data.lengths[indices]
        first = np.repeat(data.offsets[indices] - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths)
        return data.ids[first + np.arange(len(first))].astype(np.int64), lengths

    def gather_rows(self, column: str, indices: Indices) -> npt.NDArray[Any]:
        """[B, N] The ids of several examples of a column whose examples all have N ids: pictures of one shape."""
        data = self._columns[column]
        rows: npt.NDArray[Any] = data.ids.reshape(len(data.lengths), -1)[indices]
        return np.asarray(rows)

    @classmethod
    def build(
        cls,
        directory: Path,
        examples: Iterable[Sequence[Sequence[int]]],
        *,
        columns: Sequence[str],
        fingerprint: str,
        pictures: Sequence[str] = (),
    ) -> Self:
        """Write a store, in bounded memory. The columns named in `pictures` hold bytes."""
        files.make_directory_durably(REAL_FILES, directory.parent)
        with files.temporary_directory(REAL_FILES, directory.parent) as building, files.explained_writing(directory):
            types = {name: np.uint8 if name in pictures else np.int32 for name in columns}
            count, records = _write_columns(building, examples, types)
            index: dict[str, Any] = {"fingerprint": fingerprint, "columns": list(columns), "examples": count}
            index["pictures"] = list(pictures)
            index["files"] = {name: asdict(record) for name, record in records.items()}
            with REAL_FILES.create(building / INDEX) as file:
                REAL_FILES.write(file, memoryview(files.format_json(index)))
                REAL_FILES.sync(file)
            REAL_FILES.sync_directory(building)
            if directory.exists():
                files.remove(REAL_FILES, files.set_aside(REAL_FILES, directory))
            REAL_FILES.rename(building, directory)
            REAL_FILES.sync_directory(directory.parent)
        return cls({name: _map_column(directory, name, kind) for name, kind in types.items()})

    @classmethod
    def open(cls, directory: Path, fingerprint: str) -> Self | None:
        """The store in a directory; None if it is missing, damaged or of other data."""
        try:
            path = directory / INDEX
            index = files.parse_json_object(files.read_bounded(path, files.MAX_JSON_BYTES), path)
            if index["fingerprint"] != fingerprint:
                return None
            # Damaged ids would be trained on. Reading every file takes about a second for each gigabyte.
            for name in chain.from_iterable(map(_files_of, index["columns"])):
                files.open_verified(directory / name, FileRecord(**index["files"][name])).close()
            pictures = index.get("pictures", [])  # a store of an earlier version has none
            types = {name: np.uint8 if name in pictures else np.int32 for name in index["columns"]}
            columns = {name: _map_column(directory, name, kind) for name, kind in types.items()}
            sizes = [(len(column.lengths), int(column.lengths.sum())) for column in columns.values()]
            complete = sizes == [(index["examples"], len(column.ids)) for column in columns.values()]
        except (files.UnreadableError, OSError, KeyError, TypeError, AttributeError, ValueError):
            return None
        return cls(columns) if columns and complete else None


class _SummedFile:
    """A file of numbers whose SHA-256 is computed while it is written."""

    def __init__(self, file: FileIO) -> None:
        self._file, self._digest = file, sha256()

    def write(self, numbers: npt.NDArray[Any]) -> None:
        data = numbers.tobytes()
        REAL_FILES.write(self._file, memoryview(data))
        self._digest.update(data)

    def finish(self) -> FileRecord:
        REAL_FILES.sync(self._file)
        return FileRecord(self._file.tell(), self._digest.hexdigest())


def _write_columns(
    directory: Path, examples: Iterable[Sequence[Sequence[int]]], types: Mapping[str, ValueType]
) -> tuple[int, dict[str, FileRecord]]:
    """Write the files of all columns; returns the number of examples and a record of each file."""
    count = 0
    waiting = iter(examples)
    with ExitStack() as stack:
        written = {
            name: _SummedFile(stack.enter_context(REAL_FILES.create(directory / name)))
            for column in types
            for name in _files_of(column)
        }
        while chunk := list(islice(waiting, _EXAMPLES_AT_A_TIME)):
            count += len(chunk)
            for position, (column, kind) in enumerate(types.items()):
                sequences = [example[position] for example in chunk]
                ids_file, lengths_file = (written[name] for name in _files_of(column))
                lengths_file.write(np.fromiter(map(len, sequences), np.int32, len(sequences)))
                ids_file.write(_concatenated(sequences, kind))
        return count, {name: file.finish() for name, file in written.items()}


def _concatenated(sequences: Sequence[Sequence[int]], kind: ValueType) -> npt.NDArray[Any]:
    if kind is np.uint8:
        return np.frombuffer(b"".join(map(bytes, sequences)), np.uint8)
    return np.fromiter(chain.from_iterable(sequences), kind)


def _files_of(column: str) -> tuple[str, str]:
    return f"{column}.ids", f"{column}.lengths"


def _map_column(directory: Path, name: str, kind: ValueType) -> _Column:
    path, lengths_path = (directory / file for file in _files_of(name))
    lengths = np.fromfile(lengths_path, np.int32).astype(np.int64)
    # An empty file cannot be mapped.
    ids = np.memmap(path, kind, mode="r") if path.stat().st_size else np.empty(0, kind)
    return _Column(ids, lengths, np.concatenate(([0], np.cumsum(lengths)[:-1])) if len(lengths) else lengths)
