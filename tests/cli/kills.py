"""A training that is killed again and again, and what must be the same as if it had been left in peace."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from commands import SOURCE, train_arguments

from jumok.training.records import read_log

# Forks instead of starting anew, because importing PyTorch takes longer than the whole training.
KILLER = """
import os, random, signal, sys, time
from pathlib import Path
import ctranslate2, sacrebleu, torch, torch._dynamo  # only to have them: an optimizer imports the last
from jumok.cli.app import run
from jumok.training.records import read_log
path, kills, seed, last, arguments = Path(sys.argv[1]), *map(int, sys.argv[2:5]), sys.argv[5:]
assert torch.get_num_threads() == int(os.environ["OMP_NUM_THREADS"])
randomness = random.Random(seed)

def started():
    child = os.fork()
    if child == 0:
        os._exit(run([*arguments, "--quiet"]))
    return child

def steps_done():
    return max((entry["step"] for entry in read_log(path) if entry["event"] == "train"), default=0)

for _ in range(kills):
    saved = max((int(name.name[5:]) for name in path.glob("checkpoints/step-*")), default=0)
    child, until = started(), last or saved + randomness.randint(1, 6)
    while steps_done() < until or not path.exists():
        time.sleep(0.002)
        assert os.waitpid(child, os.WNOHANG) == (0, 0), "it ended by itself"
    time.sleep(randomness.uniform(0, 0.03))
    epoch = read_log(path)[-1]["epoch"]
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    print(epoch)
if not last:
    assert os.waitpid(started(), 0)[1] == 0
"""


def train(
    directory: Path,
    out: str,
    settings: Sequence[str],
    *,
    steps: int,
    kills: int = 0,
    seed: int = 0,
    threads: int = 2,
    last: int = 0,
) -> list[int]:
    """Trains to the end, or to step `last`, where it is killed; the epochs it was killed in."""
    command = [sys.executable, "-c", KILLER, directory / out, str(1 if last else kills), str(seed), str(last)]
    command += ["train", "translator", *train_arguments(directory, out, steps), *settings]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": str(threads)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


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
