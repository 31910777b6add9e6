"""Whole trainings on a real terminal (a pty), by the command and from Python."""

import re
import sys
from pathlib import Path

import pytest
from commands import SMALL, train_arguments, write_corpus
from terminals import opened_terminal

import jumok
from jumok.cli.app import run
from jumok.training.settings import parse_assignments

pytestmark = pytest.mark.usefixtures("quick_trainings")
SETTINGS = parse_assignments(setting.removeprefix("--set=") for setting in SMALL)


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of a usual terminal."""
    for name, value in {"TERM": "xterm-256color", "LC_ALL": "ko_KR.UTF-8"}.items():
        monkeypatch.setenv(name, value)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


def plain(text: str) -> str:
    """What a terminal got, without the codes for colours and the cursor."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def test_the_command_shows_the_panel_from_the_first_phase_to_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    with opened_terminal() as terminal:
        monkeypatch.setattr(sys, "stdout", terminal.stream)
        assert run(["train", "translator", *train_arguments(tmp_path), "--set=log.every=10"]) == 0
    text = plain(terminal.text)
    assert "\x1b[" in terminal.text
    phases = ("Reading and checking the corpus", "Training", "Averaging checkpoints", "Certifying the export", "Done")
    places = [text.index(phase) for phase in phases]
    assert places == sorted(places)
    assert text.rindex("Done ") > text.rindex("Certifying the export")  # the last panel, and then the summary
    for shown in ("preset = tiny", "step", "30/30", "time left", "BLEU", "average of the ", "100%", "Now: echo "):
        assert shown in text
    assert re.search("loss [▁▂▃▄▅▆▇█]{3}", text)
    assert all(len(line) < 100 for line in text.splitlines() if "│" in line)  # the panel is not broken over two lines
    assert "Traceback" not in text + capsys.readouterr().err


def test_a_training_from_python_shows_the_panel_or_lines_unless_it_is_not_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_corpus(tmp_path)
    events: list[str] = []

    def train(**arguments: bool) -> None:
        files = (tmp_path / "a.en", tmp_path / "a.ko")
        arguments |= {"on_event": lambda event: events.append(event["event"])}
        jumok.train_translator(*files, out=tmp_path / "run", steps=3, note="a note", settings=SETTINGS, **arguments)

    with opened_terminal() as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.stream)
        train()
    text = plain(terminal.text)
    for shown in ("translator → ", "3/3", "Done"):
        assert shown in text
    assert (events[0], events[-1]) == ("reading", "finished")
    assert jumok.load(tmp_path / "run").card["note"] == "a note"
    assert capsys.readouterr() == ("", "")

    with opened_terminal() as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal.stream)
        train(progress=False)
    assert terminal.text == ""

    train(fresh=True)  # standard error is not a terminal here
    out, err = capsys.readouterr()
    assert out == ""
    assert "Reading and checking the corpus …\n" in err
    assert re.search(r"step 3/3  epoch 1  loss [0-9.]+  lr .*  time left 0:0", err)

    train()
    assert "This training is already finished, at step 3. `fresh=True` starts again." in capsys.readouterr().err
