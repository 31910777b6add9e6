"""Two machines, one training: one of them is cut off, comes back, and the end is the same."""

import subprocess
import time
from pathlib import Path

import pytest
from commands import longer_if_busy
from kills import assert_same
from machines import Machine, two_machines
from ranks import Job, arguments_of, train_in_turn, write_corpora

from jumok.training.records import read_log

STEPS = 400
SECONDS = 180  # for torchrun to start, to notice that a machine is gone, and to begin again


def wait_for_step(run: Path, step: int) -> None:
    deadline = time.monotonic() + longer_if_busy(SECONDS)
    while not any(entry["step"] >= step for entry in (read_log(run) if (run / "log.jsonl").exists() else ())):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def ended(process: subprocess.Popen[str]) -> int:
    return process.wait(longer_if_busy(SECONDS))


@pytest.mark.slow
def test_a_machine_that_was_cut_off_joins_again_and_the_end_is_the_same(tmp_path: Path) -> None:
    write_corpora(tmp_path)
    arguments = [*arguments_of("translator", tmp_path), f"--steps={STEPS}"]
    [whole] = train_in_turn([Job("whole", 2, arguments)], tmp_path)
    assert whole.codes == [0, 0]
    run, started = tmp_path / "run", []

    def start(machine: Machine) -> subprocess.Popen[str]:
        command = ["train", "translator", *arguments, "-o", str(run), "--quiet"]
        started.append(machine.torchrun(host, *command, cwd=tmp_path))
        return started[-1]

    with two_machines() as (host, other):
        try:
            staying, leaving = start(host), start(other)
            wait_for_step(run, 25)
            other.cut_off()
            assert ended(leaving) == 1  # torchrun has lost the rendezvous
            reached = read_log(run)[-1]["step"]
            assert staying.poll() is None  # it waits for the other one
            other.connect()
            coming_back = start(other)
            assert [ended(staying), ended(coming_back)] == [0, 0]
        finally:
            for process in started:
                process.kill()
                process.wait()
    assert 25 <= reached < STEPS
    assert "Another process of this training has ended" in (tmp_path / f"{host.name}.err").read_text()
    assert_same(run, tmp_path / "whole", STEPS)
