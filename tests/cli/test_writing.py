"""Where output goes, and what is said when it cannot go there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SOURCE

from jumok.cli.panel import print_lines
from jumok.cli.writing import output_to, require_file, standard_output
from jumok.display.lines import PlainLines
from jumok.errors import InputError, WriteError


def test_a_full_disk_is_an_error_once_and_what_is_left_goes_nowhere() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        out = standard_output(full)
        print("a line", file=out)
        with pytest.raises(WriteError, match=r"standard output: cannot be written \(No space left on device\)"):
            out.flush()
        print("another", file=out)
        out.flush()


def test_more_than_a_buffer_fails_the_same_way() -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        out = standard_output(full)
        with pytest.raises(WriteError):
            print("x" * 1_000_000, file=out, flush=True)
        out.flush()


def test_a_closed_pipe_is_left_to_those_who_know_what_it_means() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w", encoding="utf-8") as closed:
        out = standard_output(closed)
        with pytest.raises(BrokenPipeError):
            print("a line", file=out, flush=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), writing)  # else closing it would fail again
        out.flush()


def test_letters_are_utf_8_whatever_the_locale_says(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as file:
        out = standard_output(file)
        print("고양이 \ud800", file=out, flush=True)
    assert (tmp_path / "out").read_bytes() == "고양이 \\ud800\n".encode()


def test_a_training_goes_on_when_its_log_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", standard_output(full))
        watcher = PlainLines(print_lines)
        for _ in range(2):
            watcher({"event": "resumed", "step": 5, "changed": {}, "losses": [], "validations": []})
    said = capfd.readouterr().err
    assert said.count("The training continues without this output.") == 1


def test_a_directory_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot be written \(it is a directory\)"):
        require_file(tmp_path)
    with pytest.raises(InputError, match=r"cannot be written \(there is no directory .*nowhere\)"):
        require_file(tmp_path / "nowhere" / "out")
    require_file(tmp_path / "out")
    require_file(None)
    with pytest.raises(InputError, match="it is a directory"), output_to(Path(".")):
        pass


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with output_to(pipe) as file:
        file.write("a line\n")
    assert os.read(reader, 100) == b"a line\n"
    os.close(reader)
    assert pipe.is_fifo()


@pytest.mark.parametrize(
    "command",
    [
        ["translate", "-m", "run", "--beam=1", "a.en"],
        ["score", "-m", "run", "a.en", "a.ko"],
        ["check", "a.en", "a.ko"],
        ["info", "-m", "run"],
        ["--help"],
    ],
    ids=lambda command: command[0],
)
def test_a_full_standard_output_is_one_line_without_a_traceback(trained: Path, command: list[str]) -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with open("/dev/full", "wb") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "jumok", *command],
            cwd=trained,
            env=environment,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            check=False,
        )
    assert ended.returncode == 2, ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("jumok: standard output: cannot be written (No space left on device).")
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
