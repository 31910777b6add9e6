"""`--minutes` through the real command, on this machine: alone, and beside another program. Needs a quiet machine."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from commands import start

from jumok.demo.pairs import write_demo_corpus
from jumok.system import usable_cores

MINUTES = 3.0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("third", [None, 0, 1, 2], ids=["quiet", "busy at first", "busy in between", "busy at last"])
def test_the_minutes_asked_for_are_kept_within_4_percent(tmp_path: Path, third: int | None) -> None:
    write_demo_corpus(tmp_path)
    files = [tmp_path / name for name in ("train.en", "train.ko", "--valid", "valid.en", "valid.ko")]
    arguments = [name.name if name.name == "--valid" else name for name in files]
    began = time.perf_counter()
    command = start("train", "translator", *arguments, "-o", "run", f"--minutes={MINUTES}", "--quiet", cwd=tmp_path)
    seconds = 60 * MINUTES
    if third is not None:
        time.sleep(third * seconds / 3)
        others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(usable_cores())]
        time.sleep(seconds / 3)
        for other in others:
            other.kill()
            other.wait()
    _, error = command.communicate()
    assert command.returncode == 0, error
    assert time.perf_counter() - began == pytest.approx(seconds, rel=0.04)
