"""What a training says of itself while it goes on: the step, the time left, the epoch, and what became of averages."""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.training.toy import Toy

from jumok.training import trainer
from jumok.training.records import LOG, RUN, read_log
from jumok.training.run_directory import RunDirectory

STEPS_IN_AN_EPOCH = 4


def test_the_step_is_reported_however_rarely_the_log_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "REPORT_SECONDS", 0.0)
    toy = Toy(tmp_path / "run", log_every=1000)
    toy.go()
    steps = [event for event in toy.events if event["event"] == "step"]
    assert [event["step"] for event in steps] == list(range(1, 31))
    assert [event["epoch"] for event in steps] == [1 + step // STEPS_IN_AN_EPOCH for step in range(30)]
    assert all(event["seconds_left"] >= 0 for event in steps)
    assert [entry["event"] for entry in read_log(tmp_path / "run")].count("step") == 0


def test_the_step_is_reported_once_a_second_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainer, "REPORT_SECONDS", 1e9)
    toy = Toy(tmp_path / "run")
    toy.go()
    assert [event["step"] for event in toy.events if event["event"] == "step"] == [1]


def test_the_time_left_is_that_of_the_remaining_steps_and_validations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(trainer, "time", SimpleNamespace(perf_counter=lambda: clock.now))
    monkeypatch.setattr(trainer, "REPORT_SECONDS", 0.0)
    toy = Toy(tmp_path / "run", average=1, validation_steps=1.0)  # as long as an update, as it turns out

    def lasting_a_second(call: Callable[..., Any]) -> Callable[..., Any]:
        def longer(*arguments: Any) -> Any:
            clock.now += 1
            return call(*arguments)

        return longer

    for method in ("_step", "_validate_on_rank_0"):
        monkeypatch.setattr(trainer.Trainer, method, lasting_a_second(getattr(trainer.Trainer, method)))
    toy.go()
    reports = [event for event in toy.events if event["event"] == "step"]
    validation = toy.trainer.progress.validation_seconds
    each = {report["step"]: report["seconds"] / report["step"] for report in reports}  # the mean so far
    assert min(each.values()) > 0
    assert validation > 0
    left = {report["step"]: report["seconds_left"] for report in reports}
    assert left[29] == pytest.approx(each[29] + validation)
    assert left[22] == pytest.approx(8 * each[22] + 2 * validation)  # validations at 24 and 30
    assert list(left.values()) == sorted(left.values(), reverse=True)


def test_epochs_are_counted_from_one_and_the_last_is_not_one_too_many(tmp_path: Path) -> None:
    toy = Toy(tmp_path / "run", steps=2 * STEPS_IN_AN_EPOCH, log_every=1)
    toy.go()
    entries = [entry for entry in read_log(tmp_path / "run") if entry["event"] == "train"]
    assert [entry["epoch"] for entry in entries] == [1] * STEPS_IN_AN_EPOCH + [2] * STEPS_IN_AN_EPOCH
    assert read_log(tmp_path / "run")[-1]["epoch"] == 2


@pytest.mark.parametrize(("recorded", "in_the_file"), [({"first_epoch": 1}, 1), ({}, 0)])
def test_a_log_goes_on_counting_as_it_began_and_is_read_as_counted_from_one(
    tmp_path: Path, recorded: dict[str, int], in_the_file: int
) -> None:
    path = tmp_path / "run"
    with RunDirectory.open(path, "toy") as run:
        run.write({"asked": {}, "settings": {}, "fingerprint": "", "keeps_vocabulary": False, **recorded})
    Toy(path, steps=5, log_every=1).go()
    assert ("first_epoch" in json.loads((path / RUN).read_text())) == bool(recorded)
    written = [json.loads(line)["epoch"] for line in (path / LOG).read_text().splitlines()]
    assert set(written) == {in_the_file, in_the_file + 1}
    assert {entry["epoch"] for entry in read_log(path)} == {1, 2}


def test_a_validation_says_whether_it_is_the_best_so_far(tmp_path: Path) -> None:
    toy = Toy(tmp_path / "run", score_of=lambda model, step: -abs(step - 12))
    toy.go()
    valid = [event for event in toy.events if event["event"] == "valid"]
    assert [event["best"] for event in valid[:5]] == [True, True, False, False, False]
    assert {event["averaged"]: event["best"] for event in valid[5:]} == {"last": False, "best": False}


def test_a_resumed_training_says_what_came_before(tmp_path: Path) -> None:
    Toy(tmp_path / "run", stop_after=13).go()
    log = read_log(tmp_path / "run")
    again = Toy(tmp_path / "run")
    again.go()
    [resumed] = [event for event in again.events if event["event"] == "resumed"]
    assert resumed["losses"] == [entry["loss"] for entry in log if entry["event"] == "train"]
    assert [validation["step"] for validation in resumed["validations"]] == [6, 12]
