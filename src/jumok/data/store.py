"""Token ids and pictures on disk, memory-mapped: built once, read in any order, possibly larger than memory.
A store (source.ids, source.lengths, target.ids, target.lengths … store.json) is renamed to its name when complete.
After 16 million examples the next shard begins (source.00001.ids …): files of a size that can be copied and checked."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
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

SHARD_EXAMPLES = 1 << 24
_EXAMPLES_AT_A_TIME, _PICTURES_AT_A_TIME = 1000, 32  # written; a large picture takes a megabyte
_STRIDE = 16


class _Column:
    """One column of one shard: the ids of all its examples, concatenated, and their lengths. Both are mapped; only the
    offset of every 16th example is kept in memory."""

    def __init__(self, ids: npt.NDArray[Any], lengths: npt.NDArray[np.int32]) -> None:
        self.ids, self.lengths = ids, lengths
        starts = np.arange(0, len(lengths), _STRIDE)
        sums = np.add.reduceat(lengths, starts, dtype=np.int64) if len(lengths) else starts
        self._offsets = np.cumsum(sums) - sums
        self.total = int(sums.sum())

    def gather(self, indices: Indices) -> tuple[npt.NDArray[Any], npt.NDArray[np.int64]]:
        """The concatenated ids of these examples, and their lengths."""
        lengths = self.lengths[indices].astype(np.int64)
        ends = np.cumsum(lengths)
        first = np.repeat(self._offsets_of(indices) - ends + lengths, lengths)
        return self.ids[first + np.arange(len(first))], lengths

    def _offsets_of(self, indices: Indices) -> npt.NDArray[np.int64]:
        blocks, rest = np.divmod(indices, _STRIDE)
        before = np.arange(_STRIDE)
        lengths = self.lengths.take(blocks[:, None] * _STRIDE + before, mode="clip")
        offsets: npt.NDArray[np.int64] = self._offsets[blocks] + (lengths * (before < rest[:, None])).sum(1)
        return offsets


_Shard = Mapping[str, _Column]


class TokenStore:
    """Examples, each with a sequence of ids in every column. A large store has several shards; only their files differ,
    not what is read from it."""

    def __init__(self, shards: Sequence[_Shard]) -> None:
        self._shards = shards
        counts = [len(next(iter(shard.values())).lengths) for shard in shards]
        self._ends = np.cumsum(counts)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def lengths(self, column: str, examples: slice = slice(None)) -> npt.NDArray[np.int32]:
        """Number of ids of each of some examples in a column."""
        first, last, _ = examples.indices(len(self))
        parts = []
        for shard, end in zip(self._shards, self._ends, strict=True):
            lengths = shard[column].lengths
            start = int(end) - len(lengths)
            parts.append(lengths[max(0, first - start) : max(0, last - start)])
        return np.asarray(parts[0] if len(parts) == 1 else np.concatenate(parts))

    def followed_by(self, other: Self) -> Self:
        """These examples, and those of another store with the same columns behind them. Nothing is copied."""
        return type(self)([*self._shards, *other._shards])

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same examples in columns of other names: from each new name to the old one. Nothing is copied."""
        return type(self)([{new: shard[old] for new, old in names.items()} for shard in self._shards])

    def example(self, column: str, index: int) -> list[int]:
        """The ids of one example."""
        return list(self.gather(column, np.array([index]))[0].tolist())

    def gather(self, column: str, indices: Indices) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The concatenated ids of several examples, and their lengths."""
        found = [(rows, *data.gather(own)) for rows, data, own in self._in_shards(column, indices)]
        if len(found) == 1:
            [(_, ids, lengths)] = found
            return ids.astype(np.int64), lengths
        examples: list[npt.NDArray[Any]] = [np.empty(0, np.int64)] * len(indices)
        for rows, ids, lengths in found:
            for row, part in zip(rows, np.split(ids, np.cumsum(lengths)[:-1]), strict=True):
                examples[row] = part
        lengths = np.array([len(part) for part in examples], np.int64)
        return np.concatenate([np.empty(0, np.int64), *examples]), lengths

    def gather_rows(self, column: str, indices: Indices) -> npt.NDArray[Any]:
        """[B, N] The ids of several examples of a column whose examples all have N ids: pictures of one shape."""
        first = self._shards[0][column]
        gathered = np.empty((len(indices), len(first.ids) // len(first.lengths)), first.ids.dtype)
        for rows, data, own in self._in_shards(column, indices):
            gathered[rows] = data.ids.reshape(len(data.lengths), -1)[own]
        return gathered

    def _in_shards(self, column: str, indices: Indices) -> Iterator[tuple[npt.NDArray[np.intp], _Column, Indices]]:
        """For each shard that has some of these examples: their rows in `indices`, the data, their numbers in it."""
        if len(self._shards) == 1:
            yield np.arange(len(indices)), self._shards[0][column], indices
            return
        numbers = np.searchsorted(self._ends, indices, side="right")
        for number in np.unique(numbers):
            data = self._shards[number][column]
            rows = np.flatnonzero(numbers == number)
            yield rows, data, indices[rows] - (self._ends[number] - len(data.lengths))

    @classmethod
    def build(
        cls,
        directory: Path,
        examples: Iterable[Sequence[Sequence[int]]],
        *,
        columns: Sequence[str],
        fingerprint: str,
        pictures: Sequence[str] = (),
        shard_examples: int | None = None,
    ) -> Self:
        """Write a store, in bounded memory. The columns named in `pictures` hold bytes. After every `shard_examples`,
        16 million unless given, a new shard begins."""
        files.make_directory_durably(REAL_FILES, directory.parent)
        with files.temporary_directory(REAL_FILES, directory.parent) as building, files.explained_writing(directory):
            types = {name: np.uint8 if name in pictures else np.int32 for name in columns}
            counts, records = _write_shards(building, examples, types, shard_examples or SHARD_EXAMPLES)
            index: dict[str, Any] = {"fingerprint": fingerprint, "columns": list(columns), "examples": sum(counts)}
            index |= {"pictures": list(pictures), "shards": counts}
            index["files"] = {name: asdict(record) for name, record in records.items()}
            with REAL_FILES.create(building / INDEX) as file:
                REAL_FILES.write(file, memoryview(files.format_json(index)))
                REAL_FILES.sync(file)
            REAL_FILES.sync_directory(building)
            if directory.exists():
                files.remove(REAL_FILES, files.set_aside(REAL_FILES, directory))
            REAL_FILES.rename(building, directory)
            REAL_FILES.sync_directory(directory.parent)
        return cls([_map_shard(directory, number, types) for number in range(len(counts))])

    @classmethod
    def open(cls, directory: Path, fingerprint: str) -> Self | None:
        """The store in a directory; None if it is missing, damaged or of other data."""
        try:
            path = directory / INDEX
            index = files.parse_json_object(files.read_bounded(path, files.MAX_JSON_BYTES), path)
            if index["fingerprint"] != fingerprint:
                return None
            # A store of an earlier version has neither pictures nor shards.
            pictures, counts = index.get("pictures", []), index.get("shards", [index["examples"]])
            types = {name: np.uint8 if name in pictures else np.int32 for name in index["columns"]}
            # Damaged ids would be trained on. Reading every file takes about a second for each gigabyte.
            for name in (name for number in range(len(counts)) for each in types for name in _files_of(each, number)):
                files.open_verified(directory / name, FileRecord(**index["files"][name])).close()
            shards = [_map_shard(directory, number, types) for number in range(len(counts))]
            sizes = [(len(column.lengths), column.total) for shard in shards for column in shard.values()]
            expected = zip(counts, shards, strict=True)
            complete = sizes == [(count, len(column.ids)) for count, shard in expected for column in shard.values()]
            complete = complete and sum(counts) == index["examples"]
        except (files.UnreadableError, OSError, KeyError, TypeError, AttributeError, ValueError):
            return None
        return cls(shards) if types and shards and complete else None


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


def _write_shards(
    directory: Path, examples: Iterable[Sequence[Sequence[int]]], types: Mapping[str, ValueType], shard_examples: int
) -> tuple[list[int], dict[str, FileRecord]]:
    """Write the files of all columns; returns the number of examples in each shard and a record of each file."""
    counts: list[int] = []
    records: dict[str, FileRecord] = {}
    waiting = iter(examples)
    while (first := next(waiting, None)) is not None or not counts:
        shard = chain(() if first is None else (first,), islice(waiting, shard_examples - 1))
        count, written = _write_shard(directory, len(counts), shard, types)
        counts.append(count)
        records |= written
    return counts, records


def _write_shard(
    directory: Path, number: int, examples: Iterator[Sequence[Sequence[int]]], types: Mapping[str, ValueType]
) -> tuple[int, dict[str, FileRecord]]:
    count, at_a_time = 0, _PICTURES_AT_A_TIME if np.uint8 in types.values() else _EXAMPLES_AT_A_TIME
    with ExitStack() as stack:
        written = {
            name: _SummedFile(stack.enter_context(REAL_FILES.create(directory / name)))
            for column in types
            for name in _files_of(column, number)
        }
        while chunk := list(islice(examples, at_a_time)):
            count += len(chunk)
            for position, (column, kind) in enumerate(types.items()):
                sequences = [example[position] for example in chunk]
                ids_file, lengths_file = (written[name] for name in _files_of(column, number))
                lengths_file.write(np.fromiter(map(len, sequences), np.int32, len(sequences)))
                ids_file.write(_concatenated(sequences, kind))
        return count, {name: file.finish() for name, file in written.items()}


def _concatenated(sequences: Sequence[Sequence[int]], kind: ValueType) -> npt.NDArray[Any]:
    if kind is np.uint8:
        return np.frombuffer(b"".join(map(bytes, sequences)), np.uint8)
    return np.fromiter(chain.from_iterable(sequences), kind)


def _files_of(column: str, shard: int) -> tuple[str, str]:
    """The first shard has the names that a store without shards has."""
    part = f".{shard:05d}" if shard else ""
    return f"{column}{part}.ids", f"{column}{part}.lengths"


def _map_shard(directory: Path, number: int, types: Mapping[str, ValueType]) -> _Shard:
    mapped = {}
    for column, kind in types.items():
        ids, lengths = _files_of(column, number)
        mapped[column] = _Column(_map(directory / ids, kind), _map(directory / lengths, np.int32))
    return mapped


def _map(path: Path, kind: ValueType) -> npt.NDArray[Any]:
    """The numbers in a file. An empty file cannot be mapped."""
    return np.memmap(path, kind, mode="r") if path.stat().st_size else np.empty(0, kind)
