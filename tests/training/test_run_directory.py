from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.training.toy import Toy

from faulty_files import FaultyFiles, crashes
from jumok.bundle import load_bundle, save_bundle
from jumok.errors import BundleError, CheckpointError, JumokError
from jumok.files import FileSystem, WriteError
from jumok.recipes.resuming import already_finished, best_before
from jumok.training.checkpoint import load_latest
from jumok.training.records import LOCK, LOG, RUN, diff_settings, read_log, read_run
from jumok.training.run_directory import RunDirectory
from jumok.training.settings import Settings
from unsynced_disk import Disk

QUICK = FaultyFiles  # notes what is synced instead of waiting for the disk


RECORD: dict[str, Any] = {"asked": {}, "settings": {}, "fingerprint": "f", "keeps_vocabulary": False}


def open_run(path: Path, task: str = "translator", fs: FileSystem | None = None) -> RunDirectory:
    return RunDirectory.open(path, task, fs=fs or QUICK())


def names(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def entries(*steps: int) -> list[dict[str, Any]]:
    return [{"event": "train", "step": step, "loss": 1 / (1 + step), "text": "주목\u2028"} for step in steps]


def test_a_new_run_is_made_with_its_parents(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "run"
    with RunDirectory.open(path, "translator") as run:
        assert run.read() is None
        assert (run.store, run.checkpoints, run.model) == (path / "store", path / "checkpoints", path / "model")
        run.write({**RECORD, "settings": {"seed": 7}, "versions": {"jumok": "1"}})
        record = run.read()
    assert record is not None
    assert (record["format"], record["task"], record["versions"]) == (1, "translator", {"jumok": "1"})
    assert record["settings"] == Settings.from_dict({"seed": 7}).to_dict()
    with RunDirectory.open(path, "translator") as again:
        assert again.read() == read_run(path) == record


def test_a_place_that_cannot_be_a_run_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(CheckpointError, match="is not a directory"):
        open_run(tmp_path / "file")
    with pytest.raises(JumokError, match="file: the directory cannot be created"):
        open_run(tmp_path / "file" / "run")
    (tmp_path / "home").mkdir()
    for name in ("a", "b", "c", "d"):
        (tmp_path / "home" / name).touch()
    with pytest.raises(CheckpointError, match=r"not empty and not a run directory \(a, b, c, …\)"):
        open_run(tmp_path / "home")
    assert names(tmp_path / "home") == {"a", "b", "c", "d"}


def test_a_model_directory_is_not_taken_for_a_run(tmp_path: Path) -> None:
    save_model(tmp_path / "model", 1)
    with pytest.raises(CheckpointError, match=r"not a run directory \(MANIFEST\.json"):
        open_run(tmp_path / "model")


def test_a_run_of_another_task_is_refused(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        run.write(RECORD)
    with pytest.raises(CheckpointError, match=r"another task \(translator, not classifier\)"):
        open_run(tmp_path, "classifier")
    open_run(tmp_path).close()  # the refused one holds no lock


def test_checkpoints_without_their_settings_are_refused(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / "step-00000001").mkdir(parents=True)
    with pytest.raises(CheckpointError, match=r"has checkpoints but no run\.json"):
        open_run(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"task": "trans', "not valid JSON.*Restore it"),
        (b'{"format": 2, "task": "translator"}', "has format 2"),
        (b'{"format": 1, "task": "translator", "task": "x"}', "appears twice"),
    ],
)
def test_a_damaged_description_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / RUN).write_bytes(content)
    with pytest.raises(CheckpointError, match=message):
        open_run(tmp_path)


@pytest.mark.parametrize("name", ["asked", "settings", "fingerprint", "keeps_vocabulary"])
def test_a_description_that_lacks_something_is_refused(tmp_path: Path, name: str) -> None:
    contents = {"format": 1, "task": "translator", **RECORD}
    del contents[name]
    (tmp_path / RUN).write_text(json.dumps(contents))
    with pytest.raises(CheckpointError, match=rf"run\.json: {name} cannot be used \(Field required\)\. Restore it"):
        open_run(tmp_path)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("asked", None, "asked"),
        ("asked", {"seed": "x"}, "asked.seed"),
        ("settings", [], "settings"),
        ("fingerprint", 5, "fingerprint"),
        ("keeps_vocabulary", "yes", "keeps_vocabulary"),
        ("inputs", "a.en", "inputs"),
        ("fixed", ["a"], "fixed"),
        ("best_before", "high", "best_before"),
    ],
)
def test_a_description_of_wrong_types_is_refused(tmp_path: Path, name: str, value: object, said: str) -> None:
    (tmp_path / RUN).write_text(json.dumps({"format": 1, "task": "translator", **RECORD, name: value}))
    with pytest.raises(CheckpointError, match=rf"run\.json: {re.escape(said)} cannot be used \(.*Restore it"):
        open_run(tmp_path)


class ReadOnlyFiles(FaultyFiles):
    def make_directory(self, path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def test_a_read_only_parent_is_named(tmp_path: Path) -> None:
    with pytest.raises(WriteError, match=r"run: the directory cannot be created \(Read-only file system\)"):
        open_run(tmp_path / "run", fs=ReadOnlyFiles())


def test_a_directory_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    (tmp_path / LOCK).mkdir()
    with pytest.raises(CheckpointError, match=r"cannot be written in \(Is a directory\)"):
        open_run(tmp_path)


@pytest.mark.parametrize("name", [LOCK, LOG])
@pytest.mark.parametrize("content", [b"mine", None])
def test_nothing_is_written_through_a_link(tmp_path: Path, name: str, content: bytes | None) -> None:
    """Neither is the file it leads to destroyed, nor one made there."""
    target = tmp_path / "target"
    if content is not None:
        target.write_bytes(content)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(target)
    with pytest.raises(CheckpointError, match=f"run/{re.escape(name)}: is a symbolic link, which is never followed"):
        open_run(tmp_path / "run")
    assert (target.read_bytes() if target.exists() else None) == content


def test_a_disk_too_full_for_the_lock_is_called_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.raises(WriteError, match=r"\.lock: cannot be written \(No space left on device\).*Free some space"):
            open_run(tmp_path)
    open_run(tmp_path).close()  # the refused one holds no lock


HOLDER = """
import sys
from pathlib import Path
from jumok.training.run_directory import RunDirectory
run = RunDirectory.open(Path(sys.argv[1]), "translator")
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_second_trainer_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", HOLDER, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"ready\n"
        with pytest.raises(CheckpointError, match=f"in use by process {first.pid} on {socket.gethostname()}"):
            open_run(tmp_path)
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert json.loads((tmp_path / LOCK).read_bytes())["pid"] == first.pid  # stale words without a lock do not matter
    open_run(tmp_path).close()


def test_one_process_cannot_open_a_run_twice(tmp_path: Path) -> None:
    with open_run(tmp_path):
        (tmp_path / LOCK).write_bytes(b"")  # as if the holder had not yet written its name
        with pytest.raises(CheckpointError, match="in use by another process"):
            open_run(tmp_path)
    open_run(tmp_path).close()


def test_the_log_keeps_what_is_added(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        assert read_log(tmp_path) == []
        for entry in entries(1, 2):
            run.append_log(entry)
    with open_run(tmp_path) as run:
        run.append_log(entries(3)[0])
    assert read_log(tmp_path) == entries(1, 2, 3)
    assert (tmp_path / LOG).read_bytes().count(b"\n") == 3


def test_a_torn_last_line_is_left_out_and_cut_off(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        for entry in entries(1, 2):
            run.append_log(entry)
    whole = (tmp_path / LOG).read_bytes()
    second = whole.index(b"\n") + 1
    for length in range(second + 1, len(whole)):
        (tmp_path / LOG).write_bytes(whole[:length])
        assert read_log(tmp_path) == entries(1)
        open_run(tmp_path).close()
        assert (tmp_path / LOG).read_bytes() == whole[:second]
    (tmp_path / LOG).write_bytes(whole[: second - 5])
    open_run(tmp_path).close()
    assert (tmp_path / LOG).read_bytes() == b""


def test_resuming_drops_what_will_happen_again(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        for entry in entries(0, 5, 5, 10, 15):
            run.append_log(entry)
        run.keep_log_until(15)
        assert read_log(tmp_path) == entries(0, 5, 5, 10, 15)
        with (tmp_path / LOG).open("ab") as file:
            file.write(b"\0\0\n")  # a block that the disk had promised and not kept
        run.keep_log_until(9)
        assert read_log(tmp_path) == entries(0, 5, 5)
        run.append_log(entries(10)[0])
        assert read_log(tmp_path) == entries(0, 5, 5, 10)
        run.keep_log_until(None)
        assert read_log(tmp_path) == []


def test_what_followed_the_checkpoint_of_the_same_step_happens_again_too(tmp_path: Path) -> None:
    until = [*entries(1), {"event": "valid", "step": 5}, {"event": "checkpoint", "step": 5}]
    with open_run(tmp_path) as run:
        for entry in [*until, {"event": "valid", "step": 5, "averaged": "last"}, {"event": "done", "step": 5}]:
            run.append_log(entry)
        run.keep_log_until(5)
        assert read_log(tmp_path) == until
        run.keep_log_until(5)
        assert read_log(tmp_path) == until


def test_damage_in_the_middle_of_the_log_is_named_and_kept(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        run.append_log(entries(1)[0])
        with (tmp_path / LOG).open("ab") as file:
            file.write(b'{"event": "tra\n')
        run.append_log(entries(3)[0])
        before = (tmp_path / LOG).read_bytes()
        with pytest.raises(CheckpointError, match=r"log\.jsonl:2: is damaged or out of order"):
            run.keep_log_until(3)
        with pytest.raises(CheckpointError, match=r"log\.jsonl:2: is damaged"):
            read_log(tmp_path)
    assert (tmp_path / LOG).read_bytes() == before


@pytest.mark.parametrize(
    "line", ['{"event": "train", "step": "x"}', '{"event": "train", "step": null}', '{"event": "done"}', '{"step": 2}']
)
def test_a_line_that_does_not_say_what_happened_at_which_step_is_damaged(tmp_path: Path, line: str) -> None:
    with open_run(tmp_path) as run:
        run.append_log(entries(1)[0])
        with (tmp_path / LOG).open("a") as file:
            file.write(line + "\n")
        assert already_finished(tmp_path, {"steps": 5}) is None
        run.keep_log_until(1)
        assert (tmp_path / LOG).read_bytes().count(b"\n") == 1
        assert read_log(tmp_path) == entries(1)


def test_an_end_is_believed_only_with_its_score(tmp_path: Path) -> None:
    with open_run(tmp_path) as run:
        for damaged in ({}, {"best_score": "high"}):
            run.append_log({"event": "done", "step": 5, **damaged})
            assert already_finished(tmp_path, {"steps": 5}) is None
            assert best_before(tmp_path, None, resumed=True) is None
        run.append_log({"event": "done", "step": 5, "best_score": 0.5})
        assert already_finished(tmp_path, {"steps": 5}) == {"event": "done", "step": 5, "best_score": 0.5}
        assert best_before(tmp_path, None, resumed=True) == 0.5


def test_a_log_that_is_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / LOG).mkdir()
    with pytest.raises(CheckpointError, match=r"log\.jsonl: is not a regular file.*Move it away"):
        open_run(tmp_path)
    with pytest.raises(CheckpointError, match=r"log\.jsonl: is not a regular file.*Move it away"):
        read_log(tmp_path)


def test_a_log_that_finds_the_disk_full_keeps_whole_lines(tmp_path: Path) -> None:
    fs = FaultyFiles(fails_at=3)  # after the creation and the first line
    with open_run(tmp_path, fs=fs) as run:
        run.append_log(entries(1)[0])
        with pytest.raises(WriteError, match=r"log\.jsonl: \d+ bytes cannot be added \(No space left"):
            run.append_log(entries(2)[0])
        assert (tmp_path / LOG).read_bytes().endswith(b"}\n")
        assert read_log(tmp_path) == entries(1)


def save_model(path: Path, number: int, fs: FileSystem | None = None) -> None:
    weights = {"w": np.full(3, number, np.float32)}
    save_bundle(
        path, config={"number": number}, weights=weights, encoder=("tokenizer", b"t"), card={}, fs=fs or QUICK()
    )


def test_opening_finishes_a_model_that_was_being_replaced(tmp_path: Path) -> None:
    save_model(tmp_path / "model", 2)
    (tmp_path / "model").rename(tmp_path / ".next-model")
    open_run(tmp_path).close()
    assert names(tmp_path) == {LOCK, "model"}
    save_model(tmp_path / "model", 3)
    (tmp_path / "model").rename(tmp_path / ".next-model")
    save_model(tmp_path / "kept", 2)
    (tmp_path / "kept").rename(tmp_path / "model")
    (tmp_path / ".next-model" / "card.json").write_bytes(b"lost")
    open_run(tmp_path).close()
    assert names(tmp_path) == {LOCK, "model"}
    assert load_bundle(tmp_path).config["number"] == 2


def train(path: Path, fs: FaultyFiles, until: int) -> None:
    """A training in small: each step is logged, saved, and becomes the model."""
    with open_run(path, fs=fs) as run:
        if run.read() is None:
            run.write(RECORD)
        checkpoint = load_latest(run.checkpoints, lambda path, reason: pytest.fail(f"{path}: {reason}"))
        run.keep_log_until(checkpoint.step if checkpoint else None)
        for step in range(checkpoint.step + 1 if checkpoint else 1, until + 1):
            run.append_log(entries(step)[0])
            run.save_checkpoint(step, {"model": {"w": torch.full((3,), float(step))}}, {"epoch": 0}, protect=[1])
            save_model(run.model, step, fs)


def toy(path: Path, fs: FaultyFiles | None = None, steps: int = 3) -> Toy:
    """A whole training, by the real trainer: 3 checkpoints, 2 validations, and averages."""
    return Toy(path, fs=fs or FaultyFiles(), steps=steps, validate_every=2, checkpoint_every=1, average=2, log_every=1)


def left_by(run: Path) -> dict[str, Any]:
    """All that a training leaves but times: run.json, the log, the names of files, tensors of model and checkpoints."""
    log = [{name: value for name, value in entry.items() if name != "seconds"} for entry in read_log(run)]
    tensors = {str(path.relative_to(run)): path.read_bytes() for path in sorted(run.rglob("*.safetensors"))}
    return {"run": read_run(run), "log": log, "names": names(run), "tensors": tensors}


def assert_same(left: dict[str, Any], whole: dict[str, Any], when: object) -> None:
    """An older checkpoint may be there too: it goes with the next save."""
    assert left | {"tensors": {name: left["tensors"].get(name) for name in whole["tensors"]}} == whole, when
    more = {Path(name).parts[1] for name in left["tensors"].keys() - whole["tensors"].keys()}
    assert more <= {"step-00000001"}, when


def secured_step(fs: FaultyFiles) -> int:
    """The step of the last checkpoint whose name was synced."""
    secured = [name for (_, name), after in pairwise(fs.operations) if after == ("sync_directory", "checkpoints")]
    return max((int(name.removeprefix("step-")) for name in secured if name.startswith("step-")), default=0)


@pytest.mark.usefixtures("without_shape_checks")
def test_a_training_that_crashed_anywhere_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    run = tmp_path / "root" / "run"
    toy(tmp_path / "whole").go()
    whole = left_by(tmp_path / "whole")

    def prepare() -> None:
        shutil.rmtree(tmp_path / "root", ignore_errors=True)
        (tmp_path / "root").mkdir()

    count = 0
    for crashed in crashes(lambda fs: toy(run, fs).go(), root=tmp_path / "root", prepare=prepare, one_in_turn=True):
        count += 1
        checkpoint = load_latest(run / "checkpoints", lambda path, reason: pytest.fail(f"{path}: {reason}"))
        assert (checkpoint.step if checkpoint else 0) >= secured_step(crashed.fs), crashed
        assert toy(run).go() is not None, crashed
        assert_same(left_by(run), whole, crashed)
    assert count > 150


@pytest.mark.usefixtures("without_shape_checks")
def test_a_training_on_a_disk_that_fails_at_any_operation_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    counting = FaultyFiles()
    toy(tmp_path / "whole", counting, steps=2).go()
    whole = left_by(tmp_path / "whole")
    for number in range(1, counting.fallible + 1):
        error = (errno.ENOSPC, errno.EIO)[number % 2]
        run, fs = tmp_path / str(number), FaultyFiles(fails_at=number, error=error)
        with pytest.raises((WriteError, BundleError), match=os.strerror(error)) as raised:
            toy(run, fs, steps=2).go()
        assert str(run) in str(raised.value)
        checkpoint = load_latest(run / "checkpoints", lambda path, reason: pytest.fail(f"{path}: {reason}"))
        assert (checkpoint.step if checkpoint else 0) >= secured_step(fs), number
        assert toy(run, steps=2).go() is not None, number
        assert_same(left_by(run), whole, number)
        shutil.rmtree(run)


def test_the_log_is_on_the_disk_before_the_checkpoint_that_relies_on_it(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    fs = FaultyFiles(disk=disk)
    train(tmp_path / "run", fs, 1)
    assert fs.operations.index(("sync", LOG)) < fs.operations.index(("rename", "step-00000001"))
    for state in disk.states(100, seed=0):
        disk.become(state)
        assert read_log(tmp_path / "run") == entries(1)
        assert names(tmp_path / "run" / "checkpoints") == {"step-00000001"}


def test_whatever_a_power_failure_leaves_of_unsynced_lines_the_log_goes_on(tmp_path: Path) -> None:
    """Cutting it off may be undone, and any line may be missing, in part or as zeros, with others after it."""
    train(tmp_path / "run", FaultyFiles(), 1)
    with open_run(tmp_path / "run") as run:
        run.append_log({"event": "checkpoint", "step": 1})
        for entry in entries(2, 3):
            run.append_log(entry)
    disk = Disk(tmp_path)
    with open_run(tmp_path / "run", fs=FaultyFiles(disk=disk)) as run:
        run.keep_log_until(1)
        for entry in entries(2, 3, 4):
            run.append_log(entry | {"again": True})
    for state in disk.states(1 << 10, seed=0):
        disk.become(state)
        with open_run(tmp_path / "run") as run:
            read_log(tmp_path / "run")  # it is readable again
            run.keep_log_until(1)
        assert read_log(tmp_path / "run") == [*entries(1), {"event": "checkpoint", "step": 1}], state.lost


def test_a_fresh_start_keeps_only_the_store(tmp_path: Path) -> None:
    train(tmp_path, FaultyFiles(), 3)
    (tmp_path / "store").mkdir()
    with open_run(tmp_path) as run:
        run.clear()
        assert names(tmp_path) == {LOCK, "store"}
        assert run.read() is None
        run.clear()
    train(tmp_path, FaultyFiles(), 1)
    assert read_log(tmp_path) == entries(1)


def test_a_fresh_start_that_crashed_can_be_repeated(tmp_path: Path) -> None:
    run, base = tmp_path / "run", tmp_path / "base"
    train(base, FaultyFiles(), 2)

    def prepare() -> None:
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(base, run)

    def clear(fs: FaultyFiles) -> None:
        with open_run(run, fs=fs) as opened:
            opened.clear()

    for moment in crashes(clear, root=run, prepare=prepare):
        clear(FaultyFiles())
        assert names(run) == {LOCK}, moment


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"seed": 1, "model": {"d": 2}}, {"model": {"d": 2}, "seed": 1}, []),
        ({"optimizer": {"lr": 0.1}}, {"optimizer": {"lr": 0.2}}, ["optimizer.lr: 0.1 → 0.2"]),
        ({"a": {"b": None}}, {"a": {"c": True}}, ["a.b: null → not set", "a.c: not set → true"]),
        ({"name": "주목"}, {"name": "목"}, ['name: "주목" → "목"']),
        ({"x": {}}, {"x": {"y": 1}}, ["x: {} → not set", "x.y: not set → 1"]),
        ({"x": [1, 2]}, {"x": [2, 1]}, ["x: [1, 2] → [2, 1]"]),
    ],
)
def test_changed_settings_are_told_by_name(old: dict[str, Any], new: dict[str, Any], lines: list[str]) -> None:
    assert diff_settings(old, new) == lines
