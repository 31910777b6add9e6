"""A training that is killed again and again, and what must be the same as if it had been left in peace."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from commands import SOURCE, train_arguments

from jumok.training.records import read_log

FORKER = Path(__file__).with_name("fork_kills.py")


@dataclass(frozen=True)
class Training:
    """A training in the run directory `out`: killed so many times, or once at step `last`, where it is left."""

    out: str
    kills: int = 0
    threads: int = 2
    last: int = 0
    seed: int = 0


def train(directory: Path, settings: Sequence[str], steps: int, *trainings: Training) -> list[list[int]]:
    """Train on the corpus in a directory, one after the other; returns the epochs in which each was killed."""
    jobs = [
        {
            **asdict(training),
            "out": str(directory / training.out),
            "kills": 1 if training.last else training.kills,
            "arguments": ["train", "translator", *train_arguments(directory, training.out, steps), *settings],
        }
        for training in trainings
    ]
    environment = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "2"}
    command = [sys.executable, FORKER, json.dumps(jobs)]
    done = subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def assert_same(one: Path, other: Path, steps: int) -> None:
    """The logs but for times, the model, and the weights and moments of the last checkpoint, bit for bit."""
    assert _timeless_log(one) == _timeless_log(other)
    for directory in ("model", f"checkpoints/step-{steps:08d}"):
        assert _digests(one / directory) == _digests(other / directory)


def _timeless_log(run: Path) -> list[dict[str, Any]]:
    return [{name: value for name, value in entry.items() if name != "seconds"} for entry in read_log(run)]


def _digests(directory: Path) -> dict[str, Any]:
    """What the manifest says of every file but those that name times."""
    files = json.loads((directory / "MANIFEST.json").read_bytes())["files"]
    return {name: value for name, value in files.items() if name.endswith((".safetensors", ".model"))}
