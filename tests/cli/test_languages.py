"""--languages: two of the languages that a file names."""

import json
from pathlib import Path

import pytest
from commands import SMALL, Jumok, sentences


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    """A translation memory in English, German (always the same) and Korean."""
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{english}</seg></tuv><tuv xml:lang="de"><seg>Hund</seg></tuv>'
        f'<tuv xml:lang="ko"><seg>{korean}</seg></tuv></tu>\n'
        for english, korean in sentences()
    )
    path = tmp_path / "memory.tmx"
    path.write_text(f"<tmx><body>{units}</body></tmx>", encoding="utf-8")
    return path


def test_a_file_with_three_languages_is_refused_and_the_option_named(jumok: Jumok, memory: Path) -> None:
    ended = jumok("check", memory)
    assert ended.code == 2
    assert "3 languages (en, de, ko); say which two are meant: --languages en de" in ended.err


def test_check_reads_the_two_asked_for(jumok: Jumok, memory: Path) -> None:
    ended = jumok("check", memory, "--languages", "en", "ko", "--json")
    assert (ended.code, json.loads(ended.out)["usable"]) == (0, len(sentences()))
    labels = jumok("check", memory, "--languages", "en", "de", "--json")
    assert [finding["kind"] for finding in json.loads(labels.out)["findings"]] == ["labels"]


def test_a_translator_is_trained_on_the_two_asked_for(jumok: Jumok, memory: Path, tmp_path: Path) -> None:
    arguments = [memory, "--languages", "ko", "en", "-o", tmp_path / "run", "--steps=1", *SMALL]
    ended = jumok("train", "translator", *arguments, "--valid", memory)
    assert ended.code == 0, ended.err
    held_out = (tmp_path / "run" / "store" / "valid.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(held_out[0])["inputs"] == list(reversed(sentences()[0]))


def test_what_may_not_be_learned_from_is_refused_before_training(jumok: Jumok, memory: Path, tmp_path: Path) -> None:
    ended = jumok("train", "translator", memory, "--languages", "en", "de", "-o", tmp_path / "run", "--steps=1")
    assert ended.code == 2
    assert "looks like labels" in ended.err
    assert not (tmp_path / "run").exists()


def test_score_and_evaluate_read_the_two_asked_for(jumok: Jumok, memory: Path, trained: Path) -> None:
    ended = jumok("score", "-m", trained / "run", memory, "--languages", "en", "ko")
    assert ended.out == jumok("score", "-m", trained / "run", trained / "a.en", trained / "a.ko").out
    measured = jumok("evaluate", "-m", trained / "run", memory, "--languages", "en", "ko", "--beam=1", "--json")
    assert json.loads(measured.out)["sentences"] == len(sentences())


@pytest.mark.parametrize("command", [["check"], ["score", "-m", "run"]])
def test_two_text_files_name_no_languages(
    jumok: Jumok, trained: Path, command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(trained)
    ended = jumok(*command, "a.en", "a.ko", "--languages", "en", "ko")
    assert ended.code == 2
    assert "a.en, a.ko: languages can be chosen only in a file that names them" in ended.err
