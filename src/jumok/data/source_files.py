"""The files of a corpus: copies of those that can be read only once, and a fingerprint of all of them."""

import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path
from secrets import token_hex
from typing import Any, BinaryIO

from jumok.data.examples import Paths
from jumok.data.reading.directories import files_of_classes
from jumok.data.reading.lines import STANDARD_INPUT, display_name, escaped, format_of
from jumok.errors import InputError
from jumok.files import REAL_FILES, explained_writing, make_directory_durably, remove

_COPIED_BYTES = 1 << 20


def require_files(paths: Paths, advice: str = "") -> None:
    """Refuse a path that does not exist, or that the system does not even accept as a name."""
    for path in paths:
        if str(path) != STANDARD_INPUT and not os.path.exists(path):
            raise InputError(f"{path}: no such file. {advice}".rstrip())


@dataclass(frozen=True)
class SourceFile:
    """A file or directory of a corpus, and what was in it."""

    name: str  # as it was given, without its directory
    path: Path  # where the content is: a copy, if it can be read only once
    digests: tuple[bytes, ...]  # SHA-256 of the file, or of every file in the directory
    bytes: int

    def to_json(self) -> dict[str, Any]:
        """What a run records, to say later what it was trained on."""
        return {"name": self.name, "bytes": self.bytes, "sha256": sha256(b"".join(self.digests)).hexdigest()}


class SourceFiles(AbstractContextManager["SourceFiles"]):
    """The files of a corpus. Standard input and pipes are copied into `directory`, under names that depend on their
    content, so that no copy replaces another. After an error the new copies are removed, otherwise the older ones."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._new: list[Path] = []
        self._older: list[Path] = []

    def __exit__(self, error_type: object, *_: object) -> None:
        for path in self._older if error_type is None else self._new:
            remove(REAL_FILES, path)

    def read(self, paths: Paths, role: str) -> list[SourceFile]:
        """These files, their content digested. `role` begins the names of copies."""
        return [self._read(path, f"{role}-{number}", len(paths) == 1) for number, path in enumerate(paths)]

    def _read(self, given: str | Path, name: str, is_table: bool) -> SourceFile:
        path = Path(given)
        if str(given) == STANDARD_INPUT:
            path = self._keep(sys.stdin.buffer, name, ".tsv" if is_table else ".txt")
        elif path.is_fifo():
            with open(path, "rb") as pipe:
                path = self._keep(pipe, name, "".join(path.suffixes) or (".tsv" if is_table else ".txt"))
        found = [_digest(file) for file in _all_files(path)]
        digests, sizes = tuple(digest for digest, _ in found), (size for _, size in found)
        shown = display_name(given) if str(given) == STANDARD_INPUT else escaped(Path(given).name)
        return SourceFile(shown, path, digests, sum(sizes))

    def _keep(self, stream: BinaryIO, name: str, suffix: str) -> Path:
        """Copy a stream to `name`-digest`suffix`."""
        make_directory_durably(REAL_FILES, self._directory)
        temporary, digest = self._directory / f".tmp-{name}-{token_hex(4)}", sha256()
        older = [path for path in self._directory.iterdir() if path.name.startswith((f"{name}-", f"{name}."))]
        try:
            with explained_writing(temporary):
                with REAL_FILES.create(temporary) as file:
                    while data := stream.read(_COPIED_BYTES):
                        digest.update(data)
                        REAL_FILES.write(file, memoryview(data))
                    REAL_FILES.sync(file)
                copy = self._directory / f"{name}-{digest.hexdigest()[:16]}{suffix}"
                REAL_FILES.rename(temporary, copy)
                REAL_FILES.sync_directory(self._directory)
        except BaseException:
            if temporary.exists():
                remove(REAL_FILES, temporary)
            raise
        if copy not in older:
            self._new.append(copy)
        self._older += [path for path in older if path != copy]
        return copy


def fingerprint_of(sources: Sequence[SourceFile], *settings: object) -> str:
    """A digest of the contents of files and directories, of the names that matter, and of settings."""
    names = [_deciding_names(source.path) for source in sources]
    settings = (*settings, names) if any(names) else settings
    digest = sha256(repr(settings).encode())
    for each in chain.from_iterable(source.digests for source in sources):
        digest.update(each)
    return digest.hexdigest()


def _digest(path: Path) -> tuple[bytes, int]:
    """SHA-256 and size of a file."""
    try:
        with open(path, "rb") as file:
            return file_digest(file, "sha256").digest(), file.tell()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}). Make it readable, or give another.") from error


def _all_files(path: Path) -> list[Path]:
    """The file, or every file in a directory, in a fixed order."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in files_of_classes(path) if file.is_file())


def _deciding_names(path: Path) -> list[str]:
    """The parts of names that change what is read: labels of texts in directories, and whether a table is CSV or TSV.
    A file of any other format cannot be read under the name of another, so that its name does not matter."""
    if path.is_dir():
        return [file.relative_to(path).as_posix() for file in _all_files(path)]
    return [".csv"] if format_of(path) == ".csv" else []
