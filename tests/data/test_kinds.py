"""Pairs to learn from, in the languages asked for."""

from pathlib import Path

import pytest

from jumok.data.checking.check import check_pairs
from jumok.data.examples import Rejections
from jumok.data.kinds import PAIRS, reading_with
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.errors import InputError


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Three languages."""
    path = tmp_path / "a.tsv"
    path.write_text("de\ten\tko\neins\tone\t하나\nzwei\t\t둘\ndrei\tthree\t셋\n", encoding="utf-8")
    return path


def test_without_options_nothing_changes() -> None:
    assert reading_with(PAIRS, DEFAULT) is PAIRS


def test_the_languages_asked_for_are_read(table: Path) -> None:
    kind = reading_with(PAIRS, ReadingOptions(languages=("ko", "en")))
    assert (kind.name, kind.columns, kind.longest) == (PAIRS.name, PAIRS.columns, PAIRS.longest)
    rejections = Rejections()
    examples = list(kind.read([table], rejections))
    assert [example.inputs for example in examples] == [("하나", "one"), ("셋", "three")]
    assert rejections.examples == {"empty side": [f"{table}:3"]}
    with pytest.raises(InputError, match="has 3 columns, and it is not certain which of them are source and target"):
        next(PAIRS.read([table], Rejections()))


def test_the_check_reads_the_same_languages(table: Path) -> None:
    report = check_pairs([table], [table], options=ReadingOptions(languages=("de", "ko")))
    assert (report.pairs, report.usable) == (3, 3)
    assert report.target.script == "Hangul"
    kinds = [finding.kind for finding in report.findings]
    assert kinds == ["validation-in-training", "validation-sources-in-training"]


def test_of_two_text_files_the_languages_are_known_without_being_looked_for(tmp_path: Path) -> None:
    for name in ("a.en", "a.ko"):
        (tmp_path / name).write_text("one\n", encoding="utf-8")
    kind = reading_with(PAIRS, ReadingOptions(languages=("en", "ko")))
    [example] = kind.read([tmp_path / "a.en", tmp_path / "a.ko"], Rejections())
    assert example.inputs == ("one", "one")
