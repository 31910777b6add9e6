"""What differs between Linux, macOS and Windows, in one place. The rest of the program asks here."""

import errno
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:
    fcntl = None
WINDOWS = fcntl is None

# SIGUSR1: what Slurm sends shortly before the time is up. SIGBREAK: Ctrl-Break or a closed console on Windows.
STOP_SIGNALS = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGUSR1", "SIGBREAK") if hasattr(signal, name)
)

# On Windows nobody else can read a locked byte, so the lock is on one far behind the text in the file.
_LOCKED_BYTE = 1 << 30
_IN_USE_SECONDS = 5.0
_forking_thread: int | None = None
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # glibc's numbers of M_TRIM_THRESHOLD and M_MMAP_MAX


def usable_cores(root: Path = Path("/")) -> int:
    """Return how many cores this process may use: fewer than the machine has under `taskset`, or in a container with a
    CPU quota (1.5 cores count as 2). `root` is the directory that holds proc and sys."""
    if hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = getattr(os, "process_cpu_count", os.cpu_count)() or 1
    return max(1, min([cores, *(math.ceil(quota) for quota in _cpu_quotas(root))]))


def _cpu_quotas(root: Path) -> Iterator[float]:
    """Yield the CPU quotas, in cores, of the control group of this process and of the groups around it (Linux)."""
    try:
        groups = [line.split(":", 2) for line in (root / "proc/self/cgroup").read_text("utf-8").splitlines()]
        mounts = [line.split() for line in (root / "proc/self/mountinfo").read_text("utf-8").splitlines()]
    except (OSError, UnicodeError):
        return
    # A group is named by the controllers it is for: none in version 2. So is a mount, by its kind or its options.
    named = {name: Path(path) for _, names, path in groups for name in names.split(",")}
    for _, _, _, mounted, place, *_, kind, _, options in mounts:
        name = {"cgroup2": "", "cgroup": "cpu"}.get(kind)
        if name not in named or (name and name not in options.split(",")):
            continue
        top, group = root / place.lstrip("/"), named[name]
        directory = top / group.relative_to(mounted) if group.is_relative_to(mounted) else top
        for around in (directory, *directory.parents):
            yield from _quota_of(around)
            if around == top:
                break


def _quota_of(group: Path) -> Iterator[float]:
    """Yield the CPU quota of a control group, if it has one: of version 2 (cpu.max) or 1 (two files)."""
    with suppress(OSError, ValueError, ZeroDivisionError):  # "max": no quota
        if (group / "cpu.max").exists():
            quota, period = map(int, (group / "cpu.max").read_text("utf-8").split())
        else:
            quota, period = (int((group / f"cpu.cfs_{name}_us").read_text("utf-8")) for name in ("quota", "period"))
        if quota > 0:
            yield quota / period


def forking_thread() -> int | None:
    """Return the thread that called `os.fork`, if this process was forked: the only one that was copied."""
    return _forking_thread


def _note_fork() -> None:
    global _forking_thread
    _forking_thread = threading.get_ident()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def read_at_start(descriptor: int, size: int) -> bytes:
    """Read the first `size` bytes of a file without moving its position, which forked processes share."""
    parts: list[bytes] = []
    while (left := size - sum(map(len, parts))) and (part := os.pread(descriptor, left, size - left)):
        parts.append(part)  # Linux reads at most 2 GB at a time
    return b"".join(parts)


def keep_freed_memory() -> bool:
    """Tell the C library to reuse freed memory instead of returning it to the system; return False if it cannot. glibc
    returns the large tensors of each training step, and the next one gets them cleared and mapped anew, page by page:
    with a small model that is 40 % of the time."""
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # TypeError: Windows needs the name of a library
        return False
    return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, 2**31 - 1))


def open_without_following(path: Path) -> int:
    """Open a file to read and write, creating it if necessary. Raise OSError with ELOOP if it is a symbolic link."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0)
    if hasattr(os, "O_NOFOLLOW"):
        return os.open(path, flags | os.O_NOFOLLOW, 0o666)
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return os.open(path, flags, 0o666)


def lock_file(descriptor: int) -> None:
    """Lock an open file exclusively, until it is closed or this process ends, however it ends.
    Raises BlockingIOError at once if another process, or another descriptor of this one, holds the lock."""
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    try:
        _lock_region(descriptor, "LK_NBLCK")
    except PermissionError as error:
        raise BlockingIOError(*error.args) from error


def close_locked(descriptor: int) -> None:
    """Release the lock of `lock_file` and close the file."""
    try:
        if fcntl is None:  # Windows would release it too, but only some time after closing
            _lock_region(descriptor, "LK_UNLCK")
    finally:
        os.close(descriptor)


def _lock_region(descriptor: int, mode: str) -> None:
    msvcrt: Any = import_module("msvcrt")
    os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
    msvcrt.locking(descriptor, getattr(msvcrt, mode), 1)


def is_closed_pipe(error: OSError) -> bool:
    """Return whether a write failed because the reader of a pipe has exited."""
    return isinstance(error, BrokenPipeError) or (WINDOWS and error.errno == errno.EINVAL)


def sync_file(descriptor: int) -> None:
    """Return when the content of a file open for writing is on the disk and survives a power failure."""
    if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync leaves the content in the drive's cache
        with suppress(OSError):  # a file system that does not support it
            fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
            return
    os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Return when the names in a directory are on the disk. Windows cannot do it; NTFS keeps a journal of names."""
    if WINDOWS:
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def retry_while_in_use(change: Callable[[], None]) -> None:
    """Call `change`, which renames or removes files. On Windows, which refuses both while any process (a reader, a
    virus scanner) has the file open, try again for some seconds."""
    delay = 0.01
    end = time.monotonic() + _IN_USE_SECONDS
    while WINDOWS and time.monotonic() < end:
        try:
            return change()
        except PermissionError:
            time.sleep(delay)
            delay = min(2 * delay, 0.5)
    return change()
