"""The run directory of one training: its lock, its settings, its log and its checkpoints (see records.py)."""

import errno
import json
import os
import socket
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from torch import Tensor

from jumok import files, system
from jumok.bundle import finish_replacement
from jumok.errors import CheckpointError
from jumok.files import FORMAT, REAL_FILES, FileSystem, WriteError
from jumok.training.checkpoint import newest_step, save_checkpoint
from jumok.training.records import (
    ATTENTION,
    CHECKPOINTS,
    FIRST_STAGE,
    LOCK,
    LOG,
    MODEL,
    RUN,
    STORE,
    end_of_intact_lines,
    first_epoch,
    read_run,
    scan_log,
)

_OURS = {RUN, LOG, LOCK, STORE, CHECKPOINTS, MODEL, ATTENTION, FIRST_STAGE, f".next-{MODEL}"}
_KEPT_ATTENTION = 64  # files; beyond that, every second of the older ones is removed
_LOCK_BYTES = 512
_ELSEWHERE = "Choose another directory with `out=`."


class RunDirectory:
    """A run directory, locked for this process until it is closed or the process ends."""

    def __init__(self, path: Path, task: str, lock: int, fs: FileSystem, *, is_new: bool = False) -> None:
        self.path = path
        self.task = task
        self.store, self.checkpoints, self.model = path / STORE, path / CHECKPOINTS, path / MODEL
        self._log = path / LOG
        self._lock = lock
        self._fs = fs
        self._is_new = is_new

    @classmethod
    def open(cls, path: Path, task: str, *, fs: FileSystem = REAL_FILES) -> Self:
        """Create or open the directory and lock it. Raise if it is no run of this task or another process holds it.
        What a crash left is repaired: half-written files, a half-replaced model, an incomplete last line of the log."""
        _require_ours(path)
        is_new = not os.path.exists(path)
        files.make_directory_durably(fs, path)
        run = cls(path, task, _take_lock(path / LOCK), fs, is_new=is_new)
        try:
            _require_task(path, task)
            run._repair()
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def follow(cls, path: Path, task: str) -> Self:
        """Open the directory read-only, in a process of the training that is not rank 0."""
        return cls(path, task, -1, REAL_FILES)

    def close(self) -> None:
        """Release the lock. A directory that this process created and then wrote nothing in is removed.
        Otherwise the lock file stays: if it were removed, two processes could lock two files of its name."""
        if self._lock < 0:
            return
        try:
            if self._is_new and not any(path.is_file() and path.name != LOCK for path in self.path.rglob("*")):
                with suppress(OSError):  # Windows does not remove a file that is open; then it stays
                    (self.path / LOCK).unlink()
                    self._fs.remove(self.path)
        finally:
            system.close_locked(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def read(self) -> dict[str, Any] | None:
        """Return run.json; None in a new run."""
        return read_run(self.path)

    def write(self, contents: Mapping[str, Any]) -> None:
        """Replace run.json; the format and the task are added."""
        files.replace_file_durably(
            self._fs, self.path / RUN, files.format_json({**contents, "format": FORMAT, "task": self.task})
        )

    def record(self, **changes: Any) -> None:
        """Replace some values of run.json."""
        self.write({**(self.read() or {}), **changes})

    def append_log(self, entry: Mapping[str, Any]) -> None:
        """Append a line to log.jsonl. It survives a kill at once, and a power failure from the next checkpoint on.
        `epoch` counts from 1; the log of a run that an older version began goes on counting from 0."""
        if "epoch" in entry:
            entry = {**entry, "epoch": entry["epoch"] - 1 + self._first_epoch}
        line, start = files.format_json(entry, indent=None), None
        try:
            with self._fs.open_to_append(self._log) as file:
                start = file.tell()
                self._fs.write(file, memoryview(line))
        except OSError as error:
            with suppress(OSError):
                if start is not None:
                    self._fs.truncate(self._log, start)
            raise WriteError(f"{self._log}: {len(line)} bytes cannot be added ({error.strerror}).") from error

    @cached_property
    def _first_epoch(self) -> int:
        return first_epoch(self.path)

    def keep_log_until(self, step: int | None) -> None:
        """Cut the log after the entry `checkpoint` of `step` (None: at its start) and before any entry of a later step,
        because what follows will happen again."""
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
            self._cut_log(saved or end)

    def save_checkpoint(
        self,
        step: int,
        tensors: Mapping[str, Mapping[str, Tensor]],
        state: Mapping[str, Any],
        *,
        protect: Collection[int] = (),
        **options: Any,
    ) -> Path:
        """Save a checkpoint, after syncing the log: a training resumed from it appends what comes after `step`.
        Callers log everything up to `step` first, the entry `checkpoint` of `step` last. `options` are those of the
        function `save_checkpoint`."""
        if self._log.exists():
            with files.explained_writing(self._log):
                with self._fs.open_to_append(self._log) as file:
                    self._fs.sync(file)
                self._fs.sync_directory(self.path)
        return save_checkpoint(self.checkpoints, step, tensors, state, protect=protect, **options, fs=self._fs)

    def save_attention(self, step: int, data: bytes) -> None:
        """Keep what a validation recorded to be looked at. Raise OSError or WriteError if it cannot be written."""
        directory = self.path / ATTENTION
        files.make_directory_durably(self._fs, directory)
        files.replace_file_durably(self._fs, directory / f"step-{step:08d}.safetensors", data)
        kept = sorted(directory.glob("step-*.safetensors"))
        for path in kept[1:-1:2] if len(kept) > _KEPT_ATTENTION else ():
            self._fs.remove(path)

    def clear(self) -> None:
        """Remove everything but the store, which depends on the data alone, to start the training again."""
        # run.json last: until then the directory is recognised as a run of this task.
        for name in (ATTENTION, CHECKPOINTS, MODEL, LOG, RUN):
            if os.path.lexists(self.path / name):
                files.remove(self._fs, files.set_aside(self._fs, self.path / name))

    def _repair(self) -> None:
        for directory in (self.path, self.checkpoints, self.path / ATTENTION):
            if directory.is_dir():
                files.clean_leftovers(self._fs, directory)
        finish_replacement(self.model, fs=self._fs)
        end = end_of_intact_lines(self._log, newest_step(self.checkpoints))
        if end is not None:
            self._cut_log(end)

    def _cut_log(self, size: int) -> None:
        with files.explained_writing(self._log):
            self._fs.truncate(self._log, size)


def _require_ours(path: Path) -> None:
    """Raise if a directory holds other files than those of a run, before even a lock file is written there."""
    if os.path.lexists(path) and not path.is_dir():
        raise CheckpointError(f"{path}: is not a directory. {_ELSEWHERE}")
    if not os.path.exists(path) or os.path.lexists(path / RUN):
        return
    names = sorted(entry.name for entry in path.iterdir())
    foreign = [name for name in names if name not in _OURS and not files.is_leftover(name)]
    if foreign:
        shown = ", ".join(foreign[:3]) + (", …" if len(foreign) > 3 else "")
        raise CheckpointError(f"{path}: is not empty and not a run directory ({shown}). {_ELSEWHERE}")
    if CHECKPOINTS in names and any(not files.is_leftover(entry.name) for entry in (path / CHECKPOINTS).iterdir()):
        advice = f"Restore {RUN}, or choose another directory with `out=`."
        raise CheckpointError(f"{path}: has checkpoints but no {RUN}. {advice}")


def _require_task(path: Path, task: str) -> None:
    contents = read_run(path, "Restore it from a copy, or choose another directory with `out=`.")
    if contents is not None and contents.get("task") != task:
        other = contents.get("task")
        raise CheckpointError(f"{path}: is a run of another task ({other}, not {task}). {_ELSEWHERE}")


def _take_lock(path: Path) -> int:
    """Lock the run directory and return the descriptor. The system releases the lock when this process ends."""
    try:
        lock = system.open_without_following(path)
    except OSError as error:
        if error.errno == errno.ELOOP:  # writing through it could destroy any file
            raise CheckpointError(f"{path}: is a symbolic link, which is never followed. Remove it.") from error
        raise CheckpointError(f"{path.parent}: cannot be written in ({error.strerror}). {_ELSEWHERE}") from error
    try:
        _lock_for_this_process(path, lock)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _lock_for_this_process(path: Path, lock: int) -> None:
    try:
        system.lock_file(lock)
        this_process = files.format_json({"pid": os.getpid(), "host": socket.gethostname()}, indent=None)
        with files.explained_writing(path):
            os.lseek(lock, 0, os.SEEK_SET)
            os.write(lock, this_process.ljust(_LOCK_BYTES))  # a fixed length overwrites the earlier holder
    except BlockingIOError as error:
        os.lseek(lock, 0, os.SEEK_SET)
        holder = _describe_holder(os.read(lock, _LOCK_BYTES))
        advice = "Wait until it ends, stop it, or choose another directory with `out=`."
        raise CheckpointError(f"{path.parent}: is in use by {holder}. {advice}") from error
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be locked ({error.strerror}). Choose a local disk: `out=`.") from error


def _describe_holder(content: bytes) -> str:
    try:
        holder = json.loads(content)
        return f"process {holder['pid']} on {holder['host']}"
    except (ValueError, KeyError, TypeError):  # it holds the lock, but has not yet written its process id
        return "another process"
