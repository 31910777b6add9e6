"""jumok train --processes: several processes, one training."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from commands import start, train_arguments, write_corpus

from jumok.training.records import read_log

# The same update from two small batches, whoever has them.
SHARED = ["--set=batch.tokens=128", "--set=batch.accumulate=2", "--set=log.every=1", "--set=validate.every=20"]


def finish(process: Any) -> str:
    """What it said; it must succeed."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return str(out)


def losses(run: Path) -> list[float]:
    return [entry["loss"] for entry in read_log(run) if entry["event"] == "train"]


def test_two_processes_learn_what_one_learns(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    for out, processes in (("one", 1), ("two", 2)):
        arguments = [*train_arguments(tmp_path, out, 50), *SHARED, "--processes", str(processes)]
        finish(start("train", "translator", *arguments, cwd=tmp_path))
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == len(two) == 50
    assert two == pytest.approx(one, abs=1e-5)  # dropout and all
    tokens = [[entry["tokens"] for entry in read_log(tmp_path / out)] for out in ("one", "two")]
    assert tokens[0] == tokens[1]


def test_a_training_of_two_goes_on_as_one(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    whole = [*train_arguments(tmp_path, "whole", 40), *SHARED]
    finish(start("train", "translator", *whole, cwd=tmp_path))
    parts = [*train_arguments(tmp_path, "parts", 40), *SHARED]
    process = start("train", "translator", *parts, "--processes", "2", "--json", cwd=tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "train" and event["step"] >= 15:
            process.send_signal(signal.SIGTERM)
            break
    _, err = process.communicate(timeout=120)
    assert process.returncode == 143, err
    assert read_log(tmp_path / "parts")[-1]["event"] == "checkpoint"
    said = finish(start("train", "translator", *parts, cwd=tmp_path))
    assert "going on from step" in said
    assert losses(tmp_path / "parts") == pytest.approx(losses(tmp_path / "whole"), abs=1e-5)


def test_when_one_is_killed_the_others_end(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = [*train_arguments(tmp_path, "run", 5000), *SHARED, "--set=checkpoint.every=10"]
    process = start("train", "translator", *arguments, "--processes", "2", "--json", cwd=tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "train" and event["step"] >= 12:
            break
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    began = time.monotonic()

    os.kill(int(children[-1]), signal.SIGKILL)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert process.returncode == 4, err
    assert "Another process of this training has ended" in err
