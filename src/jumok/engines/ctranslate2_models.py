"""What all CTranslate2 engines share: the model, also in a forked process, and waiting for its results.
`os.fork` (gunicorn's preload, multiprocessing's "fork") copies memory but no threads, so a copied CTranslate2 object
waits forever for its workers, even when it is freed at exit."""

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from jumok.errors import ConfigError
from jumok.system import WINDOWS, read_at_start, usable_cores

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0001, 0.005  # seconds between two looks whether a result is there

_models: weakref.WeakSet["Ctranslate2Model"] = weakref.WeakSet()


class ExportFiles:
    """The files of an export, readable also after a training has replaced the directory."""

    def __init__(self, directory: Path) -> None:
        paths = [path for path in directory.iterdir() if path.is_file()]
        # On Windows a training could not replace the directory while a file in it is open.
        self._contents = {path.name: path.read_bytes() for path in paths} if WINDOWS else None
        self._open = [] if WINDOWS else [(path, os.open(path, os.O_RDONLY), path.stat().st_ino) for path in paths]
        weakref.finalize(self, _close, [descriptor for _, descriptor, _ in self._open])

    def contents(self) -> dict[str, bytes]:
        """The contents by file name."""
        if self._contents is not None:
            return dict(self._contents)
        return {path.name: _read(path, descriptor, inode) for path, descriptor, inode in self._open}


class Ctranslate2Model:
    """A CTranslate2 object of class `kind` for an export, made again in every forked process that uses it.
    On a CPU one thread runs a batch, `workers` batches at a time (default: as many as there are cores): in a small
    model, threads inside an operation cost more than they gain. `device` is "cpu", "cuda", "cuda:N" or "auto": CUDA if
    this CTranslate2 has it."""

    def __init__(self, kind: str, directory: Path, workers: int | None, device: str = "cpu", **options: Any) -> None:
        self.device, number = _device(device)
        self.workers = (usable_cores() if self.device == "cpu" else 1) if workers is None else workers
        self._kind, self._options = kind, {"device": self.device, "device_index": number, **options}
        self._lock = threading.Lock()
        self._files = ExportFiles(directory)
        self._model: Any = self._make(str(directory), self.workers)
        _models.add(self)

    def get(self) -> Any:
        """The object that works in this process."""
        with self._lock:
            if self._model is None:
                self._model = self.make_another(self.workers)
            return self._model

    def make_another(self, workers: int) -> Any:
        """A new object for the same export."""
        return self._make("", workers, files=self._files.contents())

    def after_fork(self) -> None:
        """Forget the object of the parent process without freeing it, which would wait for its threads."""
        if self._model is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._model))
        self._model, self._lock = None, threading.Lock()

    def _make(self, path: str, workers: int, **files: Any) -> Any:
        import ctranslate2

        kind = partial(getattr(ctranslate2, self._kind), inter_threads=workers, intra_threads=1, **self._options)
        # CTranslate2 sets the number of OpenMP's threads for the thread that calls it. PyTorch, which shares them,
        # would compute with a single one from then on.
        with ThreadPoolExecutor(1) as another:
            return another.submit(kind, path, **files).result()


def _device(name: str) -> tuple[str, int]:
    """The device in the words of CTranslate2: its kind and its number."""
    import ctranslate2

    cards = ctranslate2.get_cuda_device_count()
    kind, _, number = name.partition(":")
    if not (number or "0").isdecimal():
        raise ConfigError(f'device="{name}" is not the name of a device; a card of several is named as in "cuda:1".')
    if kind == "auto":
        return ("cuda" if cards else "cpu"), 0
    if kind == "cuda" and int(number or 0) >= cards:
        there = f"the last CUDA card is cuda:{cards - 1}" if cards else "this CTranslate2 finds no CUDA card"
        raise ConfigError(f'device="{name}" is not there: {there}. `engine="torch"` may know other devices.')
    return kind, int(number or 0)


def wait_for(future: Any, is_quick: bool = False) -> Any:
    """The result of an asynchronous CTranslate2 call. Waiting inside CTranslate2 blocks Ctrl-C, which only the main
    thread is told of; so it is done there for quick calls only. (To look again and again makes these slower.)"""
    began, looks = time.monotonic(), not is_quick and threading.current_thread() is threading.main_thread()
    while looks and not future.done():
        time.sleep(min(_LONGEST_PAUSE, _SHORTEST_PAUSE + (time.monotonic() - began) / 20))
    return future.result()


def _read(path: Path, descriptor: int, inode: int) -> bytes:
    """The content of an open file, or of the one at `path` if the descriptor was closed, as daemons do after a fork."""
    try:
        found = os.fstat(descriptor)
    except OSError:
        return path.read_bytes()
    return read_at_start(descriptor, found.st_size) if found.st_ino == inode else path.read_bytes()


def _close(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _after_fork() -> None:
    for model in list(_models):
        model.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
