"""Runs the trainings of kills.py one after the other. Their processes are forks of this one: see preloading.py."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import torch
from preloading import preload

from jumok.cli.app import run
from jumok.training.records import read_log


def start(job: dict[str, Any]) -> int:
    """Fork a process that trains; returns its id."""
    child = os.fork()
    if child == 0:
        torch.set_num_threads(job["threads"])
        os._exit(run([*job["arguments"], "--quiet"]))
    return child


def wait_for_step(run_directory: Path, step: int, child: int) -> None:
    """Return when the log tells of this step."""
    log, size = run_directory / "log.jsonl", 0
    while True:
        if log.exists() and log.stat().st_size != size:
            size = log.stat().st_size
            if any(entry["step"] >= step for entry in read_log(run_directory) if entry["event"] == "train"):
                return
        time.sleep(0.002)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it ended by itself"


def train(job: dict[str, Any]) -> list[int]:
    """The epochs that the training was killed in."""
    path, randomness, epochs = Path(job["out"]), random.Random(job["seed"]), []
    for _ in range(job["kills"]):
        saved = max((int(name.name[5:]) for name in path.glob("checkpoints/step-*")), default=0)
        child = start(job)
        wait_for_step(path, job["last"] or saved + randomness.randint(1, 6), child)
        time.sleep(randomness.uniform(0, 0.03))
        epochs.append(read_log(path)[-1]["epoch"])
        os.kill(child, signal.SIGKILL)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
    if not job["last"]:
        assert os.waitpid(start(job), 0)[1] == 0
    return epochs


if __name__ == "__main__":
    preload()
    for each in json.loads(sys.argv[1]):
        print(json.dumps(train(each)), flush=True)
