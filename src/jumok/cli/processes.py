"""Several processes on one machine for one training: this one is the first, and starts the others."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jumok.cli.options import say
from jumok.errors import ConfigError, TrainingError

GRACE = 30.0  # seconds for the others to end after this one
LOOK_EVERY, MAY_NOTICE = 0.5, 5.0  # seconds: between two looks at the others; to notice by itself that one has ended
LEADER = "JUMOK_LEADER"  # the process that has started this one


def is_follower() -> bool:
    """Whether this process is one of several and not the first: it says nothing."""
    return int(os.environ.get("RANK", "0")) > 0 and int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def processes_started(count: int) -> Iterator[None]:
    """The same command again in `count` - 1 processes, each with its share of the cores; ended when this one leaves."""
    if count < 1:
        raise ConfigError(f"--processes={count} must be at least 1.")
    if LEADER in os.environ:
        with _ending_if(lambda: os.getppid() != int(os.environ[LEADER])):
            yield
        return
    if count == 1 or "RANK" in os.environ:  # torchrun has started this one
        yield
        return
    threads = max(1, len(os.sched_getaffinity(0)) // count)
    world = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    before = dict(os.environ)
    os.environ |= {**world, "RANK": "0", "OMP_NUM_THREADS": str(threads)}
    followers = [_start(rank) for rank in range(1, count)]
    try:
        with _ending_if(lambda: any(follower.poll() for follower in followers) and not _has_joined()):
            yield
    finally:
        for follower in followers:
            _end(follower)
        os.environ.clear()
        os.environ |= before


@contextmanager
def _ending_if(one_is_missing: Callable[[], bool]) -> Iterator[None]:
    """Ends this process if another is missing and nothing else notices: while PyTorch waits, no signal is handled."""
    left = threading.Event()

    def watch() -> None:
        while not left.wait(LOOK_EVERY):
            if one_is_missing():
                if not left.wait(MAY_NOTICE):
                    say("jumok: Another process of this training has ended. Start it again with the same command.")
                    os._exit(TrainingError.exit_code)  # at once: what is on disk is whole at every moment
                return

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        left.set()


def _has_joined() -> bool:
    """Whether all have met: from then on PyTorch notices when one ends. Importing it may still be under way."""
    joined: bool = getattr(sys.modules.get("torch.distributed"), "is_initialized", bool)()
    return joined


def _start(rank: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RANK": str(rank), LEADER: str(os.getpid())}
    command = [sys.executable, "-m", "jumok", *sys.argv[1:]]
    return subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def _end(follower: subprocess.Popen[bytes]) -> None:
    try:
        follower.wait(GRACE)
    except subprocess.TimeoutExpired:
        follower.kill()
        follower.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
