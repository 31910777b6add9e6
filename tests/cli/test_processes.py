"""Several processes, one training: --processes, torchrun, and --shard."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import SMALL, SOURCE, Jumok, start, train_arguments, write_corpus
from kills import assert_same
from ranks import Job, Outcome, lines_learned_from, train_in_turn
from safetensors.torch import load_file

from jumok.cli.processes import _free_port
from jumok.errors import TrainingError
from jumok.training import distributed
from jumok.training.checkpoint import load_latest
from jumok.training.distributed import join_process_group
from jumok.training.records import read_log

# Parallel test workers would each train for them.
pytestmark = pytest.mark.xdist_group("processes")

STEPS, TOLERANCE = 50, 1e-5
# The same update from three small batches, whoever has them, the last of an epoch from fewer.
SHARED = ["--set=batch.tokens=128", "--set=batch.accumulate=3", "--set=log.every=1"]
SHARED += ["--set=validate.every=25", "--set=checkpoint.every=10", "--set=checkpoint.average=1"]
SECONDS = 30  # within which the others must notice that one has died


def losses(run: Path) -> list[float]:
    return [entry["loss"] for entry in read_log(run) if entry["event"] == "train"]


def other_tasks(directory: Path) -> dict[str, Job]:
    """A classifier and a language model, each by one and by two that share it."""
    sentences = (directory / "a.en").read_text().splitlines()
    (directory / "a.tsv").write_text("".join(f"{line.split()[1]}\t{line}\n" for line in sentences))
    options = [*SMALL, *SHARED, "--steps=4", "--set=validate.every=2"]
    classifier = ["a.tsv", *(option for option in options if "decoder" not in option)]
    lm = ["a.en", *(option for option in options if "encoder" not in option)]
    return {
        "classifier": Job("classifier", 1, classifier, task="classifier"),
        "classifier, sharded": Job("classifier-sharded", 2, [*classifier, "--shard"], task="classifier"),
        "lm": Job("lm", 1, lm, task="lm"),
        "lm, sharded": Job("lm-sharded", 2, [*lm, "--shard"], task="lm"),
    }


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Outcome]]:
    """The same training by one, by two, by two that share the model; stopped and killed; and how each ended.

    And two others.
    """
    directory = tmp_path_factory.mktemp("ranks")
    write_corpus(directory)
    arguments = [*train_arguments(directory, "unused", STEPS), *SHARED]
    sharded = [*arguments, "--shard"]
    jobs = {
        "one": Job("one", 1, arguments),
        "two": Job("two", 2, arguments),
        "sharded": Job("sharded", 2, sharded),
        "changing, two": Job("changing", 2, arguments, at=16, rank=1, signal=signal.SIGTERM),
        "changing, sharded by three": Job("changing", 3, sharded, at=33, rank=2, signal=signal.SIGUSR1),
        "changing, one": Job("changing", 1, arguments),
        "killed": Job("killed", 2, arguments, at=12, rank=1, signal=signal.SIGKILL),
        "killed, sharded": Job("killed-sharded", 2, sharded, at=12, rank=1, signal=signal.SIGKILL),
        "other batches": Job("killed", 2, [*arguments, "--set=batch.tokens=96", "--continue-with-changes"]),
        **other_tasks(directory),
    }
    return directory, dict(zip(jobs, train_in_turn(list(jobs.values()), directory), strict=True))


@pytest.mark.parametrize("how", ["two", "sharded"])
def test_two_processes_learn_what_one_learns(runs: tuple[Path, dict[str, Outcome]], how: str) -> None:
    directory, outcomes = runs
    assert outcomes["one"].codes == [0]
    assert outcomes[how].codes == [0, 0]
    one, two = losses(directory / "one"), losses(directory / how)
    assert len(one) == len(two) == STEPS
    assert two == pytest.approx(one, abs=TOLERANCE)  # dropout and all
    tokens = [[entry["tokens"] for entry in read_log(directory / run)] for run in ("one", how)]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize("task", ["classifier", "lm"])
def test_other_models_are_shared_too(runs: tuple[Path, dict[str, Outcome]], task: str) -> None:
    directory, outcomes = runs
    assert outcomes[task].codes == [0]
    assert outcomes[f"{task}, sharded"].codes == [0, 0]
    one, two = (read_log(directory / run) for run in (task, f"{task}-sharded"))
    for event, value in (("train", "loss"), ("valid", "score")):
        expected = [entry[value] for entry in one if entry["event"] == event]
        assert len(expected) >= 2
        assert [entry[value] for entry in two if entry["event"] == event] == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("how", ["two", "sharded"])
def test_what_two_have_saved_one_loads_exactly(runs: tuple[Path, dict[str, Outcome]], how: str) -> None:
    run = runs[0] / how
    checkpoint = load_latest(run / "checkpoints", lambda path, reason: pytest.fail(f"{path}: {reason}"))
    assert checkpoint is not None
    assert checkpoint.step == STEPS
    memories = sorted(run.glob("memory-*"))
    assert len(memories) == (2 if how == "two" else 1)
    for memory in map(load_file, memories):
        assert memory.keys() == checkpoint.tensors["model"].keys()
        assert all(torch.equal(memory[name], weight) for name, weight in checkpoint.tensors["model"].items())
    one = load_latest(runs[0] / "one" / "checkpoints", lambda *_: None)
    assert one is not None
    shapes = [
        {group: {name: tensor.shape for name, tensor in members.items()} for group, members in each.tensors.items()}
        for each in (checkpoint, one)
    ]
    assert shapes[0] == shapes[1]


def epochs_of(lines: dict[int, list[int]]) -> list[list[int]]:
    """The lines of each epoch that was gone through, in order."""
    everything = [line for step in sorted(lines) for line in lines[step]]
    size = len(set(everything))
    return [everything[start : start + size] for start in range(0, len(everything) - size + 1, size)]


@pytest.mark.parametrize("how", ["two", "sharded"])
def test_shares_are_disjoint_and_together_everything(runs: tuple[Path, dict[str, Outcome]], how: str) -> None:
    directory, _ = runs
    [alone], shares = lines_learned_from(directory / "one"), lines_learned_from(directory / how)
    assert len(shares) == 2
    assert all(len([step for step in share if share[step]]) > STEPS // 2 for share in shares)
    together = {step: Counter(line for share in shares for line in share[step]) for step in alone}
    assert together == {step: Counter(lines) for step, lines in alone.items()}
    epochs = epochs_of(alone)
    assert len(epochs) > 5
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)  # each line once in each
    sizes = [len(lines) for lines in alone.values()]
    assert min(sizes) < max(sizes) / 2  # the last update of an epoch has fewer


def test_a_training_goes_on_with_any_number_of_processes(runs: tuple[Path, dict[str, Outcome]]) -> None:
    directory, outcomes = runs
    # A signal reaches one process and stops all; the others leave as if by Ctrl-C.
    assert outcomes["changing, two"].codes == [130, 143]
    assert outcomes["changing, sharded by three"].codes == [130, 130, 138]
    assert outcomes["changing, one"].codes == [0]
    assert losses(directory / "changing") == pytest.approx(losses(directory / "one"), abs=TOLERANCE)
    shares, [alone] = lines_learned_from(directory / "changing"), lines_learned_from(directory / "one")
    assert [(min(share), max(share)) for share in shares] == [(1, STEPS), (1, 34), (18, 34)]
    together = {step: Counter(line for share in shares for line in share.get(step, ())) for step in alone}
    assert together == {step: Counter(lines) for step, lines in alone.items()}


def test_two_go_on_together_with_other_batches(runs: tuple[Path, dict[str, Outcome]]) -> None:
    directory, outcomes = runs
    assert outcomes["other batches"].codes == [0, 0]
    assert [max(share) for share in lines_learned_from(directory / "killed")] == [STEPS, STEPS]


@pytest.mark.parametrize("how", ["killed", "killed, sharded"])
def test_when_one_is_killed_the_others_end(runs: tuple[Path, dict[str, Outcome]], how: str) -> None:
    outcome = runs[1][how]
    assert outcome.codes == [4, -signal.SIGKILL]
    assert outcome.seconds < SECONDS


def torchrun(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    """Two processes started by torchrun, in a process group of their own."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", *arguments]
    return subprocess.Popen(
        command, cwd=cwd, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def test_torchrun_starts_again_what_was_killed_and_the_end_is_the_same(runs: tuple[Path, dict[str, Outcome]]) -> None:
    """--fresh does not forget again what was learned before the restart."""
    directory, _ = runs
    arguments = [*train_arguments(directory, "elastic", STEPS), *SHARED, "--fresh", "--json"]
    events: list[dict[str, Any]] = []
    killed = restarted = 0.0
    with torchrun("--max-restarts=1", "-m", "jumok", "train", "translator", *arguments, cwd=directory) as started:
        assert started.stdout is not None
        for line in started.stdout:
            events.append(json.loads(line))
            if not killed and events[-1].get("step", 0) >= 13:
                victim = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()[-1]
                os.kill(int(victim), signal.SIGKILL)
                killed = time.monotonic()
            elif killed and not restarted and events[-1]["event"] == "corpus":
                restarted = time.monotonic()
        _, err = started.communicate(timeout=60)
    assert started.returncode == 0, err
    assert 0 < restarted - killed < SECONDS
    [resumed] = [event for event in events if event["event"] == "resumed"]
    assert resumed["step"] >= 10
    assert_same(directory / "elastic", directory / "two", STEPS)


def test_processes_starts_them_and_a_signal_to_the_first_stops_all(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    arguments = [*train_arguments(tmp_path, "run", 5000), *SHARED, "--processes", "2", "--json"]
    process = start("train", "translator", *arguments, cwd=tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "train" and event["step"] >= 3:
            process.send_signal(signal.SIGTERM)
            break
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert read_log(tmp_path / "run")[-1]["event"] == "checkpoint"


@pytest.mark.parametrize(
    ("victim", "killed_by", "code"), [("follower", signal.SIGKILL, 4), ("leader", signal.SIGTERM, -signal.SIGTERM)]
)
def test_when_one_ends_before_they_have_met_all_end(
    tmp_path: Path, victim: str, killed_by: signal.Signals, code: int
) -> None:
    write_corpus(tmp_path)
    leader = start("train", "translator", *train_arguments(tmp_path), "--processes", "2", cwd=tmp_path)
    children = Path(f"/proc/{leader.pid}/task/{leader.pid}/children")
    while not (started := children.read_text().split()):
        time.sleep(0.01)
    os.kill(int(started[0]) if victim == "follower" else leader.pid, killed_by)
    # Its streams end only when every process that has them has ended, the follower too.
    _, err = leader.communicate(timeout=SECONDS)
    assert leader.returncode == code, err
    assert "Another process of this training has ended" in err
    assert not (tmp_path / "run").exists()


def test_processes_that_do_not_come_are_not_waited_for_as_long_as_those_that_have(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(_free_port())}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert distributed.JOIN_TIMEOUT < distributed.COLLECTIVE_TIMEOUT / 10
    monkeypatch.setattr(distributed, "JOIN_TIMEOUT", timedelta(seconds=1))
    with pytest.raises(TrainingError, match="2 processes of this training could not connect"), join_process_group():
        pytest.fail("nobody has come")


def test_one_process_has_nothing_to_share(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path)
    ended = jumok("train", "translator", *train_arguments(tmp_path), "--shard")
    assert ended.code == 2
    assert "--shard is for several processes" in ended.err
    assert not (tmp_path / "run").exists()
