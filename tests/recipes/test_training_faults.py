"""A whole training by `train`, from the files to the certified export, crashed at file operations of all its parts.

tests/training/test_run_directory.py crashes the trainer at every operation, test_preparation_faults.py and
test_export_faults.py what comes before and after it; here it is what holds them together.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from faulty_files import Crash, FaultyFiles, faulty_everywhere
from jumok import load
from jumok.errors import JumokError
from jumok.recipes.training import train
from jumok.training.records import read_log, read_run
from unsynced_disk import Disk

SETTINGS = {
    "model.d_model": 8,
    "model.heads": 2,
    "model.encoder_layers": 1,
    "model.d_ff": 8,
    "model.ngrams": 64,
    "tokenizer.size": 300,
    "batch.tokens": 128,
    "validate.every": 2,
    "checkpoint.every": 1,
    "checkpoint.average": 2,
}
MOMENTS = 6  # of some hundred; `slow` takes all


def trained(root: Path, fs: FaultyFiles | None = None) -> None:
    with faulty_everywhere(fs or FaultyFiles()):
        data = root.parent / "a.tsv"
        train("classifier", data, out=root / "run", steps=3, settings=SETTINGS, on_event=lambda _: None)


def left_by(run: Path) -> dict[str, Any]:
    """All that a training leaves but times, which are in JSON files, and the oldest checkpoint, which may remain."""
    log = [{name: value for name, value in entry.items() if name != "seconds"} for entry in read_log(run)]
    paths = [path for path in sorted(run.rglob("*")) if path.is_file() and "step-00000001" not in path.parts]
    contents = {str(path.relative_to(run)): None if path.suffix == ".json" else path.read_bytes() for path in paths}
    record = read_run(run) or {}
    decided = {name: record[name] for name in ("asked", "settings", "length", "fingerprint", "fixed")}
    return {**contents, **decided, "log.jsonl": log, ".lock": None}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], FaultyFiles]:
    """A training that nothing disturbs, what it left, and how many operations it took."""
    directory = tmp_path_factory.mktemp("whole")
    rows = [f"{('good', 'bad')[n % 2]}\tthis is a {('fine', 'poor')[n % 2]} text {n}\n" for n in range(60)]
    (directory / "a.tsv").write_text("".join(rows))
    (directory / "root").mkdir()
    fs = FaultyFiles()
    trained(directory / "root", fs)
    return directory, left_by(directory / "root" / "run"), fs


def one_of_each_part(count: int, parts: int) -> list[int]:
    """A random number of each of so many equal parts of range(count)."""
    draw = random.Random(0)
    return [draw.randrange(part * count // parts, (part + 1) * count // parts) for part in range(parts)]


def crash_and_finish(whole: tuple[Path, dict[str, Any], FaultyFiles], moments: Sequence[int]) -> None:
    directory, expected, _ = whole
    root = directory / "root"
    for moment in moments:
        shutil.rmtree(root)
        root.mkdir()
        disk = Disk(root)
        with pytest.raises(Crash):
            trained(root, FaultyFiles(crash_at=moment, disk=disk))
        if moment % 3:  # and the power fails
            disk.become(disk.states(2, seed=moment)[-1])
        trained(root)
        assert left_by(root / "run") == expected, moment
        assert load(root / "run").classify(["a fine text"])


def test_a_training_that_crashes_in_any_of_its_parts_ends_the_same(
    whole: tuple[Path, dict[str, Any], FaultyFiles],
) -> None:
    crash_and_finish(whole, one_of_each_part(whole[2].moments, MOMENTS))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_training_that_crashes_anywhere_ends_the_same(whole: tuple[Path, dict[str, Any], FaultyFiles]) -> None:
    crash_and_finish(whole, range(whole[2].moments))


def test_a_disk_that_fails_in_any_part_of_a_training_is_explained(
    whole: tuple[Path, dict[str, Any], FaultyFiles],
) -> None:
    directory, expected, counted = whole
    root = directory / "root"
    for number in one_of_each_part(counted.fallible, 4):
        shutil.rmtree(root)
        root.mkdir()
        with pytest.raises(JumokError, match=os.strerror(errno.ENOSPC)) as raised:
            trained(root, FaultyFiles(fails_at=number + 1))
        assert str(root) in str(raised.value)
        trained(root)
        assert left_by(root / "run") == expected, number
