"""Corpora that are not what they should be, through the real commands."""

import json
from pathlib import Path

from commands import Jumok, sentences, train_arguments, write_corpus


def test_check_finds_a_fifth_of_the_pairs_swapped(jumok: Jumok, tmp_path: Path) -> None:
    write_corpus(tmp_path, [pair if n % 5 else (pair[1], pair[0]) for n, pair in enumerate(sentences())])
    ended = jumok("check", tmp_path / "a.en", tmp_path / "a.ko", "--json")
    assert ended.code == 3
    findings = {finding["kind"]: finding for finding in json.loads(ended.out)["findings"]}
    assert findings["swapped-pairs"]["count"] == 30
    places = [example["where"].rpartition("/")[2] for example in findings["swapped-pairs"]["examples"]]
    assert places == ["a.en:1", "a.en:6", "a.en:11"]


def test_a_corpus_half_of_which_cannot_be_used_costs_no_model_and_names_the_option(
    jumok: Jumok, tmp_path: Path
) -> None:
    write_corpus(tmp_path, [(english, korean if n % 2 else "") for n, (english, korean) in enumerate(sentences())])
    ended = jumok("train", "translator", *train_arguments(tmp_path), "--fresh", "--quiet")
    assert (ended.code, ended.out) == (2, "")
    assert "75 of 150 pairs cannot be used, more than a third:\n75 × empty side: " in ended.err
    assert "train on the rest with --skip-unusable." in ended.err
    assert not (tmp_path / "run").exists()
    assert "--skip-unusable" in jumok("check", tmp_path / "a.en", tmp_path / "a.ko").out
    assert jumok("train", "translator", *train_arguments(tmp_path), "--print-config").code == 2
    assert jumok("train", "translator", *train_arguments(tmp_path), "--print-config", "--skip-unusable").code == 0


def test_a_run_on_other_files_says_what_it_was_trained_on(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    write_corpus(tmp_path, sentences()[:100])
    (tmp_path / "a.en").rename(tmp_path / "b.en")
    (tmp_path / "a.ko").rename(tmp_path / "b.ko")
    arguments = [str(tmp_path / "b.en"), str(tmp_path / "b.ko"), *train_arguments(trained)[2:]]
    ended = jumok("train", "translator", *arguments, "--quiet")
    assert ended.code == 2
    assert "run: was trained on other data: a.en, a.ko (143 pairs, since 20" in ended.err
    assert "Now given: b.en, b.ko." in ended.err


def test_a_language_that_a_memory_does_not_have(jumok: Jumok, trained: Path, tmp_path: Path) -> None:
    units = "".join(
        f'<tu><tuv xml:lang="en-US"><seg>{english}</seg></tuv><tuv xml:lang="ko"><seg>{korean}</seg></tuv></tu>\n'
        for english, korean in sentences()
    )
    memory = tmp_path / "a.tmx"
    memory.write_text(f'<tmx version="1.4"><header/><body>\n{units}</body></tmx>', encoding="utf-8")
    run = ["-o", str(tmp_path / "run"), "--steps=1", "--quiet"]
    for command in (
        ["check", memory],
        ["train", "translator", memory, *run],
        ["evaluate", "-m", trained / "run", memory],
    ):
        ended = jumok(*command, "--languages", "en", "fr")
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f'jumok: {memory}: no language "fr"; there are: en-US, ko.\n'
