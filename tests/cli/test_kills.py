"""A real training, through the command line, killed again and again: it ends with the bits of one left in peace."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from commands import SOURCE, train_arguments, write_corpus

from jumok.training.records import read_log

KILLS, KILLS_IN_ONE_EPOCH, STEPS = 30, 10, 140
# Two pairs a batch make an epoch long enough to be killed in ten times.
SETTINGS = ["--set=batch.tokens=24", "--set=log.every=1", "--set=checkpoint.every=3", "--set=validate.every=35"]

# Forks instead of starting anew, because importing PyTorch takes longer than the whole training.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
from jumok.cli.app import run
from jumok.recipes import job
from jumok.training.records import read_log
job.measure_step = lambda step, *_: (step(), 0.01)[1]
path, kills, arguments = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
randomness = random.Random(0)

def started():
    child = os.fork()
    if child == 0:
        os._exit(run([*arguments, "--quiet"]))
    return child

def steps_done():
    return max((entry["step"] for entry in read_log(path) if entry["event"] == "train"), default=0)

for _ in range(kills):
    saved = max((int(name.name[5:]) for name in path.glob("checkpoints/step-*")), default=0)
    child, until = started(), saved + randomness.randint(1, 6)
    while steps_done() < until or not path.exists():
        time.sleep(0.002)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it ended by itself"
    time.sleep(randomness.uniform(0, 0.03))
    epoch = read_log(path)[-1]["epoch"]
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    print(epoch)
assert os.waitpid(started(), 0)[1] == 0
"""


def train(directory: Path, out: str, kills: int) -> list[int]:
    """Trains to the end; the epochs it was killed in."""
    command = [sys.executable, "-c", KILLER, directory / out, str(kills), "train", "translator"]
    command += [*train_arguments(directory, out, STEPS), *SETTINGS]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


def timeless_log(run: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in read_log(run)]


def digests(directory: Path) -> dict[str, Any]:
    """What the manifest says of every file but those that name times."""
    files = json.loads((directory / "MANIFEST.json").read_bytes())["files"]
    return {name: value for name, value in files.items() if name.endswith((".safetensors", ".model"))}


def test_thirty_kills_change_nothing(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    assert train(tmp_path, "whole", 0) == []
    epochs = train(tmp_path, "killed", KILLS)
    assert len(epochs) == KILLS
    assert max(epochs.count(epoch) for epoch in epochs) >= KILLS_IN_ONE_EPOCH
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert timeless_log(killed) == timeless_log(whole)
    assert digests(killed / "model") == digests(whole / "model")
    last = f"checkpoints/step-{STEPS:08d}"
    assert digests(killed / last) == digests(whole / last)
