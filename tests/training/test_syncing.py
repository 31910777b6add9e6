"""The system calls of a real save, in their order: what the simulated disk takes for granted about syncing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from jumok import system
from jumok.bundle import save_bundle
from jumok.data.store import TokenStore
from jumok.training.run_directory import RunDirectory

SAVED = ["model.safetensors", "optimizer.safetensors", "state.json", "MANIFEST.json"]
MODEL = ["config.json", "weights.safetensors", "tokenizer.model", "card.json", "MANIFEST.json"]
STORED = ["source.ids", "source.lengths", "store.json"]


def save_everything(path: Path) -> None:
    """A run with its settings, its corpus, two lines in its log, three checkpoints, and a model that is replaced."""
    with RunDirectory.open(path, "translator") as run:
        TokenStore.build(run.store / "train", [[[1, 2]]], columns=["source"], fingerprint="f")
        run.write({"asked": {}, "settings": {}, "fingerprint": "f", "keeps_vocabulary": False})
        for step in (1, 2, 3):
            if step < 3:
                run.append_log({"event": "train", "step": step})
            run.save_checkpoint(step, {"model": {"w": torch.ones(2)}, "optimizer": {"m": torch.ones(2)}}, {})
            weights = {"w": np.full(2, step, np.float32)}
            save_bundle(run.model, config={}, weights=weights, encoder=("tokenizer", b"t"), card={})


def require_order(calls: list[tuple[str, str]], run: str) -> None:
    """`calls` are ("sync" or "rename", path) with random parts of names left out; a rename has its new name."""

    def position(call: str, path: str, after: int = -1) -> int:
        assert (call, path) in calls[after + 1 :], f"no {call} of {path} after {calls[: after + 1][-3:]}"
        return calls.index((call, path), after + 1)

    def whole_directory(parent: str, name: str, files: list[str], after: int) -> int:
        """Its files, then its names, then its own name; returns where that is secured."""
        temporary = f"{parent}/.tmp-{name}"
        written = [position("sync", f"{temporary}/{file}", after) for file in files]
        assert written == sorted(written)
        named = position("rename", f"{parent}/{name}", position("sync", temporary, written[-1]))
        assert calls[named + 1] == ("sync", parent)
        return named + 1

    position("sync", os.path.dirname(run))  # the name of the run directory
    stored = [position("sync", f"{run}/store/.tmp-directory/{file}") for file in STORED]
    named = position("rename", f"{run}/store/train", position("sync", f"{run}/store/.tmp-directory", max(stored)))
    assert calls[named + 1] == ("sync", f"{run}/store")
    described = position("rename", f"{run}/run.json", position("sync", f"{run}/.tmp-run.json"))
    assert calls[described + 1] == ("sync", run)
    done = described
    for step in (1, 2, 3):
        logged = position("sync", f"{run}/log.jsonl", done)
        assert calls[logged + 1] == ("sync", run)  # its name, new with the first line
        done = whole_directory(f"{run}/checkpoints", f"step-0000000{step}", SAVED, logged + 1)
        if step == 3:  # only now the oldest goes
            assert calls[done + 1 : done + 3] == [
                ("rename", f"{run}/checkpoints/.trash-step-00000001"),
                ("sync", f"{run}/checkpoints"),
            ]
        done = whole_directory(run, ".next-model", MODEL, done)
        if step > 1:
            done = position("rename", f"{run}/.trash-model", done) + 1
            assert calls[done] == ("sync", run)
        done = position("rename", f"{run}/model", done) + 1
        assert calls[done] == ("sync", run)


def without_random(path: str) -> str:
    return re.sub(r"(\.(?:tmp|trash)-[^/]*)-[0-9a-f]{8}", r"\1", path)


def test_the_calls_of_a_real_save_sync_everything_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, str]] = []

    def spied(name: str, call: str, path_of: Callable[..., str]) -> None:
        really = getattr(os, name)

        def spy(*arguments: Any) -> None:
            path = path_of(*arguments)  # before: a rename changes it
            really(*arguments)
            calls.append((call, without_random(path)))

        monkeypatch.setattr(os, name, spy)

    if not Path("/proc/self/fd").exists() or hasattr(system.fcntl, "F_FULLFSYNC"):
        pytest.skip("NOT TESTED: without /proc, and where fsync is not what syncs, descriptors have no path to compare")
    spied("fsync", "sync", lambda descriptor: os.readlink(f"/proc/self/fd/{descriptor}"))
    spied("replace", "rename", lambda _, target: str(target))
    save_everything(tmp_path / "run")
    require_order(calls, str(tmp_path / "run"))


TRACED = (
    "import sys; from pathlib import Path; from test_syncing import save_everything; save_everything(Path(sys.argv[1]))"
)
SYNC = re.compile(r"(?:fsync|fdatasync)\(\d+<(.*)>\) += 0")
RENAME = re.compile(r'rename(?:at2?)?\(.*"(.*)"(?:, 0)?\) += 0')


def test_the_system_sees_them_too(tmp_path: Path) -> None:
    if shutil.which("strace") is None:
        pytest.skip("NOT TESTED with strace: this machine has none")
    tests = Path(__file__).parent
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tests), str(tests.parent), *sys.path])}
    traced = ["strace", "-f", "--seccomp-bpf", "-y", "-qq", "-o", tmp_path / "calls"]
    traced += ["-e", "trace=fsync,fdatasync,rename,renameat,renameat2"]
    done = subprocess.run(
        [*traced, sys.executable, "-c", TRACED, tmp_path / "run"], env=environment, capture_output=True, text=True
    )
    if "ptrace" in done.stderr or "strace: " in done.stderr:
        pytest.skip(f"NOT TESTED with strace: it may not trace here ({done.stderr.strip()})")
    assert done.returncode == 0, done.stderr
    calls = []
    for line in (tmp_path / "calls").read_text().splitlines():
        if found := SYNC.search(line):
            calls.append(("sync", without_random(found[1])))
        elif found := RENAME.search(line):
            calls.append(("rename", without_random(found[1])))
    require_order(calls, str(tmp_path / "run"))
