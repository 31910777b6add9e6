"""What everybody waits for first: the help."""

import os
import subprocess
import sys

import pytest
from commands import SOURCE

from jumok import __version__
from jumok.cli.app import run

COMMANDS = [
    "demo",
    "train translator",
    "train classifier",
    "train lm",
    "translate",
    "classify",
    "generate",
    "embed",
    "score",
]
COMMANDS += ["evaluate", "check", "export", "info", "train painter", "paint"]

# The processor time of a command, in units of what Python itself takes to start: a busy machine makes both longer.
PROGRAM = """
import sys, time
started = time.process_time()
from jumok.cli.app import run
code = run()
heavy = ("torch", "numpy", "sentencepiece", "rich", "matplotlib")
print(time.process_time() / started, *(n for n in heavy if n in sys.modules), file=sys.stderr)
sys.exit(code)
"""
MOST_STARTS = 25


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_quick_has_an_example_and_imports_nothing_heavy(command: str) -> None:
    ratios = []
    for _ in range(3 if command == "translate" else 1):  # the quickest counts
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
        ratios.append(float(first))
    assert min(ratios) < MOST_STARTS


def test_a_command_is_not_slowed_down_by_the_others() -> None:
    program = "import sys; from jumok.cli.app import run; run(['translate', '--help']); "
    program += "print(*(name for name in sys.modules if name.startswith('jumok.')))"
    ended = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    imported = ended.stdout.splitlines()[-1].split()
    assert "jumok.cli.translate" in imported
    assert not {"jumok.cli.train", "jumok.cli.evaluate", "jumok.cli.panel", "jumok.data"}.intersection(imported)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trane"], "Did you mean one of: 'train', 'translate'?"),
        (["train", "clasifier"], "Did you mean 'classifier'?"),
        (["train", "translator", "--minuts", "3"], "'--minutes'"),
        (["translate"], "Missing option '-m' / '--model'"),
        (["translate", "-m", "run", "--beam", "x"], "Invalid value for '--beam'"),
    ],
)
def test_a_wrong_word_is_answered_with_the_right_one(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(arguments) == 2
    assert message in capsys.readouterr().err


def test_the_version_and_the_list_of_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"jumok {__version__}\n"
    assert run([]) == 2  # nothing was asked for
    listed = capsys.readouterr().err
    for command in ("demo", "train", "translate", "classify", "generate", "evaluate", "export"):
        assert f"\n  {command} " in listed


def test_the_list_of_commands_cuts_no_sentence_off(capsys: pytest.CaptureFixture[str]) -> None:
    run(["--help"])
    _, _, commands = capsys.readouterr().out.partition("Commands:\n")
    assert commands.count("\n") >= 12
    assert all(line.endswith(".") and not line.endswith("...") for line in commands.splitlines())
