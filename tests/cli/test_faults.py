"""What happens to trainings in real life, through the command: each goes on and ends as if nothing had happened."""

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import Ended, Jumok, train_arguments

from jumok.training.checkpoint import load_latest
from jumok.training.records import read_log
from jumok.training.run_directory import RunDirectory
from jumok.training.trainer import Trainer

STEPS = 30
WEIGHTS = ("checkpoints/step-00000030/model", "checkpoints/step-00000030/optimizer", "model/weights")


@contextmanager
def before_step(step: int, happens: Callable[[Trainer], None]) -> Iterator[None]:
    """Something happens when a training comes to that step."""
    really = Trainer._step

    def disturbed(trainer: Trainer, *window: Any) -> bool:
        if trainer.progress.step == step - 1:
            happens(trainer)
        return really(trainer, *window)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Trainer, "_step", disturbed)
        yield


def stopped_by(number: int, jumok: Jumok, trained: Path, directory: Path) -> Ended:
    """A copy of `trained` without its run, and in it a training that got a signal at its eleventh step."""
    shutil.copytree(trained, directory, ignore=shutil.ignore_patterns("run"))
    with before_step(11, lambda _: signal.raise_signal(number)):
        return jumok("train", "translator", *train_arguments(directory, steps=STEPS))


def result(run: Path) -> dict[str, Any]:
    """All that a training leaves but times, and the checkpoints that only an interruption makes."""
    log = [{name: value for name, value in entry.items() if name != "seconds"} for entry in read_log(run)]
    weights = {name: (run / f"{name}.safetensors").read_bytes() for name in WEIGHTS}
    return {"log": [entry for entry in log if entry["event"] != "checkpoint"], **weights}


def goes_on(jumok: Jumok, directory: Path, step: int) -> None:
    ended = jumok("train", "translator", *train_arguments(directory, steps=STEPS))
    assert ended.code == 0, ended.err
    assert f"continuing from step {step} of {STEPS}" in ended.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGUSR1, 138)], ids=["TERM", "USR1"])
def test_a_signal_saves_and_leaves_with_its_own_code(
    jumok: Jumok, trained: Path, tmp_path: Path, number: int, code: int
) -> None:
    ended = stopped_by(number, jumok, trained, tmp_path / "here")
    assert ended.code == code
    assert "Continue with the same command" in ended.err
    last = read_log(tmp_path / "here" / "run")[-1]
    assert (last["event"], last["step"]) == ("checkpoint", 11)
    goes_on(jumok, tmp_path / "here", 11)
    assert result(tmp_path / "here" / "run") == result(trained / "run")


def test_a_clock_set_back_and_a_store_removed_change_nothing(
    jumok: Jumok, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    stopped_by(signal.SIGTERM, jumok, trained, here)
    shutil.rmtree(here / "run" / "store")
    year_2080 = 3_500_000_000
    for path in here.rglob("*"):
        os.utime(path, (year_2080, year_2080))
    monkeypatch.setattr(time, "time", lambda: 1.0)
    monkeypatch.setattr(time, "time_ns", lambda: 10**9)
    goes_on(jumok, here, 11)
    assert result(here / "run") == result(trained / "run")


def test_the_second_trainer_is_refused_and_told_who_the_first_is(jumok: Jumok, trained: Path) -> None:
    before = (trained / "run" / "log.jsonl").read_bytes()
    with RunDirectory.open(trained / "run", "translator"):
        ended = jumok("train", "translator", *train_arguments(trained, steps=STEPS))
    assert ended.code == 2
    assert f"in use by process {os.getpid()} on {socket.gethostname()}" in ended.err
    assert (trained / "run" / "log.jsonl").read_bytes() == before


def test_a_loss_that_is_no_number_ends_it_and_the_checkpoint_before_is_whole(
    jumok: Jumok, trained: Path, tmp_path: Path
) -> None:
    here = tmp_path / "here"
    shutil.copytree(trained, here, ignore=shutil.ignore_patterns("run"))

    def spoil(trainer: Trainer) -> None:
        with torch.no_grad():
            next(trainer.model.parameters())[5] = float("nan")

    with before_step(17, spoil):
        ended = jumok("train", "translator", *train_arguments(here, steps=STEPS))
    assert ended.code == 4
    assert "The loss of step 17 is" in ended.err
    assert "no update was made. Batch: lines " in ended.err
    checkpoint = load_latest(here / "run" / "checkpoints", lambda path, reason: pytest.fail(f"{path}: {reason}"))
    assert checkpoint is not None
    assert checkpoint.step == 15
    assert all(bool(weight.isfinite().all()) for weight in checkpoint.tensors["model"].values())
    goes_on(jumok, here, 15)
    assert result(here / "run") == result(trained / "run")
