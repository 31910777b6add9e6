"""Makes Python on Linux behave like Python on macOS or Windows, as far as Jumok depends on the difference.

Python imports a module of this name at its start: set PYTHONPATH to this directory and JUMOK_TEST_SYSTEM to the
system, and every process does, also those that a command starts. What is opened, renamed or removed below
JUMOK_TEST_ROOT then follows Windows' rules. Nothing here replaces a run on the real system.
"""

import builtins
import errno
import multiprocessing
import os
import signal
import subprocess  # before there is a msvcrt: it is how this module recognises Windows
import sys
import types
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

assert subprocess.Popen
ROOT = os.environ.get("JUMOK_TEST_ROOT", "")
PROCESSES = f"{ROOT}.processes"  # a file for each process, named by its number


def become_macos() -> None:
    """No sched_getaffinity; fcntl has F_FULLFSYNC, which fails on Linux as on a disk that does not support it."""
    import fcntl

    _remove(os, "sched_getaffinity", "sched_setaffinity")
    fcntl.F_FULLFSYNC = 51  # type: ignore[attr-defined]


def become_windows() -> None:
    """No fcntl, fork, pread and so on; msvcrt's locks; files in use can be neither renamed nor removed."""
    import fcntl
    import shutil

    sys.modules["msvcrt"] = _msvcrt(fcntl)
    builtins.__import__ = _without_fcntl(builtins.__import__)
    _remove(os, "sched_getaffinity", "sched_setaffinity", "pread", "pwrite", "fork", "O_NOFOLLOW", "O_DIRECTORY")
    signal.SIGBREAK = signal.SIGUSR1  # type: ignore[attr-defined]
    _remove(signal, "SIGUSR1", "SIGUSR2", "SIGPIPE")
    os.makedirs(PROCESSES, exist_ok=True)
    Path(PROCESSES, str(os.getpid())).touch()
    parent = os.getppid()
    os.getppid = lambda: parent  # does not change when the parent ends
    shutil._use_fd_functions = False  # type: ignore[attr-defined]
    for name in ("rename", "replace", "unlink", "remove", "rmdir"):
        setattr(os, name, _refused_while_open(getattr(os, name)))
    os.open = _files_only(os.open)
    os.fsync = _writable_only(os.fsync, fcntl)


def _remove(module: types.ModuleType, *names: str) -> None:
    for name in names:
        if hasattr(module, name):
            delattr(module, name)


def _without_fcntl(real_import: Callable[..., types.ModuleType]) -> Callable[..., types.ModuleType]:
    """Refused to Jumok alone: other libraries have parts for Linux and parts for Windows, and the former are here."""

    def import_module(name: str, globals: Any = None, *arguments: Any, **more: Any) -> types.ModuleType:
        if name == "fcntl" and str((globals or {}).get("__name__")).startswith("jumok"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real_import(name, globals, *arguments, **more)

    return import_module


def _msvcrt(fcntl: Any) -> types.ModuleType:
    """A msvcrt whose locks belong to an open file, as on Windows, and are released when the process ends."""
    module: Any = types.ModuleType("msvcrt")
    module.LK_UNLCK, module.LK_NBLCK = 0, 2

    def locking(descriptor: int, mode: int, length: int) -> None:
        import struct

        start = os.lseek(descriptor, 0, os.SEEK_CUR)
        assert start >= os.fstat(descriptor).st_size, "nobody could read the text in the locked region"
        kind = fcntl.F_UNLCK if mode == module.LK_UNLCK else fcntl.F_WRLCK
        try:
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, start, length, 0))
        except BlockingIOError:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES)) from None

    module.locking = locking
    return module


def _below_root(path: Any) -> str | None:
    if not ROOT or not isinstance(path, str | os.PathLike):
        return None
    absolute = os.fspath(path)
    if not absolute.startswith(ROOT) or ".." in absolute:  # following links takes long
        absolute = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
    return absolute if absolute.startswith(ROOT) else None


def _is_open(path: str) -> bool:
    """Whether a process with these rules has the file, or one below this directory, open or mapped into memory."""
    maps = Path("/proc/self/maps").read_bytes()
    root = ROOT.encode()
    targets = [line[73:].decode() for line in maps.splitlines() if root in line] if root in maps else []
    for process in os.listdir(PROCESSES):
        with suppress(OSError):  # it has ended
            for descriptor in os.listdir(f"/proc/{process}/fd"):
                with suppress(OSError):
                    targets.append(os.readlink(f"/proc/{process}/fd/{descriptor}"))
    return any(target == path or target.startswith(path + "/") for target in targets)


def _refused_while_open(change: Callable[..., None]) -> Callable[..., None]:
    def refused_while_open(*paths: Any, **options: Any) -> None:
        for path in paths:
            absolute = _below_root(path)
            if absolute is not None and _is_open(absolute):
                raise PermissionError(errno.EACCES, "The file is used by another process", str(path))
        change(*paths, **options)

    return refused_while_open


def _files_only(real_open: Callable[..., int]) -> Callable[..., int]:
    def open_file(path: Any, flags: int, *arguments: Any, **options: Any) -> int:
        temporary = (
            flags & os.O_TMPFILE == os.O_TMPFILE
        )  # without a name: deleted when it is closed, as Windows can too
        if _below_root(path) is not None and os.path.isdir(path) and not temporary:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return real_open(path, flags, *arguments, **options)

    return open_file


def _writable_only(real_sync: Callable[[int], None], fcntl: Any) -> Callable[[int], None]:
    def sync(descriptor: int) -> None:
        if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real_sync(descriptor)

    return sync


if os.environ.get("JUMOK_TEST_SYSTEM"):
    {"macos": become_macos, "windows": become_windows}[os.environ["JUMOK_TEST_SYSTEM"]]()
    multiprocessing.set_start_method("spawn", force=True)
    # A text file opened without an encoding is read in whatever the system prefers; PYTHONWARNDEFAULTENCODING tells.
    warnings.filterwarnings("error", category=EncodingWarning, module=r"jumok(\.|$)")
