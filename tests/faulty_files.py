"""A file system that fails on purpose: it crashes, runs full, and forgets what was never synced."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from jumok.files import FileSystem


class Crash(BaseException):
    """The process is gone. Not an Exception: no code that tidies up after errors may run."""


_CONTENT = ("content", "truncate")  # secured by syncing the file; names are secured by syncing their directory


@dataclass
class _Unsynced:
    """A change that a power failure undoes: content added to a file or cut off, a created name, or a rename."""

    kind: str
    path: Path
    source: Path | None = None
    replaced: bytes | None = None
    size_before: int = 0


class FaultyFiles(FileSystem):
    """Records every operation. Crashes at moment `crash_at`: before, after and, where it can be half done, inside each.

    With `power_loss` a crash also takes back everything that no fsync had secured: a misplaced fsync shows.
    """

    def __init__(
        self,
        *,
        crash_at: int | None = None,
        power_loss: bool = False,
        full_at_write: int | None = None,
        free: int = 1 << 40,
    ) -> None:
        self.operations: list[tuple[str, str]] = []
        self.writes = 0
        self._moments = 0
        self._crash_at, self._power_loss, self._full_at_write, self._free = crash_at, power_loss, full_at_write, free
        self._unsynced: list[_Unsynced] = []

    def create(self, path: Path) -> FileIO:
        self._moment()
        file = super().create(path)
        self._unsynced.append(_Unsynced("create", path))
        self.operations.append(("create", path.name))
        try:
            self._moment()
        except Crash:
            file.close()
            raise
        return file

    def write(self, file: FileIO, data: memoryview) -> None:
        path = Path(str(file.name))
        self._moment()
        self._unsynced.append(_Unsynced("content", path, size_before=path.stat().st_size))
        self.writes += 1
        super().write(file, data[: len(data) // 2])
        self._moment()
        if self.writes == self._full_at_write:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        super().write(file, data[len(data) // 2 :])
        self.operations.append(("write", path.name))
        self._moment()

    def truncate(self, path: Path, size: int) -> None:
        before = path.read_bytes()

        def shorten() -> None:
            super(FaultyFiles, self).truncate(path, size)
            self._unsynced.append(_Unsynced("truncate", path, replaced=before))

        self._perform("truncate", path, shorten)

    def sync(self, file: FileIO) -> None:
        path = Path(str(file.name))

        def secure() -> None:
            self._unsynced = [u for u in self._unsynced if u.kind not in _CONTENT or u.path != path]

        self._perform("sync", path, secure)

    def rename(self, source: Path, target: Path) -> None:
        replaced = target.read_bytes() if target.is_file() else None
        self._moment()
        super().rename(source, target)
        self._follow(source, target)
        self._unsynced.append(_Unsynced("rename", target, source, replaced))
        self.operations.append(("rename", target.name))
        self._moment()

    def sync_directory(self, path: Path) -> None:
        def secure() -> None:
            self._unsynced = [u for u in self._unsynced if u.kind in _CONTENT or u.path.parent != path]

        self._perform("sync_directory", path, secure)

    def make_directory(self, path: Path) -> None:
        def make() -> None:
            super(FaultyFiles, self).make_directory(path)
            self._unsynced.append(_Unsynced("make_directory", path))

        self._perform("make_directory", path, make)

    def remove(self, path: Path) -> None:
        self._moment()
        if path.is_dir():
            for file in sorted(path.iterdir())[:1]:
                super().remove(file)
            self._moment()
        super().remove(path)
        self.operations.append(("remove", path.name))
        self._moment()

    def free_bytes(self, path: Path) -> int:
        return self._free

    def _perform(self, name: str, path: Path, action: Callable[[], None]) -> None:
        self._moment()
        action()
        self.operations.append((name, path.name))
        self._moment()

    def _moment(self) -> None:
        if self._crash_at is not None and self._moments >= self._crash_at:
            if self._moments == self._crash_at and self._power_loss:
                self.lose_power()
            self._moments += 1
            raise Crash
        self._moments += 1

    def _follow(self, source: Path, target: Path) -> None:
        for change in self._unsynced:
            if change.path.is_relative_to(source):
                change.path = target / change.path.relative_to(source)

    def lose_power(self) -> None:
        """Take back what is not secured."""
        for change in reversed(self._unsynced):
            if not change.path.exists():
                continue
            if change.kind == "content":
                added = change.path.stat().st_size - change.size_before
                os.truncate(change.path, change.size_before + added // 2)
            elif change.kind == "truncate":
                assert change.replaced is not None
                change.path.write_bytes(change.replaced)
            elif change.kind == "make_directory":
                shutil.rmtree(change.path)  # nothing in it can be found any more, synced or not
            elif change.kind == "create":
                change.path.unlink()
            elif change.source is not None:
                target = change.path
                os.rename(target, change.source)
                self._follow(target, change.source)
                if change.replaced is not None:
                    target.write_bytes(change.replaced)
        self._unsynced = []


def crashes(
    scenario: Callable[[FaultyFiles], None], *, prepare: Callable[[], None], alternate: bool = False
) -> Iterator[str]:
    """Run `scenario` again and again, crashing one moment later each time, until it completes; check after each.

    Every moment has its turn with and without loss of power; with `alternate`, for long scenarios, with one of them.
    """
    moment, running = 0, {False, True}
    while running:
        for power_loss in sorted(running):
            if alternate and power_loss != bool(moment % 2):
                continue
            prepare()
            try:
                scenario(FaultyFiles(crash_at=moment, power_loss=power_loss))
            except Crash:
                yield f"moment {moment}, power_loss={power_loss}"
            else:
                running.discard(power_loss)
        moment += 1
    assert moment > 4, "the scenario used no file system"
