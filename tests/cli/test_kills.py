"""A real training, through the command line, killed again and again: it ends with the bits of one left in peace."""

import json
from pathlib import Path

import pytest
from commands import write_corpus
from kills import Training, assert_same, train

from jumok.training.records import read_log

KILLS, KILLS_IN_ONE_EPOCH, STEPS, LAST_OF_ONE_THREAD = 30, 10, 140, 60
# Two pairs a batch make an epoch long enough to be killed in ten times.
SETTINGS = ["--set=batch.tokens=24", "--set=log.every=1", "--set=checkpoint.every=3", "--set=validate.every=35"]
SETTINGS += ["--set=optimizer.name=muon"]  # as a user's translator learns


def test_thirty_kills_change_nothing(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    whole, killed = Training("whole"), Training("killed", KILLS)
    one_thread = Training("one-thread", threads=1, last=LAST_OF_ONE_THREAD)
    unharmed, epochs, _ = train(tmp_path, SETTINGS, STEPS, whole, killed, one_thread)
    assert unharmed == []
    assert len(epochs) == KILLS
    assert max(epochs.count(epoch) for epoch in epochs) >= KILLS_IN_ONE_EPOCH
    assert_same(tmp_path / "killed", tmp_path / "whole", STEPS)
    # It had two threads, and they mattered: with one, sums are taken in another order.
    assert threads_of(tmp_path / "killed") == 2
    one = losses(tmp_path / "one-thread")
    assert one != losses(tmp_path / "killed")[: len(one)]
    assert one == pytest.approx(losses(tmp_path / "killed")[: len(one)], rel=1e-3)


def losses(run: Path) -> list[float]:
    return [entry["loss"] for entry in read_log(run) if entry["event"] == "train"]


def threads_of(run: Path) -> int:
    state = json.loads((run / "checkpoints" / f"step-{STEPS:08d}" / "state.json").read_bytes())["state"]
    return int(state["threads"])
