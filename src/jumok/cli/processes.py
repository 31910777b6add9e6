"""`--processes N`: this process is rank 0 and starts the others on the same machine."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jumok.cli.options import say
from jumok.errors import ConfigError, TrainingError
from jumok.system import usable_cores

EXIT_SECONDS = 30.0  # for the other ranks to end after this one
POLL_SECONDS, NOTICE_SECONDS = 0.5, 5.0  # between two looks at the others; for PyTorch to notice that one has ended
STARTED_BY_RANK_0 = "JUMOK_STARTED_BY_RANK_0"


def is_follower() -> bool:
    """Return whether this process is one of several and not rank 0: it prints nothing."""
    return int(os.environ.get("RANK", "0")) > 0 and int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def processes_started(count: int) -> Iterator[None]:
    """Run the same command in `count` - 1 further processes, which share the cores and end when this one does."""
    if count < 1:
        raise ConfigError(f"--processes={count} must be at least 1.")
    if STARTED_BY_RANK_0 in os.environ:
        with _exiting_if(_standard_input_ended()):
            yield
        return
    if count == 1 or "RANK" in os.environ:  # torchrun has started this one
        yield
        return
    group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    before = dict(os.environ)
    os.environ |= {**group, "RANK": "0", "OMP_NUM_THREADS": str(max(1, usable_cores() // count))}
    followers = [_start(rank) for rank in range(1, count)]
    try:
        with _exiting_if(lambda: any(follower.poll() for follower in followers) and not _has_joined()):
            yield
    finally:
        for follower in followers:
            with follower:  # at the end, its standard input is closed
                try:
                    follower.wait(EXIT_SECONDS)
                except subprocess.TimeoutExpired:
                    follower.kill()
        os.environ.clear()
        os.environ |= before


@contextmanager
def _exiting_if(another_ended: Callable[[], bool]) -> Iterator[None]:
    """Exit if another process has ended and PyTorch does not notice. While it waits, no signal is handled."""
    left = threading.Event()

    def poll() -> None:
        while not left.wait(POLL_SECONDS):
            if another_ended():
                if not left.wait(NOTICE_SECONDS):
                    say("jumok: Another process of this training has ended. Start it again with the same command.")
                    os._exit(TrainingError.exit_code)  # safe: the files are complete at every moment
                return

    threading.Thread(target=poll, daemon=True).start()
    try:
        yield
    finally:
        left.set()


def _standard_input_ended() -> Callable[[], bool]:
    """Return a function that says whether rank 0 has ended: the system then closes its end of this process' stdin.
    The parent's process id would not tell on Windows: it stays the same."""
    ended = threading.Event()

    def read() -> None:
        os.read(0, 1)
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    return ended.is_set


def _has_joined() -> bool:
    """Return whether all processes have joined: from then on PyTorch notices when one ends."""
    # Importing PyTorch may still be under way in another thread.
    joined: bool = getattr(sys.modules.get("torch.distributed"), "is_initialized", bool)()
    return joined


def _start(rank: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RANK": str(rank), STARTED_BY_RANK_0: "1"}
    command = [sys.executable, "-m", "jumok", *sys.argv[1:]]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
