"""`--processes`: rank 0 starts the others; none is left behind, and one error is one message."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Any

import click
import pytest
import torch
from commands import Jumok, longer_if_busy, start, train_arguments, write_corpus

from jumok.cli import processes
from jumok.errors import ConfigError, InputError, JumokError, OtherProcessError, TrainingError
from jumok.model import devices
from jumok.training import distributed
from jumok.training.distributed import join_process_group
from jumok.training.records import read_log

SECONDS = 30  # within which the others must have ended, or a training must go on
ENDED = "Another process of this training has ended"
FREQUENT = ["--set=log.every=1", "--set=checkpoint.every=3", "--set=batch.accumulate=2", "--processes=2", "--json"]


def started_by(process: subprocess.Popen[str]) -> list[int]:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while not (started := children.read_text().split()):
        assert process.poll() is None
        time.sleep(0.01)
    return [int(child) for child in started]


def steps_of(process: subprocess.Popen[str]) -> Iterator[int]:
    """The number of every step, as it is made."""
    assert process.stdout is not None
    for line in process.stdout:
        event: dict[str, Any] = json.loads(line)
        if event["event"] == "train":
            yield event["step"]


def test_after_a_kill_the_same_command_goes_on_and_a_signal_to_the_first_stops_all(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = [*train_arguments(tmp_path, "run", 5000), *FREQUENT]
    first = start("train", "translator", *arguments, cwd=tmp_path)
    next(step for step in steps_of(first) if step >= 4)
    os.kill(started_by(first)[0], signal.SIGKILL)
    killed = time.monotonic()
    _, err = first.communicate()
    assert first.returncode == 4
    who, message = err.splitlines()
    assert who == "jumok: the process with rank 1 was ended by SIGKILL (the system does that when memory runs out)."
    assert message.startswith(f"jumok: {ENDED}")

    again = start("train", "translator", *arguments, cwd=tmp_path)
    steps = steps_of(again)
    assert next(steps) >= 4  # a step after a checkpoint
    assert time.monotonic() - killed < longer_if_busy(SECONDS)
    again.send_signal(signal.SIGTERM)
    _, err = again.communicate()
    assert again.returncode == 143, err
    assert ENDED not in err
    assert read_log(tmp_path / "run")[-1]["event"] == "checkpoint"


def test_when_one_ends_before_they_have_met_all_end(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = train_arguments(tmp_path)
    leaders = [start("train", "translator", *arguments, "--processes=2", cwd=tmp_path) for _ in range(2)]
    os.kill(started_by(leaders[0])[0], signal.SIGKILL)
    started_by(leaders[1])
    leaders[1].terminate()
    began = time.monotonic()
    # Their streams end only when every process that has them has ended, the follower too.
    errors = [leader.communicate()[1] for leader in leaders]
    assert time.monotonic() - began < longer_if_busy(SECONDS)
    assert [leader.returncode for leader in leaders] == [4, -signal.SIGTERM]
    assert all(ENDED in err for err in errors)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_an_error_of_rank_0_is_the_only_message(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    (tmp_path / "a.ko").unlink()
    ended = start("train", "translator", *train_arguments(tmp_path), "--processes=3", cwd=tmp_path)
    _, err = ended.communicate()
    assert ended.returncode == 2
    [message] = err.splitlines()
    assert "a.ko: no such file" in message


SHARED_ERROR, OWN_ERROR = TrainingError("The loss is nan."), TrainingError("A batch does not fit into memory.")
NOTICED = OtherProcessError(f"{ENDED}.")


@pytest.mark.parametrize(
    ("report", "error", "printed"),
    [
        ("ended", NOTICED, False),  # by Ctrl-C
        ("a.ko: no such file.", NOTICED, False),
        (str(SHARED_ERROR), SHARED_ERROR, False),
        (str(NOTICED), OWN_ERROR, True),
        ("", NOTICED, True),  # rank 0 was killed
    ],
)
def test_a_follower_prints_what_rank_0_does_not(
    monkeypatch: pytest.MonkeyPatch, report: str, error: JumokError, printed: bool
) -> None:
    written = [report[:5].encode(), report[5:].encode(), b""]
    monkeypatch.setattr(os, "read", lambda descriptor, size: written.pop(0) if descriptor == 0 else b"")
    with pytest.raises(JumokError if printed else click.exceptions.Exit) as ended, processes._following():
        raise error
    assert ended.value is error or ended.value.exit_code == error.exit_code


def test_rank_0_tells_the_others_what_it_has_reported_and_waits_for_them() -> None:
    program = [sys.executable, "-S", "-c", "import sys; print(sys.stdin.read())"]
    followers = [subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(2)]
    with pytest.raises(InputError), processes._leading(followers):
        raise InputError("파일이 없습니다")
    for follower in followers:
        assert follower.returncode == 0
        assert follower.stdout is not None
        with follower.stdout:
            assert follower.stdout.read().decode().strip() == "파일이 없습니다"


@pytest.mark.parametrize("waits", [True, False])
def test_rank_0_ends_if_it_waits_for_one_that_has_ended_and_else_goes_on(
    monkeypatch: pytest.MonkeyPatch, waits: bool
) -> None:
    """gloo does not always notice. What rank 0 does alone, a validation or a checkpoint, it finishes first."""
    codes: list[int] = []
    monkeypatch.setattr(os, "_exit", codes.append)
    monkeypatch.setattr(processes, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(processes, "NOTICE_SECONDS", 0.01)
    monkeypatch.setattr(processes, "_has_joined", lambda: True)
    if waits:  # as if this file were torch.distributed
        monkeypatch.setattr(processes, "_torch_distributed", lambda: Path(__file__).parent)
    follower = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.exit(1)"], stdin=subprocess.PIPE)
    with processes._leading([follower]):
        follower.wait()
        deadline = time.monotonic() + (10 * SECONDS if waits else 0.2)
        while not codes and time.monotonic() < deadline:
            time.sleep(0.01)
    assert set(codes) == ({4} if waits else set())


def test_processes_that_do_not_come_are_not_waited_for_as_long_as_those_that_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    port = str(processes._free_port())
    for name, value in {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}.items():
        monkeypatch.setenv(name, value)
    assert distributed.JOIN_TIMEOUT < distributed.RANK_0_TIMEOUT < distributed.COLLECTIVE_TIMEOUT / 10
    monkeypatch.setattr(distributed, "JOIN_TIMEOUT", timedelta(seconds=0.5))
    with pytest.raises(TrainingError, match="2 processes of this training could not connect"), join_process_group():
        pytest.fail("nobody has come")


@pytest.mark.parametrize(
    ("device", "cards", "count", "said"),
    [
        ("auto", 0, 1, "1: on the CPU one process uses all cores."),
        ("auto", 3, 3, "3, one for each card (cuda:0, cuda:1, cuda:2)."),
        ("cuda", 2, 2, "2, one for each card (cuda:0, cuda:1)."),
        ("cuda:1", 3, 1, "1, one for each card (cuda:1)."),
        ("cpu", 3, 1, "1: on the CPU one process uses all cores."),
    ],
)
def test_auto_is_one_process_for_each_card_and_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], device: str, cards: int, count: int, said: str
) -> None:
    there = torch.device("cuda") if cards else None
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda **_: there)
    monkeypatch.setattr(devices, "_count", lambda kind: cards)
    assert processes._process_count("auto", device, quiet=False) == count
    assert capfd.readouterr().err == f"--processes auto: {said}\n"
    assert processes._process_count("auto", device, quiet=True) == count
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("asked", ["two", "-1", "0", "1.5", ""])
def test_a_number_of_processes_that_is_none_is_an_error(jumok: Jumok, tmp_path: Path, asked: str) -> None:
    ended = jumok("train", "translator", *train_arguments(tmp_path), f"--processes={asked}")
    assert ended.code == 2
    assert "--processes=" in ended.err


def test_processes_on_different_kinds_of_devices_are_an_error_that_names_them() -> None:
    distributed._require_same_hardware([["cuda", "bfloat16"], ["cuda", "bfloat16"]])
    with pytest.raises(ConfigError, match=r"different devices \(process 0: cpu, process 1: cuda\)\. Choose one"):
        distributed._require_same_hardware([["cpu", "float32"], ["cuda", "bfloat16"]])


def test_cards_for_which_auto_chooses_different_precisions_are_an_error_that_names_them() -> None:
    expected = r"different precisions \(process 0: float32, process 1: bfloat16\)\. Choose one with `precision=`"
    with pytest.raises(ConfigError, match=expected):
        distributed._require_same_hardware([["cuda", "float32"], ["cuda", "bfloat16"]])


def test_every_process_takes_a_card_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[dict[str, str]] = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, *, env, **_: started.append(env))
    monkeypatch.setattr(processes, "_leading", lambda followers: nullcontext())
    before = torch.get_num_threads()
    try:
        with processes.processes_started("3", "auto"):
            environments = [dict(os.environ), *started]
    finally:
        torch.set_num_threads(before)
    assert [env["LOCAL_RANK"] for env in environments] == [env["RANK"] for env in environments] == ["0", "1", "2"]


def test_one_process_has_nothing_to_share(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path), "--shard")
    assert ended.code == 2
    assert "--shard is for several processes" in ended.err
    assert not (tmp_path / "run").exists()
