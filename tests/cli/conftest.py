"""Models trained in seconds through the real command, and the command in this process."""

import io
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from commands import CLASSIFIER, Ended, Jumok, train_arguments, write_corpus, write_reviews

from jumok.cli.app import run


@pytest.fixture(autouse=True)
def _quick(quick_trainings: None) -> None:
    """Trainings that take no longer than their steps."""


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
def trained(build_once: Callable[..., Path]) -> Path:
    """A directory with a.en, a.ko and run, the run of a translator, which nobody changes."""

    def build(directory: Path) -> None:
        write_corpus(directory)
        assert run(["train", "translator", *train_arguments(directory), "--quiet"]) == 0

    return build_once("trained", build)


@pytest.fixture(scope="session")
def trained_classifier(build_once: Callable[..., Path]) -> Path:
    """A directory with train.tsv, test.tsv (reviews), run, the run of a classifier, and train.out, what its training
    printed. Nobody changes it."""

    def build(directory: Path) -> None:
        write_reviews(directory)
        arguments = [str(directory / "train.tsv"), "-o", str(directory / "run"), "--steps=150", *CLASSIFIER]
        with redirect_stdout(io.StringIO()) as printed:
            assert run(["train", "classifier", *arguments]) == 0
        (directory / "train.out").write_text(printed.getvalue(), encoding="utf-8")

    return build_once("trained-classifier", build)
