"""The files of a corpus: copies of those that can be read only once, and a fingerprint of all of them."""

import os
import shutil
import sys
from collections.abc import Sequence
from hashlib import file_digest, sha256
from itertools import chain
from pathlib import Path

from jumok.data.examples import Paths
from jumok.data.reading.lines import STANDARD_INPUT, format_of
from jumok.errors import InputError
from jumok.files import REAL_FILES, explained_writing, make_directory_durably


def require_files(paths: Paths, advice: str = "") -> None:
    """Refuse a path that does not exist, or that the system does not even accept as a name."""
    for path in paths:
        if str(path) != STANDARD_INPUT and not os.path.exists(path):
            raise InputError(f"{path}: no such file. {advice}".rstrip())


def keep_streams(paths: Paths, directory: Path, name: str) -> list[Path]:
    """The same paths, with standard input and pipes replaced by copies of their content, `name`-0 … in `directory`."""
    kept = []
    for number, path in enumerate(paths):
        is_standard_input = str(path) == STANDARD_INPUT
        if is_standard_input or Path(path).is_fifo():
            suffixes = "" if is_standard_input else "".join(Path(path).suffixes)
            copy = directory / f"{name}-{number}{suffixes or ('.tsv' if len(paths) == 1 else '.txt')}"
            make_directory_durably(REAL_FILES, directory)
            with explained_writing(copy), open(copy, "wb") as file:
                if is_standard_input:
                    shutil.copyfileobj(sys.stdin.buffer, file)
                else:
                    with open(path, "rb") as pipe:
                        shutil.copyfileobj(pipe, file)
            path = copy
        kept.append(Path(path))
    return kept


def fingerprint_of(paths: Sequence[Path], *settings: object) -> str:
    """A digest of the contents of files and directories, of the names that matter, and of settings."""
    names = [_deciding_names(path) for path in paths]
    settings = (*settings, names) if any(names) else settings
    digest = sha256(repr(settings).encode())
    for path in chain.from_iterable(map(_all_files, paths)):
        try:
            with open(path, "rb") as file:
                digest.update(file_digest(file, "sha256").digest())
        except OSError as error:
            raise InputError(
                f"{path}: cannot be read ({error.strerror}). Make it readable, or give another."
            ) from error
    return digest.hexdigest()


def _all_files(path: Path) -> list[Path]:
    """The file, or every file in a directory, in a fixed order."""
    if not path.is_dir():
        return [path]
    # rglob does not follow links by itself, but the directory of a class may be one.
    return sorted(file for entry in path.iterdir() for file in (entry, *entry.rglob("*")) if file.is_file())


def _deciding_names(path: Path) -> list[str]:
    """The parts of names that change what is read: labels of texts in directories, and whether a table is CSV or TSV.
    A file of any other format cannot be read under the name of another, so that its name does not matter."""
    if path.is_dir():
        return [file.relative_to(path).as_posix() for file in _all_files(path)]
    return [".csv"] if format_of(path) == ".csv" else []
