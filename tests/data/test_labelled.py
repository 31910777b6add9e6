"""Texts with labels, from every kind of file."""

import gzip
import json
from pathlib import Path

import pytest

from jumok.data.corpora import Rejections
from jumok.data.labelled import read_labelled
from jumok.data.passages import LONG_ENOUGH, read_passages
from jumok.errors import InputError

ROWS = [("good", "a fine film"), ("bad", "a dull film"), ("good", "so fresh"), ("bad", "so cold"), ("bad", "empty")]


def read(*paths: Path) -> tuple[list[tuple[str, str]], Rejections]:
    rejections = Rejections()
    return [(each.label, each.texts[0]) for each in read_labelled(paths, rejections)], rejections


def test_tsv_with_the_label_first_or_last(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in ROWS), encoding="utf-8")
    (tmp_path / "b.tsv").write_text("".join(f"{text}\t{label}\n" for label, text in ROWS), encoding="utf-8")
    assert read(tmp_path / "a.tsv")[0] == ROWS
    assert read(tmp_path / "b.tsv")[0] == ROWS


def test_columns_by_their_names(tmp_path: Path) -> None:
    lines = ["id\tdocument\tlabel"] + [f"{n}\t{text}\t{label}" for n, (label, text) in enumerate(ROWS)]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read(tmp_path / "a.tsv")[0] == ROWS


def test_an_unknown_header_is_seen_and_counted(tmp_path: Path) -> None:
    lines = ["Bewertung\tBesprechung"] + [f"{label}\t{text}" for label, text in ROWS]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, rejections = read(tmp_path / "a.tsv")
    assert found == ROWS
    assert "a header" in rejections.render()


def test_csv_with_quotes_commas_and_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('label,text\ngood,"a fine, ""fresh""\nfilm"\nbad,dull\n', encoding="utf-8")
    assert read(tmp_path / "a.csv")[0] == [("good", 'a fine, "fresh"\nfilm'), ("bad", "dull")]


def test_jsonl_and_compression(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"review": text, "sentiment": label}) + "\n" for label, text in ROWS)
    with gzip.open(tmp_path / "a.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(lines + '{"text": "no label here"}\n' + "not json\n")
    found, rejections = read(tmp_path / "a.jsonl.gz")
    assert found == ROWS
    assert rejections.total == 2


def test_numbers_and_truth_as_labels(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x", "label": 1}\n{"text": "y", "label": false}\n', encoding="utf-8")
    assert read(tmp_path / "a.jsonl")[0] == [("1", "x"), ("false", "y")]


def test_a_directory_for_each_class(tmp_path: Path) -> None:
    for number, (label, text) in enumerate(ROWS):
        (tmp_path / "data" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / label / f"{number}.txt").write_text(text, encoding="utf-8")
    assert sorted(read(tmp_path / "data")[0]) == sorted(ROWS)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="has no directories in it"):
        read(tmp_path / "nothing")


def test_what_cannot_be_used_is_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"good\tx y\n\tno label\nbad\t\nbad\t\xff\xfe\nbad\n" + b"bad\tfine\ngood\tz\n")
    found, rejections = read(tmp_path / "a.tsv")
    assert found == [("good", "x y"), ("bad", "fine"), ("good", "z")]
    reasons = rejections.to_json()["reasons"]
    assert {reason: each["examples"] for reason, each in reasons.items()} == {
        "no label": [f"{tmp_path}/a.tsv:2"],
        "empty text": [f"{tmp_path}/a.tsv:3"],
        "not valid UTF-8": [f"{tmp_path}/a.tsv:4"],
        "fewer columns than needed": [f"{tmp_path}/a.tsv:5"],
    }


@pytest.mark.parametrize("content", ["", "\n\n", "just a text\nand another\n"])
def test_a_file_without_labels_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(InputError):
        read(tmp_path / "a.tsv")


def passages(path: Path) -> list[str]:
    return [each.texts[0] for each in read_passages([path], Rejections())]


def test_a_blank_line_ends_a_passage(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n\n\nthree\n", encoding="utf-8")
    assert passages(tmp_path / "a.txt") == ["one\ntwo", "three"]


def test_long_text_is_cut_and_nothing_is_lost(tmp_path: Path) -> None:
    lines = [f"line {n} of a text without blank lines" for n in range(200)]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    found = passages(tmp_path / "a.txt")
    assert "\n".join(found) == "\n".join(lines)
    assert max(map(len, found)) < 2 * LONG_ENOUGH
    (tmp_path / "b.txt").write_text("가" * 10_000, encoding="utf-8")
    assert "".join(passages(tmp_path / "b.txt")) == "가" * 10_000


def test_a_text_file_without_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("\n \n", encoding="utf-8")
    with pytest.raises(InputError, match="there is no text in it"):
        passages(tmp_path / "a.txt")
