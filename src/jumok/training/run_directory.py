"""The directory of one training: who may write in it, with which settings, and what happened so far.

run/  .lock  run.json  log.jsonl  store/  checkpoints/  model/
"""

from __future__ import annotations

import errno
import json
import os
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from torch import Tensor

from jumok import system
from jumok.bundle import finish_replacement
from jumok.errors import CheckpointError
from jumok.files import (
    FORMAT,
    REAL_FILES,
    FileSystem,
    WriteError,
    clean_leftovers,
    explained_writing,
    format_json,
    is_leftover,
    make_directory_durably,
    remove,
    replace_file_durably,
    set_aside,
)
from jumok.training.checkpoint import save_checkpoint
from jumok.training.records import CHECKPOINTS, LOCK, LOG, MODEL, RUN, STORE, end_of_last_line, read_run, scan_log

_OURS = {RUN, LOG, LOCK, STORE, CHECKPOINTS, MODEL, f".next-{MODEL}"}
_LOCK_BYTES = 512


class RunDirectory:
    """A run directory that this process alone may write in until it is closed, or until the process ends in any way."""

    def __init__(self, path: Path, task: str, lock: int, fs: FileSystem) -> None:
        self.path = path
        self.task = task
        self.store, self.checkpoints, self.model = path / STORE, path / CHECKPOINTS, path / MODEL
        self._log = path / LOG
        self._lock = lock
        self._fs = fs

    @classmethod
    def open(cls, path: Path, task: str, *, fs: FileSystem = REAL_FILES) -> Self:
        """Make the directory or take the existing one, if it is a run of this task and nobody else is writing in it.

        What a crash left is put in order: half-written files go, a half-replaced model is finished, and a torn last
        line of the log is cut off.
        """
        _require_ours(path)
        make_directory_durably(fs, path)
        run = cls(path, task, _take_lock(path / LOCK), fs)
        try:
            _require_task(path, task)
            run._repair()
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def follow(cls, path: Path, task: str) -> Self:
        """The directory in which another process of the same training writes; this one only reads."""
        return cls(path, task, -1, REAL_FILES)

    def close(self) -> None:
        """Let others write. The lock file stays: removing it could let two in at once."""
        if self._lock >= 0:
            system.close_locked(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def read(self) -> dict[str, Any] | None:
        """What `write` wrote last; None in a new run."""
        return read_run(self.path)

    def write(self, contents: Mapping[str, Any]) -> None:
        """Replace run.json by whatever describes the run, such as its settings; the task is added."""
        replace_file_durably(self._fs, self.path / RUN, format_json({**contents, "format": FORMAT, "task": self.task}))

    def append_log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to log.jsonl. It survives a kill at once, and a power failure from the next checkpoint on."""
        line = format_json(entry, indent=None)
        with open(self._log, "ab", buffering=0) as file:
            start = file.tell()
            try:
                self._fs.write(file, memoryview(line))
            except OSError as error:
                with suppress(OSError):
                    self._fs.truncate(self._log, start)
                raise WriteError(f"{self._log}: {len(line)} bytes cannot be added ({error.strerror}).") from error

    def keep_log_until(self, step: int | None) -> None:
        """Drop what was logged after the checkpoint of `step` (None: everything), because it will happen again.

        That is every entry of a later step, and every one that follows the entry `checkpoint` of this step.
        """
        end = saved = first_dropped = size = 0
        for number, size, entry in scan_log(self._log):
            if entry is None or step is None or entry["step"] > step:
                first_dropped = first_dropped or number
            elif first_dropped and not saved:
                advice = "Repair the line, or move the file away to begin a new log."
                raise CheckpointError(f"{self._log}:{first_dropped}: is damaged or out of order. {advice}")
            elif entry["event"] == "checkpoint" and entry["step"] == step:
                saved = size
            else:
                end = size
        if (saved or end) < size:
            self._fs.truncate(self._log, saved or end)

    def save_checkpoint(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        state: Mapping[str, Any],
        *,
        keep: int = 2,
        protect: Collection[int] = (),
    ) -> Path:
        """Save a checkpoint, the log first: a training resumed from it adds to the log what comes after `step`.

        So everything about steps up to `step` is to be logged before, the entry `checkpoint` of `step` last.
        """
        if self._log.exists():
            with open(self._log, "ab", buffering=0) as file:
                self._fs.sync(file)
            self._fs.sync_directory(self.path)
        return save_checkpoint(self.checkpoints, step, tensors, state, keep=keep, protect=protect, fs=self._fs)

    def clear(self) -> None:
        """Remove everything the training made, to start afresh. The store stays: it depends on the data alone."""
        # run.json goes last: a directory cleared by half still knows that it is a run, and of which task.
        for name in (CHECKPOINTS, MODEL, LOG, RUN):
            if os.path.lexists(self.path / name):
                remove(self._fs, set_aside(self._fs, self.path / name))

    def _repair(self) -> None:
        for directory in (self.path, self.checkpoints):
            if directory.is_dir():
                clean_leftovers(self._fs, directory)
        finish_replacement(self.model, fs=self._fs)
        end = end_of_last_line(self._log)
        if end is not None:
            self._fs.truncate(self._log, end)


def _require_ours(path: Path) -> None:
    """Refuse before anything is written: not even a lock file belongs in a directory of somebody else's."""
    if os.path.lexists(path) and not path.is_dir():
        raise CheckpointError(f"{path}: is not a directory. Choose another place with -o.")
    if not path.exists() or os.path.lexists(path / RUN):
        return
    names = sorted(entry.name for entry in path.iterdir())
    foreign = [name for name in names if name not in _OURS and not is_leftover(name)]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise CheckpointError(f"{path}: is not empty and not a run directory ({shown}). Choose another one with -o.")
    if CHECKPOINTS in names and any(not is_leftover(entry.name) for entry in (path / CHECKPOINTS).iterdir()):
        raise CheckpointError(f"{path}: has checkpoints but no {RUN}. Restore it, or choose another directory with -o.")


def _require_task(path: Path, task: str) -> None:
    contents = read_run(path)
    if contents is not None and contents.get("task") != task:
        other = contents.get("task")
        raise CheckpointError(f"{path}: is a run of another task ({other}, not {task}). Choose another one with -o.")


def _take_lock(path: Path) -> int:
    """Take the lock, which the system gives back when this process ends, however it ends."""
    try:
        lock = system.open_without_following(path)
    except OSError as error:
        if error.errno == errno.ELOOP:  # writing in it could destroy any file
            raise CheckpointError(f"{path}: is a symbolic link, which is never followed. Remove it.") from error
        raise CheckpointError(
            f"{path.parent}: cannot be written in ({error.strerror}). Choose another with -o."
        ) from error
    try:
        _lock_for_this_process(path, lock)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _lock_for_this_process(path: Path, lock: int) -> None:
    try:
        system.lock_file(lock)
        this_process = format_json({"pid": os.getpid(), "host": socket.gethostname()}, indent=None)
        with explained_writing(path):
            os.lseek(lock, 0, os.SEEK_SET)
            os.write(
                lock, this_process.ljust(_LOCK_BYTES)
            )  # always as long, so that nothing of an earlier holder remains
    except BlockingIOError as error:
        os.lseek(lock, 0, os.SEEK_SET)
        holder = _describe_holder(os.read(lock, _LOCK_BYTES))
        advice = "Wait until it ends, stop it, or choose another directory with -o."
        raise CheckpointError(f"{path.parent}: is in use by {holder}. {advice}") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be locked ({error.strerror}). Choose a local disk with -o.") from error


def _describe_holder(content: bytes) -> str:
    try:
        holder = json.loads(content)
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):  # it has the lock, but has not yet written its name
        return "another process"
