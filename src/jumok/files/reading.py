"""Reading durable files: at most as many bytes as expected, never through a link, verified before use."""

import hashlib
import re
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from jumok.errors import UnreadableError
from jumok.files.json_text import MAX_JSON_BYTES, parse_json_object, shown

MANIFEST = "MANIFEST.json"
FORMAT = 1
"""Version of directories with a manifest; increased when an older Jumok cannot read what a newer one writes."""

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class FileRecord:
    """The manifest's entry of one file."""

    size: int
    sha256: str


def read_manifest(directory: Path) -> dict[str, FileRecord]:
    """Return the records of a durable directory's files. Other files may lie beside them and must not be read."""
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
    """Compare every file with the manifest: all sizes first, because that is quick, then all SHA-256 sums."""
    records = read_manifest(directory)
    for name, record in records.items():
        require_size(directory / name, record)
    for name, record in records.items():
        open_verified(directory / name, record).close()
    return records


def open_verified(path: Path, record: FileRecord) -> BufferedReader:
    """Open a file after comparing its size and SHA-256 with the record, in bounded memory."""
    require_size(path, record)
    with reading_explained(path), ExitStack() as closed_on_failure:
        file = closed_on_failure.enter_context(open(path, "rb"))
        digest = hashlib.file_digest(file, "sha256")
        _require_sum(path, record, digest.hexdigest())
        file.seek(0)
        closed_on_failure.pop_all()
        return file


def read_verified(path: Path, record: FileRecord, limit: int) -> bytes:
    """Return the content of a file after comparing exactly these bytes with the record."""
    require_size(path, record)
    data = read_bounded(path, limit)
    _require_sum(path, record, hashlib.sha256(data).hexdigest())
    return data


def read_bounded(path: Path, limit: int) -> bytes:
    """Return the content of a regular file of at most `limit` bytes; refuse a link, a pipe or a larger file unread."""
    size = regular_size(path)
    if size > limit:
        raise UnreadableError(path, f"has {size:,} bytes, at most {limit:,} are expected")
    with reading_explained(path), open(path, "rb") as file:
        return file.read(size)


def _parse_record(where: Path, name: str, entry: object) -> FileRecord:
    if not _PLAIN_NAME.fullmatch(name) or name == MANIFEST:
        raise UnreadableError(where, f"lists {shown(name)}, which is not a plain file name")
    if not isinstance(entry, dict) or set(entry) != {"size", "sha256"}:
        raise UnreadableError(where, f'needs "size" and "sha256" for {shown(name)}')
    size, sha256 = entry["size"], entry["sha256"]
    if type(size) is not int or size < 0 or not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
        raise UnreadableError(where, f"has an impossible size or sha256 for {shown(name)}")
    return FileRecord(size, sha256)


def regular_size(path: Path) -> int:
    """Return the size of a regular file; refuse anything else, such as a link or a directory."""
    with reading_explained(path):
        status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        raise UnreadableError(path, f"is {kind}, which is never followed: it could lead anywhere")
    return status.st_size


def require_size(path: Path, record: FileRecord) -> None:
    """Refuse a file that has another size than its record says."""
    size = regular_size(path)
    if size != record.size:
        raise UnreadableError(path, f"is damaged: it has {size:,} bytes, {MANIFEST} says {record.size:,}")


def _require_sum(path: Path, record: FileRecord, sha256: str) -> None:
    if sha256 != record.sha256:
        raise UnreadableError(path, f"is damaged: its SHA-256 is not the one in {MANIFEST}")


@contextmanager
def reading_explained(path: Path) -> Iterator[None]:
    """Turn an OSError into an UnreadableError."""
    try:
        yield
    except FileNotFoundError as error:
        raise UnreadableError(path, "is missing") from error
    except OSError as error:
        forbidden = isinstance(error, PermissionError)
        advice = "Ask its owner for permission, or run as its owner." if forbidden else ""
        raise UnreadableError(path, f"cannot be read ({error.strerror})", advice, damaged=not forbidden) from error
