"""`--processes`: this process is rank 0 and starts the others on the same machine."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import click

import jumok
from jumok.cli.options import say
from jumok.errors import ConfigError, JumokError, OtherProcessError, TrainingError
from jumok.system import usable_cores

EXIT_SECONDS = 30.0  # for the other ranks to end after this one
POLL_SECONDS, NOTICE_SECONDS = 0.5, 5.0  # between two looks at the others; for PyTorch to notice that one has ended
# Where a process waits for the others, beside torch.distributed itself.
_SENDING = [Path(jumok.__file__).parent / "training" / name for name in ("distributed.py", "gradient_sums.py")]
STARTED_BY_RANK_0 = "JUMOK_STARTED_BY_RANK_0"


def is_follower() -> bool:
    """Return whether this process is one of several and not rank 0: it prints nothing."""
    return int(os.environ.get("RANK", "0")) > 0 and int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def processes_started(asked: str, device: str, *, quiet: bool = False) -> Iterator[None]:
    """Run the same command in further processes, so that there are as many as `asked`. They share the cores, take one
    card each, and end when this one does. `device` is the setting of that name."""
    count = _process_count(asked, device, quiet=quiet)
    if STARTED_BY_RANK_0 in os.environ:
        with _following():
            yield
        return
    if count == 1 or "RANK" in os.environ:  # torchrun has started this one
        yield
        return
    threads = max(1, usable_cores() // count)
    group = {"WORLD_SIZE": str(count), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    before = dict(os.environ)
    os.environ |= {**group, "RANK": "0", "LOCAL_RANK": "0", "OMP_NUM_THREADS": str(threads)}
    if "torch" in sys.modules:  # it reads OMP_NUM_THREADS only when it is imported
        sys.modules["torch"].set_num_threads(threads)
    followers = [_start(rank) for rank in range(1, count)]
    try:
        with _leading(followers):
            yield
    finally:
        os.environ.clear()
        os.environ |= before


def _process_count(asked: str, device: str, *, quiet: bool) -> int:
    """Return the number of processes; "auto" is one for each card, or one on the CPU, and is said."""
    if asked != "auto":
        if not asked.isdecimal():
            raise ConfigError(f'--processes="{asked}" is neither a number nor "auto".')
        if int(asked) < 1:
            raise ConfigError(f"--processes={asked} must be at least 1.")
        return int(asked)
    if "RANK" in os.environ:  # others have decided
        return 1
    from jumok.model.devices import cards_of

    cards = cards_of(device)
    if not quiet:
        if cards:
            why = f"{len(cards)}, one for each card ({', '.join(map(str, cards))})"
        else:
            why = "1: on the CPU one process uses all cores"
        say(f"--processes auto: {why}.")
    return max(1, len(cards))


@contextmanager
def _leading(followers: Sequence[subprocess.Popen[bytes]]) -> Iterator[None]:
    """In rank 0: at the end tell the others that it is the end and what rank 0 has reported, and wait for them."""
    report = "ended"
    try:
        with _exiting_if(lambda: any(follower.poll() for follower in followers) and _is_waiting()):
            yield
    except JumokError as error:
        report = str(error)
        if isinstance(error, OtherProcessError):
            _say_who_was_killed(followers)
        raise
    finally:
        for follower in followers:
            assert follower.stdin is not None
            with suppress(OSError), follower.stdin:  # it may have ended already
                follower.stdin.write(report.encode())
        for follower in followers:
            try:
                follower.wait(EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                follower.kill()
                follower.wait()


def _say_who_was_killed(followers: Sequence[subprocess.Popen[bytes]]) -> None:
    """PyTorch notices only that a connection was closed."""
    time.sleep(POLL_SECONDS)  # a process that ends closes its connections first
    for rank, follower in enumerate(followers, start=1):
        code = follower.poll() or 0
        if code < 0:
            hint = " (the system does that when memory runs out)" if -code == signal.SIGKILL else ""
            say(f"jumok: the process with rank {rank} was ended by {signal.Signals(-code).name}{hint}.")


class _Rank0:
    """What a follower knows of rank 0, which writes its last message into the follower's standard input. If rank 0 is
    killed, the system closes it. The parent's process id would not tell on Windows: it stays the same."""

    def __init__(self) -> None:
        self.report = ""  # stays empty if rank 0 is killed
        self.ended = threading.Event()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        received = b""
        while part := os.read(0, 1 << 16):
            received += part
        self.report = received.decode(errors="replace")
        self.ended.set()

    def reports(self, error: JumokError) -> bool:
        """Return whether rank 0 tells the user of this error or of its cause, so that this process need not."""
        self.ended.wait(NOTICE_SECONDS)
        return self.report == str(error) or (bool(self.report) and isinstance(error, OtherProcessError))


@contextmanager
def _following() -> Iterator[None]:
    """In every other rank: end when rank 0 does, and print only errors that rank 0 does not print."""
    rank_0 = _Rank0()
    try:
        with _exiting_if(rank_0.ended.is_set):
            yield
    except JumokError as error:
        if rank_0.reports(error):
            raise click.exceptions.Exit(error.exit_code) from error
        raise


@contextmanager
def _exiting_if(another_ended: Callable[[], bool]) -> Iterator[None]:
    """Exit if another process has ended and PyTorch does not notice. While it waits, no signal is handled."""
    left = threading.Event()

    def poll() -> None:
        while not left.wait(POLL_SECONDS):
            if another_ended() and not left.wait(NOTICE_SECONDS) and another_ended():
                say("jumok: Another process of this training has ended. Start it again with the same command.")
                os._exit(TrainingError.exit_code)  # safe: the files are complete at every moment

    threading.Thread(target=poll, daemon=True).start()
    try:
        yield
    finally:
        left.set()


def _is_waiting() -> bool:
    """Return whether the main thread is in torch.distributed, waiting for the others, or has still to join them. It is
    not while it validates or saves, which it may finish although another process has ended."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    file = Path(frame.f_code.co_filename) if frame is not None else Path()
    is_waiting = file.is_relative_to(_torch_distributed()) or file in _SENDING
    return is_waiting or not _has_joined()


def _torch_distributed() -> Path:
    """Return the directory of that package, if it is imported."""
    return Path(getattr(sys.modules.get("torch.distributed"), "__file__", None) or "not imported").parent


def _has_joined() -> bool:
    """Return whether all processes have joined: from then on PyTorch notices when one ends."""
    # Importing PyTorch may still be under way in another thread.
    joined: bool = getattr(sys.modules.get("torch.distributed"), "is_initialized", bool)()
    return joined


def _start(rank: int) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), STARTED_BY_RANK_0: "1"}
    command = [sys.executable, "-m", "jumok", *sys.argv[1:]]
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
