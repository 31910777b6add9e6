"""Writing that survives crashes and full disks. Everything that changes the disk goes through a `FileSystem`."""

import errno
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from io import BufferedWriter, FileIO, RawIOBase
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

from jumok import system
from jumok.errors import WriteError
from jumok.files.json_text import format_json
from jumok.files.reading import FORMAT, MANIFEST, FileRecord

Contents = Mapping[str, bytes | Callable[[], bytes]]

_NONE: Mapping[str, Contents] = {}
_TEMPORARY, _TRASH = ".tmp-", ".trash-"
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_BROKEN = (errno.EIO, errno.EROFS)
_SPARE_BYTES = 1 << 20  # for directory entries, the manifest and half-filled blocks


class FileSystem:
    """The operations that change the disk. New files get the permissions that the umask leaves."""

    def create(self, path: Path) -> FileIO:
        return open(path, "xb", buffering=0)

    def open_to_append(self, path: Path) -> FileIO:
        return open(path, "ab", buffering=0)

    def create_unnamed(self, directory: Path) -> FileIO:
        """A file to write and read that the system removes with its last handle, after a crash too."""
        return TemporaryFile(dir=directory, prefix="unnamed-", buffering=0)

    def call_writer(self, write: Callable[[], object], directory: Path) -> None:
        """Call a function of another library that creates files in `directory` by itself."""
        write()

    def write(self, file: FileIO, data: memoryview) -> None:
        while data:  # one call may write less than it was given
            data = data[file.write(data) :]

    def truncate(self, path: Path, size: int) -> None:
        os.truncate(path, size)

    def sync(self, file: FileIO) -> None:
        system.sync_file(file.fileno())

    def rename(self, source: Path, target: Path) -> None:
        system.retry_while_in_use(lambda: os.replace(source, target))

    def sync_directory(self, path: Path) -> None:
        system.sync_directory(path)

    def make_directory(self, path: Path) -> None:
        path.mkdir()

    def remove(self, path: Path) -> None:
        is_tree = path.is_dir() and not path.is_symlink()
        system.retry_while_in_use(lambda: shutil.rmtree(path) if is_tree else path.unlink())

    def free_bytes(self, path: Path) -> int:
        return shutil.disk_usage(path).free


REAL_FILES = FileSystem()


def write_directory_durably(
    fs: FileSystem, final: Path, files: Contents, *, bytes_needed: int, directories: Mapping[str, Contents] = _NONE
) -> None:
    """Create the directory `final`, which must not exist, with a manifest: complete and on the disk, or not at all.
    A content may be a function that returns it, so that only one large file is in memory at a time.
    `directories` are written inside of it, each with a manifest of its own.
    `bytes_needed` is compared with the free space first. A failure leaves nothing behind, a kill leaves a `.tmp-*`."""
    with _renamed_to(fs, final, bytes_needed) as temporary:
        if os.path.lexists(final):
            raise FileExistsError(errno.EEXIST, "it exists already")
        _write_directory(fs, temporary, files, directories)


def replace_file_durably(fs: FileSystem, path: Path, data: bytes) -> None:
    """Replace the content of a file. Readers find all of the old or all of the new, also after a crash."""
    with _renamed_to(fs, path, len(data)) as temporary:
        _write_file(fs, temporary, data)


@contextmanager
def replacing_durably(fs: FileSystem, path: Path) -> Iterator[BinaryIO]:
    """Yield a file whose content replaces that of `path` at the end, if all went well. For content that is not in
    memory. Readers find all of the old or all of the new, also after a crash."""
    temporary = _beside(path, _TEMPORARY)
    try:
        with explained_writing(path):
            with fs.create(temporary) as file:
                with BufferedWriter(_Through(fs, file)) as writer:
                    yield writer
                fs.sync(file)
            fs.rename(temporary, path)
            fs.sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            fs.remove(temporary)
        raise


class _Through(RawIOBase):
    """Passes on to a FileSystem what is written."""

    def __init__(self, fs: FileSystem, file: FileIO) -> None:
        self._fs, self._file = fs, file

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:  # bytes or another buffer
        view = memoryview(data)
        self._fs.write(self._file, view)
        return view.nbytes


@contextmanager
def temporary_directory(fs: FileSystem, parent: Path) -> Iterator[Path]:
    """Yield a new directory in `parent` that is removed at the end; after a kill, `clean_leftovers` removes it."""
    temporary = _beside(parent / "directory", _TEMPORARY)
    try:
        with explained_writing(temporary):
            fs.make_directory(temporary)
        yield temporary
    finally:
        if temporary.exists():
            remove(fs, temporary)


def make_directory_durably(fs: FileSystem, path: Path) -> None:
    """Create a directory and its missing parents, unless it exists."""
    if os.path.isdir(path):  # False too for a name that is too long
        return
    make_directory_durably(fs, path.parent)
    try:
        fs.make_directory(path)
        fs.sync_directory(path.parent)
    except OSError as error:
        raise WriteError(f"{path}: the directory cannot be created ({error.strerror}). Choose another one.") from error


def set_aside(fs: FileSystem, path: Path) -> Path:
    """Rename a file or directory before it is removed, so that nobody sees it half removed. Return the new path."""
    trash = _beside(path, _TRASH)
    try:
        fs.rename(path, trash)
        fs.sync_directory(path.parent)
    except OSError as error:
        raise WriteError(f"{path}: cannot be moved away ({error.strerror}). Move it by hand.") from error
    return trash


def remove(fs: FileSystem, path: Path) -> None:
    """Remove a file or directory that was set aside. What is still in use on Windows stays for `clean_leftovers`."""
    try:
        fs.remove(path)
    except OSError as error:
        if system.WINDOWS and isinstance(error, PermissionError) and is_leftover(path.name):
            return
        raise WriteError(f"{path}: a leftover cannot be removed ({error.strerror}). Remove it by hand.") from error


def clean_leftovers(fs: FileSystem, directory: Path) -> None:
    """Remove what killed processes left in `directory`. No other process may be writing there."""
    for entry in sorted(directory.iterdir()):
        if is_leftover(entry.name):
            remove(fs, entry)


def is_leftover(name: str) -> bool:
    """Return whether `clean_leftovers` would remove an entry of this name."""
    return name.startswith((_TEMPORARY, _TRASH))


def _beside(path: Path, prefix: str) -> Path:
    return path.parent / f"{prefix}{path.name}-{secrets.token_hex(4)}"


def _write_directory(fs: FileSystem, path: Path, files: Contents, directories: Mapping[str, Contents] = _NONE) -> None:
    fs.make_directory(path)
    for name, contents in directories.items():
        _write_directory(fs, path / name, contents)
    records = {}
    for name, content in files.items():
        records[name] = _write_file(fs, path / name, content if isinstance(content, bytes) else content())
    manifest = {"format": FORMAT, "files": {name: asdict(record) for name, record in records.items()}}
    _write_file(fs, path / MANIFEST, format_json(manifest))
    # The order is the promise: content before manifest before the name that makes them count.
    fs.sync_directory(path)


def _write_file(fs: FileSystem, path: Path, data: bytes) -> FileRecord:
    with fs.create(path) as file:
        fs.write(file, memoryview(data))
        fs.sync(file)
    return FileRecord(len(data), hashlib.sha256(data).hexdigest())


@contextmanager
def explained_writing(target: Path) -> Iterator[None]:
    """Turn the error of a full or broken disk, a quota or a limit into a WriteError. Other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*_FULL, *_BROKEN):
            raise
        advice = "Choose another place"
        if error.errno in _FULL:
            free = shutil.disk_usage(next(place for place in target.parents if place.is_dir())).free
            advice = f"{free:,} bytes are free and more are needed. Free some space, or choose another place"
        raise WriteError(
            f"{target}: cannot be written ({error.strerror}). {advice}, and run the same command again."
        ) from error


@contextmanager
def _renamed_to(fs: FileSystem, target: Path, bytes_needed: int) -> Iterator[Path]:
    """Yield a temporary path and rename it to `target` at the end. A failure is explained and leaves nothing behind."""
    temporary = _beside(target, _TEMPORARY)
    try:
        free = fs.free_bytes(target.parent)
        if free < bytes_needed + _SPARE_BYTES:
            raise OSError(errno.ENOSPC, f"{free:,} bytes are free")
        yield temporary
        fs.rename(temporary, target)
        fs.sync_directory(target.parent)
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
