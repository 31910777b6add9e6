"""The simulated disk of the crash tests is itself right: it loses what a real one may lose, and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faulty_files import FaultyFiles
from unsynced_disk import Disk

NAMES = st.sampled_from(["a", "b", "c"])
PLACES = st.sampled_from(["", "d"])
STEPS = st.tuples(
    st.sampled_from(["create", "append", "truncate", "rename", "remove", "sync", "sync directory"]),
    PLACES,
    NAMES,
    NAMES,
    st.binary(max_size=4),
)


def contents(directory: Path) -> dict[Path, bytes | None]:
    return {path: None if path.is_dir() else path.read_bytes() for path in sorted(directory.rglob("*"))}


def perform(fs: FaultyFiles, root: Path, step: tuple[str, str, str, str, bytes]) -> None:
    """One operation, if it is possible now."""
    operation, place, name, other, data = step
    path = root / place / name
    if operation == "create" and not path.exists():
        with fs.create(path) as file:
            fs.write(file, memoryview(data))
    elif operation == "append":
        with fs.open_to_append(path) as file:
            fs.write(file, memoryview(data))
    elif operation == "truncate" and path.exists():
        fs.truncate(path, path.stat().st_size // 2)
    elif operation == "rename" and path.exists() and name != other:
        fs.rename(path, root / place / other)
    elif operation == "remove" and path.exists():
        fs.remove(path)
    elif operation == "sync" and path.exists():
        with fs.open_to_append(path) as file:
            fs.sync(file)
    elif operation == "sync directory":
        fs.sync_directory(path.parent)


@given(st.lists(STEPS, max_size=8))
def test_it_may_keep_everything_and_after_syncing_everything_it_must(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, str, str, bytes]]
) -> None:
    root = tmp_path_factory.mktemp("root")
    (root / "d").mkdir()
    (root / "a").write_bytes(b"old")
    disk = Disk(root)
    fs = FaultyFiles(disk=disk)
    for step in steps:
        perform(fs, root, step)
    real = contents(root)
    assert disk.states(1 << 20, seed=0)[-1].files == real  # the last of all combinations: nothing is lost
    for path, content in real.items():
        if content is not None:
            with fs.open_to_append(path) as file:
                fs.sync(file)
    for directory in (root, root / "d"):
        fs.sync_directory(directory)
    [state] = disk.states(1 << 20, seed=0)
    assert state.files == real
    disk.become(state)
    assert contents(root) == real
    shutil.rmtree(root)


def test_changes_are_lost_in_any_order_and_what_was_removed_comes_back(tmp_path: Path) -> None:
    (tmp_path / "removed").write_bytes(b"removed")
    disk = Disk(tmp_path)
    fs = FaultyFiles(disk=disk)
    with fs.create(tmp_path / "file") as file:
        fs.write(file, memoryview(b"1122"))
    fs.rename(tmp_path / "file", tmp_path / "renamed")
    fs.remove(tmp_path / "removed")
    states = [{path.name: content for path, content in state.files.items()} for state in disk.states(100, seed=0)]
    assert len(states) == 2**5
    assert {"removed": b"removed"} in states  # everything is lost
    assert {"renamed": b"1122"} in states  # nothing is
    assert {"renamed": b""} in states  # a name without its content
    assert {"renamed": b"\0\x0022"} in states  # the end of it without its beginning
    assert {"file": b"11", "removed": b"removed"} in states
    with fs.open_to_append(tmp_path / "renamed") as file:
        fs.sync(file)
    kept = [{path.name: content for path, content in state.files.items()} for state in disk.states(100, seed=0)]
    assert len(kept) == 2**3
    assert {state.get("renamed", b"1122") for state in kept} == {b"1122"}
    fs.sync_directory(tmp_path)
    assert [state.lost for state in disk.states(100, seed=0)] == [[]]
