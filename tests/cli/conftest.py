"""A model trained in seconds through the real command, and the command in this process."""

import io
import sys
from pathlib import Path

import pytest
from commands import Ended, Jumok, train_arguments, write_corpus

from jumok.cli.app import run


@pytest.fixture
def jumok(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Jumok:
    """Runs a command in this process."""

    def here(*arguments: str | Path, stdin: str | bytes = b"") -> Ended:
        content = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        capsys.readouterr()
        code = run([str(argument) for argument in arguments])
        return Ended(code, *capsys.readouterr())

    return here


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a.en, a.ko and run, which nobody changes."""
    directory = tmp_path_factory.mktemp("trained")
    write_corpus(directory)
    assert run(["train", "translator", *train_arguments(directory), "--quiet"]) == 0
    return directory
