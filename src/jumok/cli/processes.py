"""Several processes on one machine for one training: this one is the first, and starts the others."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from jumok.errors import ConfigError

GRACE = 30.0  # seconds for the others to end after this one


def is_follower() -> bool:
    """Whether this process is one of several and not the first: it says nothing."""
    return int(os.environ.get("RANK", "0")) > 0 and int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def processes_started(count: int) -> Iterator[None]:
    """The same command again in `count` - 1 processes, each with its share of the cores; ended when this one leaves."""
    if count < 1:
        raise ConfigError(f"--processes={count} must be at least 1.")
    if count == 1 or "RANK" in os.environ:  # torchrun, or the first process, has started this one
        yield
        return
    threads = max(1, len(os.sched_getaffinity(0)) // count)
    world = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    before = dict(os.environ)
    os.environ |= {**world, "RANK": "0", "OMP_NUM_THREADS": str(threads)}
    followers = [_start(rank) for rank in range(1, count)]
    try:
        yield
    finally:
        for follower in followers:
            _end(follower)
        os.environ.clear()
        os.environ |= before


def _start(rank: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RANK": str(rank)}
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
