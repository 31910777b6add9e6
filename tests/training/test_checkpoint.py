from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from faulty_files import FaultyFiles, crashes
from jumok.errors import CheckpointError, UnreadableError
from jumok.files import (
    MANIFEST,
    REAL_FILES,
    WriteError,
    blocks,
    clean_leftovers,
    format_json,
    parse_json_object,
    verify_directory,
    write_directory_durably,
)
from jumok.files.blocks import VerifiedBlocks
from jumok.files.reading import FileRecord
from jumok.training.checkpoint import (
    STATE,
    Checkpoint,
    flatten_optimizer,
    load_group,
    load_latest,
    newest_step,
    restore_optimizer,
    save_checkpoint,
)
from jumok.training.checkpoint_parts import BlockSums, read_rows

Groups = dict[str, dict[str, Tensor]]


def groups_of(step: int) -> Groups:
    generator = torch.Generator().manual_seed(step)
    return {
        "model": {"weight": torch.randn(3, 4, generator=generator), "bias": torch.randn(4, generator=generator)},
        "optimizer": {"weight.step": torch.tensor(float(step)), "weight.m": torch.randn(3, 4, generator=generator)},
    }


def state_of(step: int) -> dict[str, Any]:
    return {"epoch": step // 10, "best": {"loss": 1 / 3 + step}, "history": [1, 2.5, None, True]}


def save(directory: Path, step: int, fs: FaultyFiles | None = None, **options: Any) -> Path:
    return save_checkpoint(directory, step, groups_of(step), state_of(step), fs=fs or FaultyFiles(), **options)


def refuse_to_fall_back(path: Path, reason: str) -> None:
    raise AssertionError(f"fell back from {path}: {reason}")


def latest(directory: Path) -> Checkpoint:
    checkpoint = load_latest(directory, refuse_to_fall_back)
    assert checkpoint is not None
    return checkpoint


def assert_same_bits(one: Groups, other: Groups) -> None:
    assert {group: set(members) for group, members in one.items()} == {g: set(members) for g, members in other.items()}
    for group, members in one.items():
        for name, tensor in members.items():
            twin = other[group][name]
            assert (twin.dtype, twin.shape) == (tensor.dtype, tensor.shape)
            assert twin.contiguous().view(-1).view(torch.uint8).equal(tensor.contiguous().view(-1).view(torch.uint8))


def assert_is_step(checkpoint: Checkpoint, step: int) -> None:
    assert (checkpoint.step, checkpoint.state) == (step, state_of(step))
    assert_same_bits(checkpoint.tensors, groups_of(step))


def names(directory: Path) -> list[str]:
    return sorted(entry.name for entry in directory.iterdir())


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    assert load_latest(tmp_path / "checkpoints", refuse_to_fall_back) is None
    path = save_checkpoint(tmp_path / "checkpoints", 7, groups_of(7), state_of(7), fs=REAL_FILES)
    assert path.name == "step-00000007"
    assert_is_step(latest(tmp_path / "checkpoints"), 7)
    assert names(path) == sorted(["model.safetensors", "optimizer.safetensors", STATE, MANIFEST])


DTYPES = [
    torch.float32, torch.float64, torch.float16, torch.bfloat16,
    torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool,
]  # fmt: skip


@given(st.data())
def test_every_tensor_returns_bit_for_bit(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    tensors = {}
    for index in range(data.draw(st.integers(1, 4))):
        shape = data.draw(st.lists(st.integers(0, 4), max_size=3))
        dtype = data.draw(st.sampled_from(DTYPES))
        count = torch.Size(shape).numel() * dtype.itemsize
        content = data.draw(st.binary(min_size=count, max_size=count))  # any bits: NaNs with payloads, negative zeros
        if dtype == torch.bool:
            content = bytes(byte & 1 for byte in content)
        flat = torch.frombuffer(bytearray(content), dtype=dtype) if count else torch.empty(0, dtype=dtype)
        tensor = flat.view(shape)
        tensors[f"t{index}"] = (
            tensor.permute(tuple(reversed(range(tensor.dim())))) if data.draw(st.booleans()) else tensor
        )
    directory = tmp_path_factory.mktemp("checkpoints")
    save_checkpoint(directory, 1, {"any": tensors}, {}, fs=FaultyFiles())
    assert_same_bits(latest(directory).tensors, {"any": tensors})


def test_tied_and_overlapping_tensors_and_parameters(tmp_path: Path) -> None:
    base = torch.nn.Parameter(torch.arange(12.0).view(3, 4))
    members: dict[str, Tensor] = {
        "a": base,
        "tied": base,
        "row": base[1],
        "column": base[:, 2],
        "strided": base[::2, 1:],
    }
    save_checkpoint(tmp_path, 1, {"model": members}, {}, fs=FaultyFiles())
    assert_same_bits(latest(tmp_path).tensors, {"model": {name: t.detach() for name, t in members.items()}})


@pytest.mark.parametrize("options", [{}, {"fused": True}, {"foreach": True}, {"amsgrad": True}, {"capturable": False}])
def test_an_optimizer_goes_on_as_if_never_stopped(tmp_path: Path, options: dict[str, bool]) -> None:
    def make() -> tuple[torch.nn.Linear, torch.optim.Adam]:
        torch.manual_seed(0)
        model = torch.nn.Linear(5, 3)
        groups = [{"params": [model.weight], "lr": 1 / 3}, {"params": [model.bias]}]
        return model, torch.optim.Adam(groups, lr=1e-3, betas=(0.9, 0.98), eps=1e-9, **options)

    def train(model: torch.nn.Linear, optimizer: torch.optim.Adam, steps: range) -> None:
        for step in steps:
            optimizer.zero_grad()
            model(torch.full((2, 5), float(step))).square().sum().backward()
            optimizer.param_groups[1]["lr"] = 0.1 / (step + 1)
            optimizer.step()

    model, optimizer = make()
    train(model, optimizer, range(5))
    tensors, state = flatten_optimizer(optimizer)
    save_checkpoint(tmp_path, 5, {"model": model.state_dict(), "optimizer": tensors}, state, fs=FaultyFiles())
    train(model, optimizer, range(5, 10))

    resumed_model, resumed_optimizer = make()
    checkpoint = latest(tmp_path)
    resumed_model.load_state_dict(checkpoint.tensors["model"])
    restore_optimizer(resumed_optimizer, checkpoint.tensors["optimizer"], checkpoint.state)
    train(resumed_model, resumed_optimizer, range(5, 10))
    assert_same_bits({"model": resumed_model.state_dict()}, {"model": model.state_dict()})
    one, other = flatten_optimizer(optimizer), flatten_optimizer(resumed_optimizer)
    assert_same_bits({"optimizer": other[0]}, {"optimizer": one[0]})
    assert other[1] == one[1]
    assert resumed_optimizer.param_groups[0]["betas"] == (0.9, 0.98)  # still a tuple


def test_a_new_optimizer_without_state_can_be_saved() -> None:
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))])
    tensors, state = flatten_optimizer(optimizer)
    assert tensors == {}
    assert list(state["state_dict"]) == ["dict"]  # as it stands in the checkpoints of users
    restore_optimizer(optimizer, tensors, parse_json_object(format_json(state), Path("state.json")))
    assert flatten_optimizer(optimizer)[1] == state


def test_tensors_in_lists_and_tuples_of_an_optimizer_are_kept() -> None:
    def make() -> torch.optim.Optimizer:
        return torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))])

    kept = {"some": [torch.tensor(1.0), (torch.tensor(2.0), 3)], "others": (torch.tensor(4.0), [torch.tensor(5.0)])}
    optimizer, restored = make(), make()
    optimizer.param_groups[0].update(kept)
    tensors, state = flatten_optimizer(optimizer)
    assert len(tensors) == 4
    restore_optimizer(restored, tensors, parse_json_object(format_json(state), Path("state.json")))
    assert {name: restored.param_groups[0][name] for name in kept} == kept


def test_an_optimizer_of_another_model_is_refused() -> None:
    tensors, state = flatten_optimizer(torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))]))
    other = torch.optim.Adam([torch.nn.Parameter(torch.zeros(2)), torch.nn.Parameter(torch.zeros(2))])
    with pytest.raises(CheckpointError, match="does not fit this model"):
        restore_optimizer(other, tensors, state)


def test_an_optimizer_with_something_unknown_in_it_is_refused() -> None:
    optimizer = torch.optim.Adam([torch.nn.Parameter(torch.zeros(2))])
    optimizer.param_groups[0]["hook"] = print
    with pytest.raises(TypeError, match=r"optimizer\.param_groups\.0\.hook: a builtin_function"):
        flatten_optimizer(optimizer)


def test_the_newest_and_the_protected_are_kept(tmp_path: Path) -> None:
    for step in range(10, 70, 10):
        save(tmp_path, step, protect=[20, 5])
    assert names(tmp_path) == ["step-00000020", "step-00000050", "step-00000060"]
    save(tmp_path, 70, protect=[60], keep=3)
    assert names(tmp_path) == ["step-00000050", "step-00000060", "step-00000070"]


def test_one_group_of_one_step_can_be_read(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    weights = load_group(tmp_path, 1, "model")
    assert weights is not None
    assert_same_bits({"model": weights}, {"model": groups_of(1)["model"]})
    assert load_group(tmp_path, 3, "model") is None
    assert load_group(tmp_path, 1, "average") is None
    flip_bit(tmp_path / "step-00000001" / "model.safetensors", -1)
    assert load_group(tmp_path, 1, "model") is None


def test_an_undamaged_checkpoint_of_the_same_step_serves_for_a_damaged_one(tmp_path: Path) -> None:
    for _ in range(2):
        save(tmp_path, 9)
    flip_bit(tmp_path / "step-00000009.2" / "model.safetensors", -1)
    assert load_group(tmp_path, 9, "model") is not None


def test_the_newest_step_is_known_without_reading_it(tmp_path: Path) -> None:
    assert newest_step(tmp_path / "checkpoints") is None
    assert newest_step(tmp_path) is None
    for step in (9, 10):
        save(tmp_path, step)
    (tmp_path / "step-00000010" / MANIFEST).unlink()
    assert newest_step(tmp_path) == 10


def test_weights_are_read_under_their_present_names(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, {"model": {"ngrams.0.loudness": torch.ones(2)}}, {}, fs=FaultyFiles())
    weights = load_group(tmp_path, 1, "model")
    assert weights is not None
    assert list(weights) == ["ngrams.0.scale"]


def test_a_damaged_checkpoint_does_not_count_as_kept(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    flip_bit(tmp_path / "step-00000002" / "model.safetensors", 100)
    save(tmp_path, 3)
    assert names(tmp_path) == ["step-00000001", "step-00000003"]


def test_a_name_is_never_used_twice(tmp_path: Path) -> None:
    for best in (0.5, 0.25):
        save_checkpoint(tmp_path, 9, groups_of(9), {"best": best}, fs=FaultyFiles())
    assert names(tmp_path) == ["step-00000009", "step-00000009.2"]
    assert latest(tmp_path).state == {"best": 0.25}
    for _ in range(10):
        path = save(tmp_path, 9)
    assert path.name == "step-00000009.12"
    assert latest(tmp_path).path == path  # not .9: numbers, not text
    assert len(names(tmp_path)) == 2


def test_steps_are_ordered_as_numbers(tmp_path: Path) -> None:
    save(tmp_path, 99_999_999)
    save(tmp_path, 100_000_000)
    assert_is_step(latest(tmp_path), 100_000_000)


def test_a_past_that_was_left_is_not_taken_for_the_future(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        save(tmp_path, step, keep=3)
    flip_bit(tmp_path / "step-00000030" / STATE, 10)
    flip_bit(tmp_path / "step-00000020" / STATE, 10)
    rejected: list[str] = []
    resumed = load_latest(tmp_path, lambda path, reason: rejected.append(path.name + reason))
    assert resumed is not None
    assert_is_step(resumed, 10)
    assert len(rejected) == 2
    save(tmp_path, 15)
    assert names(tmp_path) == ["step-00000010", "step-00000015"]


def test_after_a_crash_anywhere_a_whole_checkpoint_is_the_newest(tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"

    def prepare() -> None:
        shutil.rmtree(directory, ignore_errors=True)
        for step in (1, 2):
            save(directory, step)

    seen = set()
    for moment in crashes(lambda fs: save(directory, 3, fs, protect=[2]), root=tmp_path, prepare=prepare):
        checkpoint = latest(directory)
        assert checkpoint.step in (2, 3), moment
        assert_is_step(checkpoint, checkpoint.step)
        seen.add(checkpoint.step)
        clean_leftovers(REAL_FILES, directory)
        assert all(name.startswith("step-") for name in names(directory)), moment
        assert all(verify_directory(directory / name) for name in names(directory)), moment
        save(directory, 4)
        assert_is_step(latest(directory), 4)
    assert seen == {2, 3}


def test_after_a_crash_in_the_very_first_save_there_is_one_or_none(tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"
    prepare = lambda: shutil.rmtree(directory, ignore_errors=True)  # noqa: E731
    for _ in crashes(lambda fs: save(directory, 1, fs), root=tmp_path, prepare=prepare):
        checkpoint = load_latest(directory, refuse_to_fall_back)
        if checkpoint is not None:
            assert_is_step(checkpoint, 1)


def test_old_checkpoints_go_only_after_the_new_one_is_secured(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    fs = FaultyFiles()
    save(tmp_path, 3, fs)
    committed = fs.operations.index(("rename", "step-00000003"))
    assert fs.operations[committed + 1] == ("sync_directory", tmp_path.name)
    kind, trash = fs.operations[committed + 2]
    assert kind == "rename"
    assert trash.startswith(".trash-step-00000001-")
    assert fs.operations[committed + 3] == ("sync_directory", tmp_path.name)
    assert {kind for kind, _ in fs.operations[committed + 4 :]} == {"remove"}
    assert fs.operations[-1] == ("remove", trash)


@pytest.mark.parametrize(("error", "said"), [(errno.ENOSPC, "the disk is full"), (errno.EIO, "cannot be written")])
def test_a_disk_that_fails_at_any_operation_leaves_the_old_checkpoint(tmp_path: Path, error: int, said: str) -> None:
    def old_ones(directory: Path) -> Path:
        for step in (1, 2):
            save(directory, step)
        return directory

    counting = FaultyFiles()
    save(old_ones(tmp_path / "counted"), 3, counting)
    needed = sum(tensor.nbytes for members in groups_of(3).values() for tensor in members.values())
    for number in range(1, counting.fallible + 1):
        directory = old_ones(tmp_path / str(number))
        fs = FaultyFiles(fails_at=number, error=error)
        with pytest.raises(WriteError, match=re.escape(os.strerror(error))) as raised:
            save(directory, 3, fs)
        assert str(directory) in str(raised.value)
        if ("rename", "step-00000003") in fs.operations:  # only securing its name, or removing an old one, failed
            assert_is_step(latest(directory), 3)
        else:
            assert said in str(raised.value)
            assert f"{needed + (1 << 20):,} bytes are needed" in str(raised.value)
            assert names(directory) == ["step-00000001", "step-00000002"]
            assert_is_step(latest(directory), 2)
        save(directory, 4)
        assert_is_step(latest(directory), 4)


def test_too_little_space_is_known_before_anything_is_written(tmp_path: Path) -> None:
    save(tmp_path, 1)
    fs = FaultyFiles(free=10)
    with pytest.raises(WriteError, match="10 bytes are free"):
        save(tmp_path, 2, fs)
    assert not {kind for kind, _ in fs.operations} & {"create", "write"}


class ForgetfulFiles(FaultyFiles):
    """A disk that says yes and keeps something else."""

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        if target.name.startswith("step-"):
            flip_bit(target / "model.safetensors", -1)


def test_nothing_is_removed_if_the_new_checkpoint_does_not_verify(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    with pytest.raises(CheckpointError) as error:
        save(tmp_path, 3, ForgetfulFiles())
    problem, advice = str(error.value).split(". ", 1)
    assert problem.startswith(str(tmp_path / "step-00000003" / "model.safetensors"))
    assert advice == "The disk does not keep what is written; the earlier checkpoints are untouched."
    assert names(tmp_path) == ["step-00000001", "step-00000002", "step-00000003"]


def flip_bit(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def damage(directory: Path, randomness: random.Random) -> None:
    path = directory / randomness.choice(names(directory))
    size = path.stat().st_size
    kind = randomness.choice(["flip", "flip", "truncate", "extend", "swap", "stale", "remove"])
    if kind == "flip":
        flip_bit(path, randomness.randrange(size), randomness.randrange(8))
    elif kind == "truncate":
        os.truncate(path, randomness.randrange(size))
    elif kind == "extend":
        path.write_bytes(path.read_bytes() + b"\n")
    elif kind == "swap":
        other = directory / randomness.choice([name for name in names(directory) if name != path.name])
        here, there = path.read_bytes(), other.read_bytes()
        path.write_bytes(there)
        other.write_bytes(here)
    elif kind == "stale":  # the same file of the checkpoint before
        shutil.copy(directory.parent / "step-00000001" / path.name, path)
    else:
        path.unlink()


def test_random_damage_is_noticed_and_never_gives_a_wrong_number(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path / "whole", step)
    randomness = random.Random(0)
    fallen_back = 0
    for _ in range(600):
        shutil.rmtree(tmp_path / "victim", ignore_errors=True)
        shutil.copytree(tmp_path / "whole", tmp_path / "victim")
        damage(tmp_path / "victim" / "step-00000002", randomness)
        rejected: list[Path] = []
        checkpoint = load_latest(tmp_path / "victim", lambda path, _, rejected=rejected: rejected.append(path))
        assert checkpoint is not None
        assert_is_step(checkpoint, 1 if rejected else 2)
        fallen_back += len(rejected)
    assert fallen_back >= 550  # a byte added to the end of the manifest is a line break and does no harm


def test_a_checkpoint_under_the_name_of_another_step_is_rejected(tmp_path: Path) -> None:
    save(tmp_path, 1)
    shutil.copytree(tmp_path / "step-00000001", tmp_path / "step-00000005")
    reasons: list[str] = []
    checkpoint = load_latest(tmp_path, lambda _, reason: reasons.append(reason))
    assert checkpoint is not None
    assert_is_step(checkpoint, 1)
    assert "is of step 1" in reasons[0]


def contents_of(step: int) -> dict[str, bytes]:
    """The files of a checkpoint by name, without their manifest."""
    contents = {"step": step, "groups": ["model"], "state": {}}
    return {STATE: format_json(contents), "model.safetensors": safetensors.torch.save(groups_of(step)["model"])}


def with_state(**changes: Any) -> dict[str, bytes]:
    contents = {"step": 7, "groups": ["model"], "state": {}} | changes
    return contents_of(7) | {STATE: format_json(contents)}


@pytest.mark.parametrize(
    ("contents", "name", "reason"),
    [
        ({"model.safetensors": contents_of(7)["model.safetensors"]}, STATE, "is not in the manifest."),
        (contents_of(7) | {STATE: b"7"}, STATE, ""),
        (with_state(groups=["average"]), STATE, "does not belong to the files beside it."),
        (with_state(more=1), STATE, "does not belong to the files beside it."),
        (with_state(step=8), STATE, "is of step 8, not of the step in the directory's name."),
        (contents_of(7) | {"model.safetensors": b"7"}, "model.safetensors", "is not a safetensors file ("),
    ],
)
def test_files_that_contradict_each_other_are_rejected_though_none_is_damaged(
    tmp_path: Path, contents: dict[str, bytes], name: str, reason: str
) -> None:
    reasons: list[str] = []
    for step, wanted in ((6, contents_of(6)), (7, contents)):
        write_directory_durably(REAL_FILES, tmp_path / f"step-{step:08d}", wanted, bytes_needed=0)
    checkpoint = load_latest(tmp_path, lambda _, reason: reasons.append(reason))
    assert checkpoint is not None
    assert checkpoint.step == 6
    assert reasons[0].startswith(f"{tmp_path / 'step-00000007' / name}: {reason}")


def test_if_none_can_be_used_nothing_starts_anew_in_silence(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
        (tmp_path / f"step-{step:08d}" / MANIFEST).unlink()
    reasons: list[str] = []
    with pytest.raises(CheckpointError) as error:
        load_latest(tmp_path, lambda _, reason: reasons.append(reason))
    assert all(str(tmp_path / f"step-{step:08d}") in reason for step, reason in zip((2, 1), reasons, strict=True))
    advice = "Restore it from a copy, or start again with `fresh=True`."
    assert str(error.value) == f"{tmp_path}: no checkpoint can be used. {' '.join(reasons)} {advice}"


def test_a_checkpoint_of_a_newer_jumok_is_not_passed_over(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    (tmp_path / "step-00000002" / MANIFEST).write_text(json.dumps({"format": 2, "files": {}}))
    with pytest.raises(CheckpointError, match="has format 2"):
        load_latest(tmp_path, refuse_to_fall_back)


@pytest.mark.parametrize(
    ("options", "tensors", "state", "error"),
    [
        ({"keep": 1}, {}, {}, "keep is 1"),
        ({}, {"../model": {}}, {}, "lower-case letters"),
        ({}, {}, {"loss": float("nan")}, "not JSON compliant"),
        ({}, {}, {"betas": (1, 2)}, "JSON would change"),
    ],
)
def test_what_could_not_be_loaded_is_not_saved(
    tmp_path: Path, options: dict[str, int], tensors: Groups, state: dict[str, Any], error: str
) -> None:
    with pytest.raises((ValueError, TypeError), match=error):
        save_checkpoint(tmp_path, 1, tensors, state, **options)
    assert names(tmp_path) == []


def test_a_state_that_is_too_large_to_be_read_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.training.checkpoint._MAX_STATE_BYTES", 200)
    save(tmp_path, 1)
    with pytest.raises(ValueError, match="200"):
        save_checkpoint(tmp_path, 2, groups_of(2), {"text": "x" * 200})
    assert names(tmp_path) == ["step-00000001"]


KILLED_SAVER = """
import gc, os, random, signal, sys, time
from pathlib import Path
from test_checkpoint import assert_is_step, latest
from jumok.files import REAL_FILES, clean_leftovers
from jumok.training.checkpoint import save_checkpoint
from test_checkpoint import groups_of, state_of
directory, randomness, last = Path(sys.argv[1]), random.Random(0), 1
gc.freeze()  # or every process that is forked copies what all share
for _ in range(200):
    child = os.fork()
    if child == 0:
        for step in range(last + 1, last + 1000):
            save_checkpoint(directory, step, groups_of(step), state_of(step))
        os._exit(1)
    while not any(entry.name > f"step-{last:08d}" for entry in directory.glob("step-*")):  # until it really saves
        time.sleep(0.001)
    time.sleep(randomness.uniform(0, 0.03))
    os.kill(child, signal.SIGKILL)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    checkpoint = latest(directory)
    assert checkpoint.step > last
    assert_is_step(checkpoint, checkpoint.step)
    last = checkpoint.step
    clean_leftovers(REAL_FILES, directory)
    assert all(entry.name.startswith("step-") for entry in directory.iterdir())
print(last)
"""


def test_real_kills_while_saving(tmp_path: Path) -> None:
    save(tmp_path, 1)
    tests = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", KILLED_SAVER, tmp_path], env=environment, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 200


# In a name space of its own: there a small disk can be mounted without disturbing anybody, and is gone at the end.
FULL_DISK = """
import subprocess, sys
from pathlib import Path
import torch
from test_checkpoint import latest, names
from jumok.files import REAL_FILES, FileSystem, WriteError
from jumok.training.checkpoint import save_checkpoint
disk = Path(sys.argv[1])
mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", disk], capture_output=True, text=True)
if mounted.returncode != 0:
    sys.exit("mount: " + mounted.stderr)

class Hopeful(FileSystem):  # as if somebody else took the space after it was looked for
    def free_bytes(self, path):
        return 1 << 40

def save(step, fs):
    save_checkpoint(disk / "run", step, {"model": {"w": torch.full((700_000,), float(step))}}, {}, fs=fs)

save(1, REAL_FILES)
(disk / "other").write_bytes(bytes(4_000_000))
for fs, said in ((Hopeful(), "No space left on device"), (REAL_FILES, "bytes are free")):
    try:
        save(2, fs)
    except WriteError as error:
        assert str(error).startswith(str(disk / "run" / "step-00000002")), error
        assert said in str(error) and "bytes are needed" in str(error), error
        print(said)
    assert names(disk / "run") == ["step-00000001"]
    assert latest(disk / "run").step == 1
(disk / "other").unlink()
save(2, REAL_FILES)
assert torch.equal(latest(disk / "run").tensors["model"]["w"], torch.full((700_000,), 2.0))
"""


def test_a_disk_that_is_really_full(tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("NOT TESTED on a full disk: this machine has no unshare")
    tests = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent), *sys.path])}
    command = ["unshare", "--map-root-user", "--mount", sys.executable, "-c", FULL_DISK, tmp_path]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    if done.stderr.startswith(("mount: ", "unshare: ")):
        pytest.skip(f"NOT TESTED on a full disk: this machine permits no mount ({done.stderr.strip()})")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["No space left on device", "bytes are free"]


def halves(group: str, name: str, shape: Sequence[int]) -> slice | None:
    """The second half of the rows of everything but numbers and one tensor."""
    assert group == "model"
    return slice(shape[0] // 2, shape[0]) if shape and name != "whole" else None


def part_of(tensor: Tensor, name: str) -> Tensor:
    return tensor if name == "whole" or not tensor.ndim else tensor[len(tensor) // 2 :]


@pytest.mark.parametrize("with_blocks", [True, False])
def test_a_part_of_a_checkpoint_is_read_and_no_more_of_it_than_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_blocks: bool
) -> None:
    """A checkpoint without sums of its blocks is read in full first."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64)
    members = {"a": torch.randn(40, 16), "b": torch.arange(30), "whole": torch.randn(8, 2), "c": torch.tensor(3.0)}
    members |= {"odd": torch.randn(7, 3).bfloat16(), "one": torch.randn(1, 5)}
    path = save_checkpoint(tmp_path, 1, {"model": members}, {}, with_blocks=with_blocks, fs=FaultyFiles())
    read: list[int] = []
    block = VerifiedBlocks._block

    def counted(file: VerifiedBlocks, number: int) -> bytes:
        read.append(number)
        return block(file, number)

    monkeypatch.setattr(VerifiedBlocks, "_block", counted)
    checkpoint = load_latest(tmp_path, refuse_to_fall_back, halves)
    assert checkpoint is not None
    found = checkpoint.tensors["model"]
    assert found.keys() == members.keys()
    assert all(torch.equal(found[name], part_of(members[name], name)) for name in members)
    size = (path / "model.safetensors").stat().st_size
    assert 64 * len(set(read)) < 0.75 * size if with_blocks else not read


def test_damage_in_the_part_of_one_process_is_a_reason_for_all_to_fall_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 64)
    for step in (1, 2):
        tensors = {"model": {"a": torch.full((40, 16), float(step))}}
        save_checkpoint(tmp_path, step, tensors, {}, with_blocks=True, fs=FaultyFiles())
    damaged = tmp_path / "step-00000002" / "model.safetensors"
    data = bytearray(damaged.read_bytes())
    data[-1] ^= 1
    damaged.write_bytes(data)
    told: dict[str, str | None] = {}

    def first_half(group: str, name: str, shape: Sequence[int]) -> slice:
        return slice(0, shape[0] // 2)

    def agree(name: str, problem: str | None) -> str | None:
        """The second process tells what the first one has told, if it told something."""
        told[name] = told.get(name) or problem
        return told[name]

    rejected: list[str] = []
    undamaged = load_latest(tmp_path, refuse_to_fall_back, first_half)
    assert undamaged is not None
    assert undamaged.step == 2  # what it read is as it was written
    for rows in (halves, first_half):
        checkpoint = load_latest(tmp_path, lambda path, reason: rejected.append(reason), rows, agree)
        assert checkpoint is not None
        assert checkpoint.step == 1
        assert torch.equal(checkpoint.tensors["model"]["a"], torch.ones(20, 16))
    assert len(rejected) == 2
    assert all("is damaged: a block does not have the SHA-256" in reason for reason in rejected)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("gone", r"blocks\.json: is missing"),
        ("other sums", r"model\.safetensors: is damaged: a block does not have the SHA-256"),
        ("fewer sums", r"model\.safetensors: does not have as many blocks as there are sums"),
        ("no json", r"blocks\.json: is not valid JSON"),
        ("bad header", r"model\.safetensors: is not a safetensors file with blocks\.json beside it \(.*zero\)"),
    ],
)
def test_damaged_sums_of_blocks_are_noticed(tmp_path: Path, damage: str, said: str) -> None:
    path = save_checkpoint(tmp_path, 1, {"model": {"a": torch.ones(4, 4)}}, {}, with_blocks=True, fs=FaultyFiles())
    file, content = path / "blocks.json", (path / "blocks.json").read_bytes()
    if damage == "gone":
        file.unlink()
    else:
        sums = json.loads(content)["files"]["model.safetensors"]
        changed = {
            "other sums": content.replace(sums[0][:8].encode(), b"00000000"),
            "fewer sums": json.dumps({"size": 1 << 17, "files": {"model.safetensors": []}}).encode(),
            "no json": b"{",
            "bad header": json.dumps({"size": 0, "files": {"model.safetensors": sums}}).encode(),
        }[damage]
        file.write_bytes(changed)
        records = json.loads((path / "MANIFEST.json").read_text())
        records["files"]["blocks.json"] = {"size": len(changed), "sha256": hashlib.sha256(changed).hexdigest()}
        (path / "MANIFEST.json").write_text(json.dumps(records))
    rejected: list[str] = []
    with pytest.raises(CheckpointError, match="no checkpoint can be used"):
        load_latest(tmp_path, lambda path, reason: rejected.append(reason), halves)
    assert re.search(said, "\n".join(rejected))


def rows_of(path: Path, content: bytes) -> dict[str, Tensor]:
    """The parts of a safetensors file with that content, read by its blocks."""
    sums = BlockSums()
    files = {"model.safetensors": sums.add("model.safetensors", content), "blocks.json": sums.to_bytes()}
    for name, data in files.items():
        (path / name).write_bytes(data)
    records = {name: FileRecord(len(data), hashlib.sha256(data).hexdigest()) for name, data in files.items()}
    return read_rows(path, "model", records, halves)


def test_a_part_is_read_from_a_file_with_metadata(tmp_path: Path) -> None:
    tensor = torch.randn(6, 2)
    found = rows_of(tmp_path, safetensors.torch.save({"a": tensor}, {"format": "pt"}))
    assert found.keys() == {"a"}
    assert torch.equal(found["a"], tensor[3:])


def test_a_header_that_is_no_json_is_named_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableError, match=r"model\.safetensors: is not valid JSON"):
        rows_of(tmp_path, (2).to_bytes(8, "little") + b"{,")


def test_sums_that_could_not_be_read_again_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.training.checkpoint_parts.MAX_BLOCKS_BYTES", 80)
    sums = BlockSums()
    sums.add("a", b"")
    assert sums.to_bytes() == b'{"size": %d, "files": {"a": []}}\n' % blocks.BLOCK_BYTES
    sums.add("a", b"b")
    with pytest.raises(ValueError, match="at most 80 can be read again"):
        sums.to_bytes()
