"""A file system that fails on purpose: it crashes, fails, and loses what was never synced when the power fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from jumok.files import REAL_FILES, FileSystem
from unsynced_disk import Disk


class Crash(BaseException):
    """The process is gone. Not an Exception: no code that tidies up after errors may run."""


@dataclass(frozen=True)
class Crashed:
    """A crash at a moment, and what a power failure took away; None: the power stayed on."""

    moment: int
    fs: FaultyFiles
    lost: list[str] | None

    def __str__(self) -> str:
        return f"moment {self.moment}, after {self.fs.operations[-1:]}, lost: {self.lost}"


class FaultyFiles(FileSystem):
    """Records every operation, and waits for no disk: syncing is noted, not done.

    Crashes at moment `crash_at`: before each operation and, where it can be half done, inside it. Operation number
    `fails_at` of those that can fail ends with `error` instead: a full disk at any of them, a broken one at a sync.
    With a `disk`, that disk notes which changes a power failure could undo.
    """

    def __init__(
        self,
        *,
        crash_at: int | None = None,
        fails_at: int | None = None,
        error: int = errno.ENOSPC,
        free: int = 1 << 40,
        disk: Disk | None = None,
    ) -> None:
        self.operations: list[tuple[str, str]] = []
        self.fallible = 0  # operations so far that could have failed
        self.disk = disk
        self.moments = 0  # passed so far
        self._crash_at, self._fails_at, self._error, self._free = crash_at, fails_at, error, free

    def create(self, path: Path) -> FileIO:
        self._begin("create", path)
        file = super().create(path)
        if self.disk:
            self.disk.create(path)
        return file

    def open_to_append(self, path: Path) -> FileIO:
        is_new = not path.exists()
        if is_new:
            self._begin("create", path)
        file = super().open_to_append(path)
        if self.disk and is_new:
            self.disk.create(path)
        return file

    def create_unnamed(self, directory: Path) -> FileIO:
        self._begin("create_unnamed", directory)
        return super().create_unnamed(directory)

    def call_writer(self, write: Callable[[], None], directory: Path) -> None:
        self._begin("call_writer", directory)
        super().call_writer(write, directory)
        if self.disk:
            self.disk.import_tree(directory)

    def write(self, file: FileIO, data: memoryview) -> None:
        path = Path(str(file.name))
        self._moment()
        self._write_part(file, path, data[: len(data) // 2])
        self._moment()
        self._may_fail()
        self._write_part(file, path, data[len(data) // 2 :])
        self.operations.append(("write", path.name))

    def _write_part(self, file: FileIO, path: Path, data: memoryview) -> None:
        if self.disk:
            self.disk.write(path, os.fstat(file.fileno()).st_size, bytes(data))
        super().write(file, data)

    def truncate(self, path: Path, size: int) -> None:
        self._begin("truncate", path)
        super().truncate(path, size)
        if self.disk:
            self.disk.truncate(path, size)

    def sync(self, file: FileIO) -> None:
        path = Path(str(file.name))
        self._begin("sync", path)
        if self.disk:
            self.disk.secure(path)

    def rename(self, source: Path, target: Path) -> None:
        self._begin("rename", target)
        super().rename(source, target)
        if self.disk:
            self.disk.rename(source, target)

    def sync_directory(self, path: Path) -> None:
        self._begin("sync_directory", path)
        if self.disk:
            self.disk.secure(path)

    def make_directory(self, path: Path) -> None:
        self._begin("make_directory", path)
        super().make_directory(path)
        if self.disk:
            self.disk.create(path, directory=True)

    def remove(self, path: Path) -> None:
        """A tree is removed entry by entry, and a crash may come between any two of them."""
        self._moment()
        if path.is_dir() and not path.is_symlink():
            for entry in sorted(path.iterdir()):
                self.remove(entry)
        super().remove(path)
        if self.disk:
            self.disk.remove(path)
        self.operations.append(("remove", path.name))

    def free_bytes(self, path: Path) -> int:
        return self._free

    def _begin(self, operation: str, path: Path) -> None:
        self._moment()
        self._may_fail()
        self.operations.append((operation, path.name))

    def _may_fail(self) -> None:
        self.fallible += 1
        if self.fallible == self._fails_at:
            raise OSError(self._error, os.strerror(self._error))

    def _moment(self) -> None:
        """Crash from the chosen moment on: what runs then, to tidy up, would not run in a process that is gone."""
        if self._crash_at is not None and self.moments >= self._crash_at:
            raise Crash
        self.moments += 1


@contextmanager
def faulty_everywhere(fs: FaultyFiles) -> Iterator[FaultyFiles]:
    """All code that is not given a file system uses this one."""
    names = [name for name in vars(FileSystem) if not name.startswith("_")]
    for name in names:
        setattr(REAL_FILES, name, getattr(fs, name))
    try:
        yield fs
    finally:
        for name in names:
            delattr(REAL_FILES, name)


def crashes(
    scenario: Callable[[FaultyFiles], None],
    *,
    root: Path,
    prepare: Callable[[], None],
    outcomes: int = 4,
    one_in_turn: bool = False,
) -> Iterator[Crashed]:
    """Run `scenario`, which changes files below `root`, again and again, crashing one moment later each time, until it
    completes. The caller checks after each crash: as the process left the files, and in up to `outcomes` states in
    which a power failure could leave them. `one_in_turn`: in only one of all these, another one after each crash."""
    moment, crashed = 0, True
    while crashed:
        prepare()
        disk = Disk(root)
        fs = FaultyFiles(crash_at=moment, disk=disk)
        try:
            scenario(fs)
            crashed = False
        except Crash:
            pass
        states = [None, *disk.states(outcomes, seed=moment)]
        for state in [states[moment % len(states)]] if one_in_turn else states:
            if state is not None:
                disk.become(state)
            yield Crashed(moment, fs, None if state is None else state.lost)
        moment += 1
    assert moment > 4, "the scenario used no file system"
