"""What everybody waits for first: the help."""

import os
import subprocess
import sys

import pytest
from commands import SOURCE

COMMANDS = ["demo", "train translator", "translate", "score", "evaluate", "check", "info"]

PROGRAM = """
import sys, time
from jumok.cli.app import run
code = run()
heavy = ("torch", "numpy", "sentencepiece", "rich", "matplotlib")
print(time.process_time(), *(n for n in heavy if n in sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_quick_has_an_example_and_imports_nothing_heavy(command: str) -> None:
    seconds = []
    for _ in range(3 if command == "translate" else 1):  # processor time, the quickest counts
        run = subprocess.run(
            [sys.executable, "-c", PROGRAM, *command.split(), "--help"],
            env={**os.environ, "PYTHONPATH": str(SOURCE)},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
        assert "Example: " in run.stdout
        first, *heavy = run.stderr.split()
        assert not heavy
        seconds.append(float(first))
    assert min(seconds) < 0.5
