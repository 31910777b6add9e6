"""Files that survive a crash, a full disk and damage: written durably, verified before anyone believes them.

A durable directory holds its files and a MANIFEST.json with the size and SHA-256 of each. It is written under a
temporary name and renamed when everything in it is on the disk, so it exists whole or not at all. Everything that
changes the disk goes through a `FileSystem`; tests give one that fails on purpose.
"""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from io import BufferedReader, FileIO
from pathlib import Path
from typing import Any

from jumok.errors import JumokError

MANIFEST = "MANIFEST.json"
FORMAT = 1
"""Version of every directory with a manifest, raised when an older Jumok cannot read what a newer one writes."""

MAX_JSON_BYTES = 1 << 20
"""Small enough that even the worst JSON of this size, millions of empty lists, needs well under 100 MB once parsed."""

_TEMPORARY, _TRASH = ".tmp-", ".trash-"
_CHUNK = 4 << 20
_SPARE_BYTES = 1 << 20  # for directory entries, the manifest and half-filled blocks
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


class WriteError(JumokError):
    """Something could not be written: no space, no permission, a failing disk."""


class UnreadableError(JumokError):
    """Something that was written cannot be used. `damaged` is False if it may be whole, but not for this reader."""

    def __init__(self, where: Path, problem: str, advice: str = "", *, damaged: bool = True) -> None:
        self.problem = f"{where}: {problem}."
        super().__init__(f"{self.problem} {advice}".rstrip())
        self.advice = advice
        self.damaged = damaged


class FileSystem:
    """The operations that change the disk, and no others. Files get the permissions that the umask leaves."""

    def create(self, path: Path) -> FileIO:
        return open(path, "xb", buffering=0)

    def write(self, file: FileIO, data: memoryview) -> None:
        while data:  # one call may write less than it was given
            data = data[file.write(data) :]

    def truncate(self, path: Path, size: int) -> None:
        os.truncate(path, size)

    def sync(self, file: FileIO) -> None:
        os.fsync(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        os.replace(source, target)

    def sync_directory(self, path: Path) -> None:
        if os.name == "nt":  # Windows cannot open a directory, and keeps its entries in order by itself
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def make_directory(self, path: Path) -> None:
        path.mkdir()

    def remove(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()

    def free_bytes(self, path: Path) -> int:
        return shutil.disk_usage(path).free


REAL_FILES = FileSystem()


@dataclass(frozen=True)
class FileRecord:
    """What the manifest says of one file."""

    size: int
    sha256: str


def write_directory_durably(
    fs: FileSystem, final: Path, files: Mapping[str, bytes | Callable[[], bytes]], *, bytes_needed: int
) -> None:
    """Make the directory `final`, which must not exist, with a manifest: whole and on the disk, or not at all.

    A content may be a function that makes it, so that only one large file is in memory at a time. `bytes_needed`, of
    all of them, is checked against the free space first. Failing leaves nothing behind; being killed leaves a `.tmp-*`.
    """
    temporary = _beside(final, _TEMPORARY)
    with _cleaned_and_explained(fs, temporary, final, bytes_needed):
        if os.path.lexists(final):
            raise FileExistsError(errno.EEXIST, "it exists already")
        _require_space(fs, final, bytes_needed)
        fs.make_directory(temporary)
        records = {}
        for name, content in files.items():
            records[name] = _write_file(fs, temporary / name, content if isinstance(content, bytes) else content())
        manifest = {"format": FORMAT, "files": {name: asdict(record) for name, record in records.items()}}
        _write_file(fs, temporary / MANIFEST, format_json(manifest))
        # The order is the promise: content before manifest before the name that makes them count.
        fs.sync_directory(temporary)
        fs.rename(temporary, final)
        fs.sync_directory(final.parent)


def replace_file_durably(fs: FileSystem, path: Path, data: bytes) -> None:
    """Put `data` at `path`: whoever reads it, also after a crash, finds the old content or the new, whole."""
    temporary = _beside(path, _TEMPORARY)
    with _cleaned_and_explained(fs, temporary, path, len(data)):
        _require_space(fs, path, len(data))
        _write_file(fs, temporary, data)
        fs.rename(temporary, path)
        fs.sync_directory(path.parent)


def make_directory_durably(fs: FileSystem, path: Path) -> None:
    """Make `path` and its missing parents; fine if it exists."""
    if path.is_dir():
        return
    make_directory_durably(fs, path.parent)
    try:
        fs.make_directory(path)
        fs.sync_directory(path.parent)
    except OSError as error:
        raise WriteError(f"{path}: the directory cannot be made ({error.strerror}). Choose another place.") from error


def set_aside(fs: FileSystem, path: Path) -> Path:
    """Take a directory's name away before it is removed, so that nobody sees it half removed; returns the new name."""
    trash = _beside(path, _TRASH)
    try:
        fs.rename(path, trash)
        fs.sync_directory(path.parent)
    except OSError as error:
        raise WriteError(f"{path}: cannot be moved away ({error.strerror}). Move it by hand.") from error
    return trash


def remove(fs: FileSystem, path: Path) -> None:
    """Remove a leftover: what nobody looks for any more."""
    try:
        fs.remove(path)
    except OSError as error:
        raise WriteError(f"{path}: a leftover cannot be removed ({error.strerror}). Remove it by hand.") from error


def clean_leftovers(fs: FileSystem, directory: Path) -> None:
    """Remove what killed writers and removers left in `directory`. Nobody else may be writing there meanwhile."""
    for entry in sorted(directory.iterdir()):
        if is_leftover(entry.name):
            remove(fs, entry)


def is_leftover(name: str) -> bool:
    """Whether an entry of a directory is what `clean_leftovers` would remove."""
    return name.startswith((_TEMPORARY, _TRASH))


def read_manifest(directory: Path) -> dict[str, FileRecord]:
    """What files a durable directory consists of. Others may lie beside them; nothing should read those."""
    where = directory / MANIFEST
    manifest = parse_json_object(read_bounded(where, MAX_JSON_BYTES), where)
    version = manifest.get("format")
    if isinstance(version, int) and version > FORMAT:
        advice = "Upgrade: pip install --upgrade jumok"
        raise UnreadableError(where, f"has format {version}, this Jumok reads up to {FORMAT}", advice, damaged=False)
    files = manifest.get("files")
    if type(version) is not int or version != FORMAT or not isinstance(files, dict):
        raise UnreadableError(where, 'has no valid "format" and "files"')
    return {name: _parse_record(where, name, entry) for name, entry in files.items()}


def verify_directory(directory: Path) -> dict[str, FileRecord]:
    """Read every file that the manifest lists and compare: all sizes first, because that is quick, then all sums."""
    records = read_manifest(directory)
    for name, record in records.items():
        _require_size(directory / name, record)
    for name, record in records.items():
        open_verified(directory / name, record).close()
    return records


def open_verified(path: Path, record: FileRecord) -> BufferedReader:
    """Open a file that is what the record says; read through in bounded memory, and left at its start."""
    _require_size(path, record)
    with _reading_explained(path), ExitStack() as closed_on_failure:
        file = closed_on_failure.enter_context(open(path, "rb"))
        digest = hashlib.file_digest(file, "sha256")
        _require_sum(path, record, digest.hexdigest())
        file.seek(0)
        closed_on_failure.pop_all()
        return file


def read_verified(path: Path, record: FileRecord, limit: int) -> bytes:
    """The content of a file, which is what the record says: the very bytes returned are those compared."""
    _require_size(path, record)
    data = read_bounded(path, limit)
    _require_sum(path, record, hashlib.sha256(data).hexdigest())
    return data


def read_bounded(path: Path, limit: int) -> bytes:
    """The content of a regular file of at most `limit` bytes; a link, a pipe or a larger file is refused unread."""
    size = _regular_size(path)
    if size > limit:
        raise UnreadableError(path, f"has {size:,} bytes, at most {limit:,} are expected")
    with _reading_explained(path), open(path, "rb") as file:
        return file.read(size)


def parse_json_object(data: bytes, where: Path) -> dict[str, Any]:
    """Parse strictly: UTF-8, one object, no key twice, no NaN or infinity, no endless nesting."""
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_unique_keys, parse_constant=_finite, parse_float=_finite
        )
    except (ValueError, RecursionError) as error:
        raise UnreadableError(where, f"is not valid JSON ({str(error) or 'nested too deeply'})") from error
    if not isinstance(value, dict):
        raise UnreadableError(where, f"holds a JSON {type(value).__name__}, an object is expected")
    return value


def format_json(value: Mapping[str, Any], *, limit: int = MAX_JSON_BYTES, indent: int | None = 1) -> bytes:
    """The JSON of a mapping, one that reads back equal: tuples, number keys, NaN and what is too long are refused."""
    data = (json.dumps(dict(value), indent=indent, ensure_ascii=False, allow_nan=False) + "\n").encode("utf-8")
    if json.loads(data) != dict(value):
        raise TypeError(f"JSON would change this value (a tuple, or a key that is no string?): {_shown(value)}")
    if len(data) > limit:
        raise ValueError(f"{len(data):,} bytes of JSON, at most {limit:,} can be read again")
    return data


def _beside(path: Path, prefix: str) -> Path:
    return path.parent / f"{prefix}{path.name}-{secrets.token_hex(4)}"


def _write_file(fs: FileSystem, path: Path, data: bytes) -> FileRecord:
    digest = hashlib.sha256()
    with fs.create(path) as file:
        for start in range(0, len(data), _CHUNK):
            chunk = memoryview(data)[start : start + _CHUNK]
            fs.write(file, chunk)
            digest.update(chunk)
        fs.sync(file)
    return FileRecord(len(data), digest.hexdigest())


def _require_space(fs: FileSystem, target: Path, bytes_needed: int) -> None:
    free = fs.free_bytes(target.parent)
    if free < bytes_needed + _SPARE_BYTES:
        raise OSError(errno.ENOSPC, f"{free:,} bytes are free")


@contextmanager
def _cleaned_and_explained(fs: FileSystem, temporary: Path, target: Path, bytes_needed: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        with suppress(OSError):  # a full disk must not stay full of what did not fit; what remains is a leftover
            fs.remove(temporary)
        if not isinstance(error, OSError):
            raise
        need = f"{bytes_needed + _SPARE_BYTES:,} bytes are needed"
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            advice = "Free some space and run the same command again; what was there before is untouched."
            raise WriteError(f"{target}: the disk is full ({error.strerror}): {need}. {advice}") from error
        raise WriteError(f"{target}: cannot be written ({error.strerror}); {need}.") from error


def _parse_record(where: Path, name: str, entry: object) -> FileRecord:
    if not _PLAIN_NAME.fullmatch(name) or name == MANIFEST:
        raise UnreadableError(where, f"lists {_shown(name)}, which is not a plain file name")
    if not isinstance(entry, dict) or set(entry) != {"size", "sha256"}:
        raise UnreadableError(where, f'needs "size" and "sha256" for {_shown(name)}')
    size, sha256 = entry["size"], entry["sha256"]
    if type(size) is not int or size < 0 or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise UnreadableError(where, f"has an impossible size or sha256 for {_shown(name)}")
    return FileRecord(size, sha256)


def _regular_size(path: Path) -> int:
    with _reading_explained(path):
        status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        raise UnreadableError(path, f"is {kind}, which is never followed: it could lead anywhere")
    return status.st_size


def _require_size(path: Path, record: FileRecord) -> None:
    size = _regular_size(path)
    if size != record.size:
        raise UnreadableError(path, f"is damaged: it has {size:,} bytes, {MANIFEST} says {record.size:,}")


def _require_sum(path: Path, record: FileRecord, sha256: str) -> None:
    if sha256 != record.sha256:
        raise UnreadableError(path, f"is damaged: its SHA-256 is not the one in {MANIFEST}")


@contextmanager
def _reading_explained(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise UnreadableError(path, "is missing") from error
    except OSError as error:
        forbidden = isinstance(error, PermissionError)
        advice = "Ask its owner for permission, or run as its owner." if forbidden else ""
        raise UnreadableError(path, f"cannot be read ({error.strerror})", advice, damaged=not forbidden) from error


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"the key {_shown(key)} appears twice")
        result[key] = value
    return result


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{_shown(text)} is not a finite number")
    return number


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:80] + "…"
