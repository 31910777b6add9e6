"""Trainings of several processes that are forks of one: importing PyTorch takes longer than they do.

Beside what every training leaves, process R leaves `lines-R.jsonl`, the lines of the corpus it learned from in each of
its updates, and `memory-R.safetensors`, the weights it had in the end (a sharded training: the first process alone).
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from commands import SOURCE

FORKER = """
import json, os, signal, socket, sys, time
from pathlib import Path
import ctranslate2, sacrebleu, torch._dynamo, jumok.training.sharded  # only to have them
from safetensors.torch import save_file
from jumok.cli.app import run
from jumok.training import trainer as trainer_module
from jumok.training.trainer import Trainer
step, finish, load = Trainer._step, Trainer._finish, trainer_module.load_latest

def disturbed_and_noted(trainer, window, *rest):
    if trainer.progress.step == job["at"] and trainer.group.rank == job["rank"]:
        signal.raise_signal(job["signal"])
    lines = [int(line) for _, batch in window for line in batch.lines]
    with open(Path(job["out"], f"lines-{trainer.group.rank}.jsonl"), "a") as file:
        print(json.dumps([trainer.progress.step + 1, lines]), file=file)
    return step(trainer, window, *rest)

def kept_and_finished(trainer):
    weights = {name: weight.clone() for name, weight in trainer.group.gather(trainer.model.state_dict()).items()}
    if weights:
        save_file(weights, Path(job["out"], f"memory-{trainer.group.rank}.safetensors"))
    finish(trainer)

def loaded_late(*arguments):  # by all but the first, which must not have changed anything in the meantime
    time.sleep(0.5 if int(os.environ.get("RANK", "0")) else 0)
    return load(*arguments)

Trainer._step, Trainer._finish, trainer_module.load_latest = disturbed_and_noted, kept_and_finished, loaded_late

def start(rank, port):
    child = os.fork()
    if child == 0:
        if job["processes"] > 1:
            os.environ |= {"RANK": str(rank), "WORLD_SIZE": str(job["processes"])}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        os._exit(run(["train", job["task"], *job["arguments"], "-o", job["out"], "--quiet"]))
    return child

for job in json.loads(sys.argv[1]):
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    began = time.monotonic()
    children = [start(rank, port) for rank in range(job["processes"])]
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(json.dumps({"codes": codes, "seconds": time.monotonic() - began}))
"""


@dataclass(frozen=True)
class Job:
    """A training; `signal` reaches process `rank` when it has made `at` updates."""

    out: str
    processes: int
    arguments: Sequence[str]
    at: int = -1
    rank: int = 0
    signal: int = signal.SIGTERM
    task: str = "translator"


@dataclass(frozen=True)
class Outcome:
    """The exit code of each process, and how long they took."""

    codes: list[int]
    seconds: float


def train_in_turn(jobs: Sequence[Job], cwd: Path) -> list[Outcome]:
    """How they ended. Warnings are errors there too."""
    command = [sys.executable, "-W", "error", "-c", FORKER, json.dumps([asdict(job) for job in jobs])]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    outcomes = [Outcome(**json.loads(line)) for line in done.stdout.splitlines() if line.startswith('{"codes"')]
    assert len(outcomes) == len(jobs), done.stderr
    return outcomes


def lines_learned_from(run: Path) -> list[dict[int, list[int]]]:
    """For each process the lines of each of its updates, the last time it made it."""
    files = sorted(run.glob("lines-*.jsonl"))
    return [dict(json.loads(line) for line in file.read_text().splitlines()) for file in files]
