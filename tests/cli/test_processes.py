"""Several processes, one training: replicas and --shard learn what one process learns, whatever happens to them."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import SOURCE, longer_if_busy
from kills import assert_same
from ranks import (
    MUON_STEPS,
    OVERFLOWS,
    PAINTER_STEPS,
    STEPS,
    TASKS,
    THREADED_STEPS,
    Fault,
    Job,
    Outcome,
    arguments_of,
    by_muon,
    changing,
    disturbed,
    diversifying,
    in_bfloat16,
    in_float16,
    lines_learned_from,
    painting,
    threaded,
    train_in_rows,
    train_in_turn,
    uninterrupted,
    write_corpora,
)
from safetensors.torch import load_file
from torch import Tensor

from jumok.training.checkpoint import Checkpoint, load_group, load_latest
from jumok.training.precision import FIRST_SCALE
from jumok.training.records import read_log
from jumok.training.settings import Settings

TOLERANCE = 1e-5
AVERAGED = Settings.from_dict({}).checkpoint.average  # checkpoints, where nothing else is asked for
SECONDS = 30  # within which the others must have ended, or a training must go on

WAYS = ("two", "sharded")
TASKS_AND_WAYS = list(product(TASKS, WAYS))
Runs = tuple[Path, dict[str, Outcome]]

# Each moment and each rank, among replicas or among those that share a model. All of them are in `make test-slow`.
KILLS = {
    "two": [Fault("collective", 0, 3), Fault("validation", 0, 10), Fault("save", 1, 10), Fault("step", 1, 14)],
    "sharded": [Fault("collective", 1, 3), Fault("validation", 1, 10), Fault("save", 0, 20), Fault("step", 0, 24)],
}
NOT_FINITE = {"two": Fault("loss", 1, 5), "sharded": Fault("gradient", 0, 5)}
DIVERGED = Fault("moments", 1, 9)  # in the last update before a validation and a checkpoint


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """All of these trainings, in one directory, and how each ended."""
    directory = tmp_path_factory.mktemp("ranks")
    write_corpora(directory)
    jobs = dict(uninterrupted(directory)) | dict(painting(directory)) | dict(by_muon(directory))
    others = dict(changing(directory)) | dict(threaded(directory))
    others |= dict(in_bfloat16(directory)) | dict(in_float16(directory)) | dict(diversifying(directory))
    for how in WAYS:
        others |= disturbed(directory, how, [NOT_FINITE[how], DIVERGED, *KILLS[how]])

    # While one row waits for those that were killed, the other works.
    rows = train_in_rows([list(jobs.values()), list(others.values())], directory)
    first, second = (dict(zip(named, ended, strict=True)) for named, ended in zip((jobs, others), rows, strict=True))
    return directory, first | second


def losses(run: Path) -> list[float]:
    return [entry["loss"] for entry in read_log(run) if entry["event"] == "train"]


def last_checkpoint(run: Path) -> Checkpoint:
    checkpoint = load_latest(run / "checkpoints", lambda path, reason: pytest.fail(f"{path}: {reason}"))
    assert checkpoint is not None
    return checkpoint


def floating(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in tensors.items() if tensor.is_floating_point()}


def assert_close(found: Checkpoint, expected: Checkpoint) -> None:
    """Weights, and moments of the optimizer, which can be of any magnitude."""
    for group, members in expected.tensors.items():
        assert found.tensors[group].keys() == members.keys()
        for name, tensor in floating(members).items():
            scale = float(tensor.abs().max()) if group == "optimizer" else 1.0
            assert torch.allclose(found.tensors[group][name], tensor, rtol=0, atol=TOLERANCE * scale), name


@pytest.mark.parametrize(("task", "how"), TASKS_AND_WAYS)
def test_two_processes_learn_what_one_learns(runs: Runs, task: str, how: str) -> None:
    directory, outcomes = runs
    assert outcomes[f"{task} one"].codes == [0]
    assert outcomes[f"{task} {how}"].codes == [0, 0]
    one, two = directory / f"{task}-one", directory / f"{task}-{how}"
    assert len(losses(one)) == len(losses(two)) == STEPS
    assert losses(two) == pytest.approx(losses(one), abs=TOLERANCE)  # dropout and all
    tokens = [[entry["tokens"] for entry in read_log(run)] for run in (one, two)]
    assert tokens[0] == tokens[1]
    expected, found = last_checkpoint(one), last_checkpoint(two)
    assert expected.step == found.step == STEPS
    assert found.tensors.keys() == expected.tensors.keys() == {"model", "optimizer"}
    assert_close(found, expected)
    assert sum(name.endswith((".exp_avg", ".exp_avg_sq")) for name in expected.tensors["optimizer"]) > 10


@pytest.mark.parametrize(("task", "how"), TASKS_AND_WAYS)
def test_two_processes_validate_average_and_publish_what_one_does(runs: Runs, task: str, how: str) -> None:
    directory, _ = runs
    one, two = directory / f"{task}-one", directory / f"{task}-{how}"
    validations = [[entry for entry in read_log(run) if entry["event"] == "valid"] for run in (one, two)]
    places = [[(entry["step"], entry.get("averaged")) for entry in entries] for entries in validations]
    assert places[0] == places[1]
    assert (STEPS, "last") in places[0]
    assert len([None for _, averaged in places[0] if averaged is None]) > AVERAGED > 1
    scores = [[entry["score"] for entry in entries] for entries in validations]
    assert scores[1] == pytest.approx(scores[0], abs=TOLERANCE)
    expected, found = (floating(load_file(run / "model" / "weights.safetensors")) for run in (one, two))
    assert found.keys() == expected.keys()
    assert all(torch.allclose(found[name], expected[name], rtol=0, atol=TOLERANCE) for name in expected)


@pytest.mark.parametrize(("task", "how"), TASKS_AND_WAYS)
def test_what_two_have_saved_one_loads_exactly(runs: Runs, task: str, how: str) -> None:
    run = runs[0] / f"{task}-{how}"
    memories = [load_file(file) for file in sorted(run.glob("memory-*"))]
    assert len(memories) == 2
    sharded = 0
    saved = last_checkpoint(run).tensors
    assert memories[0].keys() == {f"{group}/{name}" for group in saved for name in saved[group]}
    for group, members in saved.items():
        for name, tensor in members.items():
            parts = [memory[f"{group}/{name}"] for memory in memories]
            if parts[0].shape == tensor.shape and (how == "two" or parts[1].shape == tensor.shape):
                assert all(torch.equal(part, tensor) for part in parts), name
            else:
                sharded += 1
                assert torch.equal(torch.cat(parts), tensor), name
    assert (sharded > 0) == (how == "sharded")


@pytest.mark.parametrize("how", ["two", "sharded"])
def test_two_in_bfloat16_learn_what_one_learns(runs: Runs, how: str) -> None:
    """They sum gradients in float32. If they share a model, they send rounded weights, which matrix products would
    round anyway."""
    directory, outcomes = runs
    assert outcomes["bfloat16 one"].codes == [0]
    assert outcomes[f"bfloat16 {how}"].codes == [0, 0], outcomes[f"bfloat16 {how}"].errors
    one, two = losses(directory / "bfloat16-one"), losses(directory / f"bfloat16-{how}")
    assert two[0] == pytest.approx(one[0], abs=TOLERANCE)  # before any update
    assert two == pytest.approx(one, abs=1e-2)  # a last bit that differs is rounded to one of few bits
    assert two != losses(directory / f"translator-{how}")[: len(two)]
    saved = last_checkpoint(directory / f"bfloat16-{how}").tensors
    for group in ("model", "optimizer"):  # weights, and moments
        assert {tensor.dtype for tensor in saved[group].values()} == {torch.float32}


def test_two_that_share_a_model_in_float16_skip_the_steps_that_overflow(runs: Runs) -> None:
    """All skip the same ones: neither weights nor moments change. From then on they learn what one process learns."""
    directory, outcomes = runs
    assert outcomes["float16 one"].codes == [0]
    assert outcomes["float16 sharded"].codes == [0, 0], outcomes["float16 sharded"].errors
    one, two = directory / "float16-one", directory / "float16-sharded"
    expected, skipped = (load_group(run / "checkpoints", OVERFLOWS, "model") for run in (one, two))
    assert skipped is not None
    assert expected is not None
    assert all(torch.equal(tensor, expected[name]) for name, tensor in skipped.items())
    moments = load_group(two / "checkpoints", OVERFLOWS, "optimizer") or {}
    assert {name.rpartition(".")[2] for name in moments} == {"exp_avg", "exp_avg_sq", "step", "momentum"}
    assert not any(bool(tensor.any()) for tensor in moments.values())
    assert losses(two) == pytest.approx(losses(one), abs=1e-3)
    assert losses(two)[-1] < losses(two)[0] - 0.1
    scales = [last_checkpoint(run).state["loss_scale"] for run in (one, two)]
    assert scales[0] == scales[1]
    assert scales[0][0] <= FIRST_SCALE / 2**OVERFLOWS


@pytest.mark.parametrize("how", WAYS)
def test_two_processes_learn_by_muon_what_one_learns(runs: Runs, how: str) -> None:
    """Each orthogonalises its share of the matrices; those of convolutions, attention and feed-forward."""
    directory, outcomes = runs
    assert outcomes["muon one"].codes == [0]
    assert outcomes[f"muon {how}"].codes == [0, 0], outcomes[f"muon {how}"].errors
    one, two = directory / "muon-one", directory / f"muon-{how}"
    assert len(losses(one)) == MUON_STEPS
    assert losses(two) == pytest.approx(losses(one), abs=TOLERANCE)
    expected = last_checkpoint(one)
    assert_close(last_checkpoint(two), expected)
    momenta = [tensor for name, tensor in expected.tensors["optimizer"].items() if name.endswith(".momentum")]
    assert {tensor.ndim for tensor in momenta} == {2, 4}
    assert all(bool(tensor.any()) for tensor in momenta)


def test_two_processes_on_a_card_that_gloo_does_not_know_learn_what_one_learns_on_the_cpu(runs: Runs) -> None:
    """Gradients, and updates by Muon, are sent by way of the host. The card is the pretend one."""
    directory, outcomes = runs
    assert outcomes["muon on a card"].codes == [0, 0], outcomes["muon on a card"].errors
    assert last_checkpoint(directory / "muon-card").state["device"] == "card"
    assert losses(directory / "muon-card") == pytest.approx(losses(directory / "muon-one"), abs=TOLERANCE)
    assert_close(last_checkpoint(directory / "muon-card"), last_checkpoint(directory / "muon-one"))


def test_a_training_by_muon_goes_on_with_any_number_of_processes(runs: Runs) -> None:
    directory, outcomes = runs
    assert [outcomes[f"muon by {count}"].codes for count in (2, 3, 1)] == [[130, 143], [130, 130, 143], [0]]
    assert losses(directory / "muon-changing") == pytest.approx(losses(directory / "muon-one"), abs=TOLERANCE)
    assert_close(last_checkpoint(directory / "muon-changing"), last_checkpoint(directory / "muon-one"))


def test_each_of_two_that_share_a_model_reads_only_its_part_of_a_checkpoint(runs: Runs) -> None:
    run = runs[0] / "sharded-disturbed"
    size = sum(file.stat().st_size for file in (last_checkpoint(run).path).glob("*.safetensors"))
    for rank in range(2):
        assert 0.4 * size < int((run / f"read-{rank}").read_text()) < 0.75 * size


def epochs_of(lines: dict[int, list[int]]) -> list[list[int]]:
    """The lines of each epoch that was gone through, in order."""
    everything = [line for step in sorted(lines) for line in lines[step]]
    size = len(set(everything))
    return [everything[start : start + size] for start in range(0, len(everything) - size + 1, size)]


@pytest.mark.parametrize(("task", "how"), TASKS_AND_WAYS)
def test_shares_are_disjoint_and_together_everything(runs: Runs, task: str, how: str) -> None:
    directory, _ = runs
    [alone], shares = (lines_learned_from(directory / f"{task}-{way}") for way in ("one", how))
    assert len(shares) == 2
    assert all(len([step for step in share if share[step]]) >= STEPS // 2 for share in shares)
    together = {step: Counter(line for share in shares for line in share[step]) for step in alone}
    assert together == {step: Counter(lines) for step, lines in alone.items()}
    epochs = epochs_of(alone)
    assert len(epochs) > 5
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)  # each line once in each
    sizes = [len(lines) for lines in alone.values()]
    assert min(sizes) < max(sizes) / 2  # the last update of an epoch has fewer


def test_a_training_goes_on_with_any_number_of_processes(runs: Runs) -> None:
    directory, outcomes = runs
    # A signal reaches one process and stops all; the others leave as if by Ctrl-C.
    assert outcomes["changing, two"].codes == [130, 143]
    assert outcomes["changing, sharded by three"].codes == [130, 130, 138]
    assert outcomes["changing, one"].codes == [0]
    assert losses(directory / "changing") == pytest.approx(losses(directory / "translator-one"), abs=TOLERANCE)
    shares, [alone] = lines_learned_from(directory / "changing"), lines_learned_from(directory / "translator-one")
    assert [(min(share), max(share)) for share in shares] == [(1, STEPS), (1, 22), (18, 22)]
    together = {step: Counter(line for share in shares for line in share.get(step, ())) for step in alone}
    assert together == {step: Counter(lines) for step, lines in alone.items()}


def test_two_go_on_together_with_other_batches(runs: Runs) -> None:
    directory, outcomes = runs
    assert outcomes["first batches"].codes == [4, -signal.SIGKILL]
    assert outcomes["other batches"].codes == [0, 0]
    assert [max(share) for share in lines_learned_from(directory / "batches")] == [12, 12]


def test_two_processes_of_two_threads_end_with_the_same_bits_twice_and_after_a_kill(runs: Runs) -> None:
    directory, outcomes = runs
    assert outcomes["threads killed"].codes == [4, -signal.SIGKILL]
    for name in ("threads", "threads again", "threads resumed"):
        assert outcomes[name].codes == [0, 0]
    state = last_checkpoint(directory / "threads").state
    assert (state["threads"], state["processes"]) == (2, 2)
    for other in ("threads-again", "threads-killed"):
        assert_same(directory / other, directory / "threads", THREADED_STEPS)


@pytest.mark.parametrize(("trained", "how"), list(product(("painter", "diversified"), WAYS)))
def test_two_processes_learn_both_stages_of_a_training_as_one_does(runs: Runs, trained: str, how: str) -> None:
    directory, outcomes = runs
    assert outcomes[f"{trained} one"].codes == [0]
    assert outcomes[f"{trained} {how}"].codes == [0, 0], outcomes[f"{trained} {how}"].errors
    for stage in (".", "first_stage"):
        one, two = directory / f"{trained}-one" / stage, directory / f"{trained}-{how}" / stage
        assert losses(two) == pytest.approx(losses(one), abs=TOLERANCE)
        expected, found = last_checkpoint(one).tensors["model"], last_checkpoint(two).tensors["model"]
        assert expected.keys() == found.keys()
        assert all(torch.allclose(found[name], expected[name], rtol=0, atol=TOLERANCE) for name in expected)
    made = {"painter": "image_tokens", "diversified": "translations"}[trained]
    assert (directory / f"{trained}-{how}" / "store" / made / "target.ids").stat().st_size > 0


def test_a_painter_of_two_processes_that_was_stopped_in_either_stage_ends_with_the_same_bits(runs: Runs) -> None:
    """Codes that were not used have moved before and after."""
    directory, outcomes = runs
    assert [outcomes[f"painter {name}"].codes for name in ("first stop", "second stop")] == [[130, 143]] * 2
    assert outcomes["painter resumed"].codes == [0, 0]
    for stage in (".", "first_stage"):
        assert_same(directory / "painter-stopped" / stage, directory / "painter-two" / stage, PAINTER_STEPS)


def assert_the_others_end(outcome: Outcome, fault: Fault) -> None:
    """Promptly, and with a message."""
    for rank, (code, error) in enumerate(zip(outcome.codes, outcome.errors, strict=True)):
        if rank == fault.rank:
            assert code == -signal.SIGKILL
        else:
            assert code == 4
            message = error.splitlines()[-1]
            assert message.startswith("jumok: Another process of this training has ended (")
            assert message.endswith("). The same command continues from the last checkpoint.")
    assert outcome.seconds < longer_if_busy(SECONDS)


def assert_all_end_alike(outcome: Outcome, fault: Fault, run: Path) -> None:
    """No update is made, and the message names the batches that it came from, whichever process had them."""
    assert set(outcome.codes) == {4}
    [message] = set(outcome.errors)
    assert "its gradient norm nan: no update was made" in message
    named = [f"lines {', '.join(map(str, share[fault.at + 1][:8]))}" in message for share in lines_learned_from(run)]
    # A finite loss does not say whose gradient was not.
    assert named == [fault.moment == "gradient" or rank == fault.rank for rank in range(len(named))]


@pytest.mark.parametrize("how", WAYS)
def test_when_one_is_killed_the_others_end_and_the_same_command_goes_on(runs: Runs, how: str) -> None:
    directory, outcomes = runs
    for fault in KILLS[how]:
        assert_the_others_end(outcomes[f"{how} {fault.moment} {fault.rank}"], fault)
    assert outcomes[f"{how} in peace"].codes == [0, 0]
    assert_same(directory / f"{how}-disturbed", directory / f"translator-{how}", STEPS)


@pytest.mark.parametrize("how", WAYS)
def test_a_loss_or_gradient_that_is_not_finite_in_one_process_ends_all(runs: Runs, how: str) -> None:
    directory, outcomes = runs
    fault = NOT_FINITE[how]
    assert_all_end_alike(outcomes[f"{how} {fault.moment} {fault.rank}"], fault, directory / f"{how}-disturbed")
    # Nothing of it was saved: the training that went on is the one in which nothing happened.
    assert_same(directory / f"{how}-disturbed", directory / f"translator-{how}", STEPS)


@pytest.mark.parametrize("how", WAYS)
def test_what_diverged_in_one_process_ends_all_before_it_is_saved(runs: Runs, how: str) -> None:
    directory, outcomes = runs
    outcome = outcomes[f"{how} {DIVERGED.moment} {DIVERGED.rank}"]
    assert set(outcome.codes) == {4}
    [message] = {error.splitlines()[-1] for error in outcome.errors}
    assert "After step 10 weights or moments of the optimizer are NaN or infinite" in message
    assert "the weights have diverged and were not saved" in message
    assert_same(directory / f"{how}-disturbed", directory / f"translator-{how}", STEPS)


def test_processes_that_read_different_checkpoints_do_not_go_on(runs: Runs) -> None:
    outcome = runs[1]["no checkpoint"]
    assert outcome.codes == [2, 2]
    assert "(process 0: step-00000010, process 1: none)" in outcome.errors[0]


LAUNCHERS = {
    "agent": [str(Path(__file__).with_name("fork_elastic.py"))],
    "torchrun": [
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc-per-node=2",
        "--max-restarts=1",
        "-m",
        "jumok",
    ],
}


# torchrun starts its processes anew, which takes longer than all that they do here; its agent can also fork them.
@pytest.mark.parametrize("launcher", ["agent", pytest.param("torchrun", marks=pytest.mark.slow)])
def test_torchrun_starts_again_what_was_killed_and_the_end_is_the_same(runs: Runs, launcher: str) -> None:
    """--fresh does not forget again what was learned before the restart."""
    directory, _ = runs
    environment = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *LAUNCHERS[launcher], "train", "translator", *arguments_of("translator", directory)]
    command += ["-o", str(directory / launcher), "--fresh", "--json"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    events: list[dict[str, Any]] = []
    killed = resumed = went_on = 0.0
    with subprocess.Popen(command, cwd=directory, env=environment, text=True, **pipes) as started:
        assert started.stdout is not None
        for event in map(json.loads, started.stdout):
            events.append(event)
            if not killed and event.get("step", 0) >= 13:
                victim = Path(f"/proc/{started.pid}/task/{started.pid}/children").read_text().split()[-1]
                os.kill(int(victim), signal.SIGKILL)
                killed = time.monotonic()
            resumed = resumed or event["event"] == "resumed"
            if resumed and not went_on and event["event"] == "train":
                went_on = time.monotonic()
        _, err = started.communicate()
    assert started.returncode == 0, err
    assert [event["step"] for event in events if event["event"] == "resumed"] == [10]
    assert 0 < went_on - killed < longer_if_busy(SECONDS)  # to the first step that was made
    assert_same(directory / launcher, directory / "translator-two", STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("how", WAYS)
def test_three_processes_survive_every_fault_in_every_rank(tmp_path: Path, how: str) -> None:
    moments = [("collective", (3, 3, 3)), ("step", (4, 4, 4)), ("validation", (10, 10, 10))]
    # If another process is killed, rank 0 completes the checkpoint.
    moments += [("save", (10, 10, 20)), ("collective", (23, 23, 23))]
    kills = [Fault(moment, rank, at) for moment, steps in moments for rank, at in enumerate(steps)]
    not_finite = [Fault(moment, rank, 25) for moment in ("loss", "gradient") for rank in range(3)]
    faults = [*kills, *not_finite]
    write_corpora(tmp_path)
    arguments = arguments_of("translator", tmp_path, how)
    jobs = [Job("disturbed", 3, arguments, fault, threads=2) for fault in (*faults, None)]
    *outcomes, last, whole = train_in_turn([*jobs, Job("whole", 3, arguments, threads=2)], tmp_path)
    for fault, outcome in zip(faults, outcomes, strict=True):
        if fault in kills:
            assert_the_others_end(outcome, fault)
        else:
            assert_all_end_alike(outcome, fault, tmp_path / "disturbed")
    assert last.codes == whole.codes == [0, 0, 0]
    assert_same(tmp_path / "disturbed", tmp_path / "whole", STEPS)
