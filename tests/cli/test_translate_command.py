"""jumok translate."""

import io
import json
import os
import pty
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from commands import Jumok, sentences, start

from jumok.cli.app import _interrupt
from jumok.cli.options import say
from jumok.cli.progress import Progress

SENTENCE = "The small cat sees the dog."


def test_lines_out_are_lines_in_and_empty_lines_stay_empty(jumok: Jumok, trained: Path) -> None:
    lines = ["", SENTENCE, "", "   ", "The\u2028cat\x85sees\x0bit", "\t", SENTENCE, ""]
    ended = jumok("translate", "-m", trained / "run", stdin="\n".join(lines) + "\n")
    out = ended.out.split("\n")
    assert (ended.code, len(out), out[-1]) == (0, len(lines) + 1, "")
    assert [bool(line.strip()) for line in out[:-1]] == [bool(line.strip()) for line in lines]
    assert out[1] == out[6]


def test_windows_line_ends_a_byte_order_mark_and_no_last_line_end_change_nothing(jumok: Jumok, trained: Path) -> None:
    plain = jumok("translate", "-m", trained / "run", stdin=f"{SENTENCE}\n{SENTENCE}\n")
    other = jumok("translate", "-m", trained / "run", stdin=f"\ufeff{SENTENCE}\r\n{SENTENCE}")
    assert other.out == plain.out


def test_nothing_in_gives_nothing_out(jumok: Jumok, trained: Path) -> None:
    ended = jumok("translate", "-m", trained / "run")
    assert (ended.code, ended.out, ended.err) == (0, "", "")


def test_several_files_come_one_after_the_other(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).write_text(f"{name}\n\n", encoding="utf-8")
    together = jumok("translate", "-m", trained / "run", tmp_path / "one", tmp_path / "two")
    apart = [jumok("translate", "-m", trained / "run", tmp_path / name).out for name in ("one", "two")]
    assert together.out == "".join(apart)


def test_columns_are_always_as_many(jumok: Jumok, trained: Path) -> None:
    arguments = ["--n-best", "3", "--scores", "--alignment"]
    ended = jumok("translate", "-m", trained / "run", *arguments, stdin=f"{SENTENCE}\n\na\tb\n")
    rows = [line.split("\t") for line in ended.out.splitlines()]
    assert [len(row) for row in rows] == [7, 7, 7]
    scores = [float(score) for score in rows[0][1:6:2]]
    assert scores == sorted(scores, reverse=True)
    words, translated = SENTENCE.split(), rows[0][0].split()
    for pair in rows[0][6].split():
        source, target = map(int, pair.split("-"))
        assert source < len(words)
        assert target < len(translated)


def test_json_says_everything_a_line_each(jumok: Jumok, trained: Path) -> None:
    ended = jumok("translate", "-m", trained / "run", "--json", "--n-best=2", "--alignment", stdin=f"{SENTENCE}\n\n")
    first, second = map(json.loads, ended.out.splitlines())
    plain = jumok("translate", "-m", trained / "run", stdin=f"{SENTENCE}\n")
    assert (first["source"], first["text"]) == (SENTENCE, plain.out.rstrip("\n"))
    assert len(first["alternatives"]) == 1
    assert first["alignment"]["target"] == first["tokens"]
    assert (second["source"], second["text"], second["segments"]) == ("", "", 0)


def test_sentences_of_a_line_and_lines_of_a_paragraph(jumok: Jumok, trained: Path) -> None:
    def translate(stdin: str, *options: str) -> list[str]:
        return jumok("translate", "-m", trained / "run", *options, stdin=stdin).out.splitlines()

    [alone] = translate(f"{SENTENCE}\n")
    assert translate(f"{SENTENCE}. {SENTENCE}\n", "--json", "--split-sentences")[0].count('"source"') == 3
    [first, second] = translate(f"{SENTENCE}.\n{SENTENCE}\n")
    assert translate(f"{SENTENCE}. {SENTENCE}\n", "--split-sentences") == [f"{first} {second}"]
    begin, _, end = SENTENCE.partition(" ")
    assert translate(f"{begin}\n{end}\n\n{SENTENCE}\n", "--paragraphs") == [alone, "", alone]


def test_doubtful_lines_are_named_with_warn_and_marked_in_json(jumok: Jumok, trained: Path) -> None:
    stdin = f"{SENTENCE}\n\n{SENTENCE} 😀😀😀😀\n"
    for engine in ("torch", "ctranslate2"):
        arguments = ["translate", "-m", trained / "run", "--engine", engine]
        ended = jumok(*arguments, "--warn", stdin=stdin)
        assert ended.err == f"jumok: line 3: low confidence, the translation may be wrong: {SENTENCE} 😀😀😀😀\n"
        marks = [
            json.loads(line)["low_confidence"] for line in jumok(*arguments, "--json", stdin=stdin).out.splitlines()
        ]
        assert marks == [False, None, True]
    assert jumok(*arguments, "--warn", "--prefix", "큰", stdin=stdin).code == 2


def test_a_prefix_begins_every_translation(jumok: Jumok, trained: Path) -> None:
    ended = jumok("translate", "-m", trained / "run", "--prefix", "큰 새", stdin=f"{SENTENCE}\nThe red dog\n")
    assert all(line.startswith("큰 새") for line in ended.out.splitlines())


def test_what_is_drawn_follows_from_the_seed(jumok: Jumok, trained: Path) -> None:
    def draw(seed: int) -> str:
        arguments = ["--temperature=2", "--n-best=4", f"--seed={seed}"]
        return jumok("translate", "-m", trained / "run", *arguments, stdin=f"{SENTENCE}\n").out

    assert draw(1) == draw(1) != draw(2)


def test_out_appears_when_it_is_complete(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(f"{SENTENCE}\n".encode())
    assert jumok("translate", "-m", trained / "run", tmp_path / "in", "-o", tmp_path / "out").code == 0
    expected = jumok("translate", "-m", trained / "run", stdin=f"{SENTENCE}\n").out
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected
    assert not (tmp_path / "out.part").exists()


def test_a_line_that_is_no_text_is_named_and_what_came_before_is_kept(
    jumok: Jumok, trained: Path, tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(f"{SENTENCE}\n".encode() + b"\xff\xfe\xfa\n")
    stop = ("--on-error", "stop")
    ended = jumok("translate", "-m", trained / "run", *stop, tmp_path / "in", "-o", tmp_path / "out")
    assert ended.code == 2
    assert f"{tmp_path / 'in'}:2: not valid UTF-8" in ended.err
    assert "or give --on-error skip" in ended.err
    assert not (tmp_path / "out").exists()
    assert len((tmp_path / "out.part").read_text(encoding="utf-8").splitlines()) == 1
    assert f"incomplete output was kept in {tmp_path / 'out.part'}: 1 line\n" in ended.err


def test_invalid_bytes_are_replaced_and_their_lines_named(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    lines = [SENTENCE.encode(), b"The \xff cat", b"a\0b", *[b"\xfe"] * 4, SENTENCE.encode()]
    (tmp_path / "in").write_bytes(b"\n".join(lines))
    ended = jumok("translate", "-m", trained / "run", "--json", tmp_path / "in")
    assert ended.code == 0
    sources = [json.loads(line)["source"] for line in ended.out.splitlines()]
    assert sources == [SENTENCE, "The \ufffd cat", "a\ufffdb", *["\ufffd"] * 4, SENTENCE]
    warnings = [line for line in ended.err.splitlines() if "warning" in line]
    for number, line in ((2, "not valid UTF-8"), (3, "NUL character"), (4, "not valid UTF-8")):
        assert f"jumok: warning: {tmp_path / 'in'}:{number}: {line}; invalid bytes were replaced by U+FFFD" in warnings
    assert warnings[3:] == ["jumok: warning: 3 more lines of the same kind: invalid bytes were replaced by U+FFFD"]


def test_another_encoding_is_read_if_it_is_named(jumok: Jumok, trained: Path) -> None:
    arguments = ["translate", "-m", trained / "run", "--json"]
    read = jumok(*arguments, "--encoding", "cp949", stdin="작은 고양이\n".encode("cp949"))
    assert (read.code, json.loads(read.out)["source"], "warning" in read.err) == (0, "작은 고양이", False)
    assert json.loads(jumok(*arguments, stdin="작은\n".encode("utf-16")).out)["source"] == "작은"
    for name in ("cp94x", "zlib"):
        ended = jumok(*arguments, "--encoding", name)
        assert (ended.code, f"There is no encoding '{name}'" in ended.err) == (2, True)
    wide = jumok(*arguments, "--encoding", "UTF-16LE", stdin="작은 상상\n".encode("utf-16-le"))
    assert json.loads(wide.out)["source"] == "작은 상상"


def test_a_skipped_line_has_an_empty_output(jumok: Jumok, trained: Path) -> None:
    content = SENTENCE.encode() + b"\n\xff\n" + b"x" * 1_000_001 + b"\n" + SENTENCE.encode()
    arguments = ["translate", "-m", trained / "run", "--on-error", "skip"]
    ended = jumok(*arguments, stdin=content)
    first, *skipped, last = ended.out.splitlines()
    assert (ended.code, skipped, first) == (0, ["", ""], last)
    assert first
    assert "standard input:2: not valid UTF-8; skipped, its output is empty" in ended.err
    assert "standard input:3: line longer than 1,000,000 bytes; skipped" in ended.err
    in_json = [json.loads(line) for line in jumok(*arguments, "--json", stdin=content).out.splitlines()]
    assert [values["source"] for values in in_json] == [SENTENCE, None, None, SENTENCE]
    assert jumok(*arguments, "--paragraphs", stdin=b"\xff\n").out == ""


def test_a_1_mb_line_is_a_clear_error(jumok: Jumok, trained: Path) -> None:
    ended = jumok("translate", "-m", trained / "run", stdin="x" * 1_000_001 + "\n")
    assert ended.code == 2
    assert "standard input:1: line longer than 1,000,000 bytes" in ended.err


def test_an_unwritable_out_is_a_clear_error(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    ended = jumok("translate", "-m", trained / "run", "-o", tmp_path / "no" / "out", stdin=f"{SENTENCE}\n")
    assert ended.code == 2
    assert f"{tmp_path / 'no' / 'out'}: cannot be written" in ended.err


def test_a_directory_for_out_is_refused_before_anything_is_done(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    for model in (trained / "run", tmp_path / "nowhere"):
        ended = jumok("translate", "-m", model, "-o", tmp_path, stdin=f"{SENTENCE}\n")
        assert ended.code == 2
        assert f"{tmp_path}: cannot be written (it is a directory)" in ended.err
    assert not list(tmp_path.iterdir())


def test_words_of_an_alignment_are_those_between_white_space(jumok: Jumok, trained: Path) -> None:
    text = "The  small\tcat sees\u3000the dog."
    ended = jumok("translate", "-m", trained / "run", "--alignment", stdin=f"{text}\n")
    output, alignment = ended.out.rstrip("\n").split("\t")
    pairs = [tuple(map(int, pair.split("-"))) for pair in alignment.split()]
    assert {source for source, _ in pairs} <= set(range(len(text.split())))
    assert {target for _, target in pairs} <= set(range(len(output.split())))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engine", "torch", "--fast"], "--fast needs CTranslate2"),
        (["--engine", "torhc"], 'Did you mean "torch"?'),
        (["--beam", "2", "--n-best", "3"], "n_best is 3"),
        (["--beam", "0"], "beam is 0"),
        (["--length-penalty", "-1"], "length_penalty"),
        (["--seed", "1"], "--seed has no effect without --temperature"),
        (["--temperature", "-1"], "temperature"),
        (["--top-p", "0"], "top_p"),
        (["--beam", "4", "--temperature", "0.5"], "--beam has no effect with --temperature"),
        (["--beam", "1", "--top-k", "5"], "--beam has no effect with --temperature, --top-k"),
    ],
)
def test_wrong_options_are_explained(jumok: Jumok, trained: Path, arguments: list[str], message: str) -> None:
    ended = jumok("translate", "-m", trained / "run", *arguments, stdin=f"{SENTENCE}\n")
    assert (ended.code, ended.out) == (2, "")
    assert message in ended.err
    assert ended.err.count("\n") <= 2


@pytest.mark.parametrize("file", ["weights.safetensors", "config.json", "tokenizer.model", "card.json"])
def test_a_damaged_model_directory_is_refused(jumok: Jumok, trained: Path, tmp_path: Path, file: str) -> None:
    model = Path(shutil.copytree(trained / "run" / "model", tmp_path / "model"))
    content = bytearray((model / file).read_bytes())
    content[len(content) // 2] ^= 1
    (model / file).write_bytes(content)
    ended = jumok("translate", "-m", model, stdin=f"{SENTENCE}\n")
    assert (ended.code, ended.out) == (2, "")
    assert f"{model / file}: is damaged" in ended.err


@pytest.mark.parametrize(("where", "message"), [("nowhere", "no such model directory"), (".", "is not a model")])
def test_what_is_no_model_is_named(jumok: Jumok, tmp_path: Path, where: str, message: str) -> None:
    ended = jumok("translate", "-m", tmp_path / where)
    assert ended.code == 2
    assert message in ended.err


def test_an_answer_comes_before_the_next_question_and_ctrl_c_ends_it(trained: Path) -> None:
    process = start("translate", "-m", "run", "--beam=1", cwd=trained)
    assert process.stdin is not None
    assert process.stdout is not None
    for question in (SENTENCE, "The red dog"):
        process.stdin.write(question + "\n")
        process.stdin.flush()
        assert process.stdout.readline().strip()
    time.sleep(0.1)  # it waits for the third
    process.send_signal(signal.SIGINT)
    process.wait()
    assert process.returncode == 130
    assert process.stderr is not None
    assert "Fatal" not in (said := process.stderr.read())
    assert "Traceback" not in said
    for pipe in (process.stdin, process.stdout, process.stderr):
        pipe.close()


def test_ctrl_c_keeps_what_is_done_and_progress_is_shown(trained: Path, tmp_path: Path) -> None:
    lines = [source for source, _ in sentences()] * 400
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    terminal, standard_error = pty.openpty()
    arguments = ("translate", "-m", trained / "run", tmp_path / "in", "-o", tmp_path / "out")
    process = start(*arguments, cwd=trained, stderr=standard_error)
    os.close(standard_error)
    said = ""
    while "left" not in said:  # lines are written, and their total is known
        said += os.read(terminal, 4096).decode()
    assert "of 60,000 lines  " in said
    assert "sentences/s" in said
    process.send_signal(signal.SIGINT)
    assert process.wait() == 130
    with suppress(OSError):  # Linux: the end of a terminal is an error
        while part := os.read(terminal, 4096):
            said += part.decode()
    os.close(terminal)
    assert "Traceback" not in said
    written = (tmp_path / "out.part").read_text(encoding="utf-8").splitlines()
    assert f"incomplete output was kept in {tmp_path / 'out.part'}: {len(written):,} lines" in said
    assert 64 <= len(written) < len(lines) / 2  # it did not go on to the end of the file
    assert not (tmp_path / "out").exists()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        pipe.close()


def test_a_second_ctrl_c_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended == [130]


@pytest.mark.parametrize(
    ("quiet", "terminal", "shown"), [(False, True, True), (True, True, False), (False, False, False)]
)
def test_progress_is_for_people_who_want_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quiet: bool, terminal: bool, shown: bool
) -> None:
    stderr = io.StringIO()
    monkeypatch.setattr(stderr, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    with Progress([], tmp_path / "out", quiet=quiet) as progress:
        progress.add(1, 2)
        say("a message")
    assert ("1 line " in stderr.getvalue()) is shown
    assert "a message\n" in stderr.getvalue()
    assert stderr.getvalue().endswith("\r" if shown else "a message\n")


def test_an_interrupt_says_how_many_lines_went_to_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    with suppress(KeyboardInterrupt), Progress([], None, quiet=True) as progress:
        progress.add(1200, 1300)
        raise KeyboardInterrupt
    assert capsys.readouterr().err == "jumok: interrupted after 1,200 lines\n"


def test_it_ends_quietly_when_nobody_reads_on(trained: Path) -> None:
    process = start("translate", "-m", "run", "--beam=1", "--no-repeat-ngram=2", cwd=trained)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdout.close()
    process.stdin.write("".join(f"{source}\n" for source, _ in sentences()))
    process.stdin.close()
    process.wait()
    assert process.stderr is not None
    with process.stderr as errors:
        assert "Traceback" not in errors.read()
    assert process.returncode == -signal.SIGPIPE
