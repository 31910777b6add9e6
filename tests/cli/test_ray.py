"""The program for Ray Train in docs/scaling.md, run on a local cluster of two workers, of which one is killed."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from commands import SOURCE
from kills import assert_same
from ranks import STEPS, Job, arguments_of, train_in_turn, write_corpora

from jumok.training.records import read_log

DOCS = SOURCE.parent / "docs"
IN_THE_PAGE = '"a.en", "a.ko", "-o", "/shared/run"'


def program(page: Path) -> str:
    [found] = [block for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S) if "TorchTrainer" in block]
    return found


def test_the_program_is_the_same_in_both_languages_and_is_python() -> None:
    english, korean = (program(page) for page in (DOCS / "scaling.md", DOCS / "ko" / "scaling.md"))
    assert english == korean
    assert IN_THE_PAGE in english
    compile(english, "scaling.md", "exec")


def rank_1_of(run: Path) -> int | None:
    """The process id of the training with rank 1."""
    for process in Path("/proc").iterdir():
        if process.name.isdecimal() and int(process.name) != os.getpid():
            try:
                arguments, variables = ((process / name).read_bytes().split(b"\0") for name in ("cmdline", "environ"))
            except OSError:  # it has ended
                continue
            if str(run).encode() in arguments and b"jumok" in arguments and b"RANK=1" in variables:
                return int(process.name)
    return None


def kill_rank_1(run: Path, killed: list[int]) -> None:
    """Once the training has made some steps after a checkpoint."""
    while not killed:
        time.sleep(0.02)
        if (run / "log.jsonl").exists() and any(entry["step"] >= 25 for entry in read_log(run)):
            victim = rank_1_of(run)
            assert victim is not None
            os.kill(victim, signal.SIGKILL)
            killed.append(victim)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_ray_starts_again_what_was_killed_and_the_end_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'ray[train]'")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    write_corpora(tmp_path)
    run, steps = tmp_path / "run", 4 * STEPS
    arguments = [*arguments_of("translator", tmp_path), f"--steps={steps}"]
    [whole] = train_in_turn([Job("whole", 2, arguments)], tmp_path)
    assert whole.codes == [0, 0]
    text = program(DOCS / "scaling.md").replace("/shared/ray", str(tmp_path / "ray"))
    text = text.replace(IN_THE_PAGE, repr([*arguments, "-o", str(run), "--quiet"])[1:-1])
    killed: list[int] = []
    killer = threading.Thread(target=kill_rank_1, args=(run, killed), daemon=True)
    ray.init(num_cpus=2, include_dashboard=False)
    try:
        killer.start()
        exec(compile(text, "scaling.md", "exec"), {"__name__": "__main__"})
    finally:
        ray.shutdown()
    assert killed
    assert_same(run, tmp_path / "whole", steps)
