"""Texts with labels, from every kind of file."""

import gzip
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from jumok.data.examples import Rejections
from jumok.data.reading.formats import LOOKED_AT
from jumok.data.reading.labelled import read_labelled
from jumok.data.reading.passages import LONG_ENOUGH, read_passages
from jumok.errors import InputError

ROWS = [("good", "a fine film"), ("bad", "a dull film"), ("good", "so fresh"), ("bad", "so cold"), ("bad", "empty")]


def read(*paths: Path, known: Sequence[str] = ()) -> tuple[list[tuple[str, str]], Rejections]:
    rejections = Rejections()
    return [(each.label, each.inputs[0]) for each in read_labelled(paths, rejections, known)], rejections


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


@pytest.mark.parametrize("header", ["label\tSprüche", "Sterne\ttext"])
def test_a_header_of_which_one_name_is_known_is_no_class_beside_a_rare_one(tmp_path: Path, header: str) -> None:
    rows = [*ROWS, ("rare", "only one")]
    lines = [header] + [f"{label}\t{text}" for label, text in rows]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, rejections = read(tmp_path / "a.tsv")
    assert found == rows
    assert rejections.render() == f"1 × looks like a header: {tmp_path}/a.tsv:1"


def test_a_known_name_points_at_its_column(tmp_path: Path) -> None:
    lines = ["split\tlabel\tSprüche"] + [f"train\t{label}\t{text}" for label, text in ROWS]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read(tmp_path / "a.tsv")[0] == ROWS


def test_a_text_that_is_a_column_s_name_is_a_text(tmp_path: Path) -> None:
    rows = [("good", "review"), *ROWS]
    (tmp_path / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    assert read(tmp_path / "a.tsv")[0] == rows


def test_a_first_text_of_a_known_class_is_no_header(tmp_path: Path) -> None:
    rows = [("great", "the only one"), *ROWS]
    (tmp_path / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    assert read(tmp_path / "a.tsv", known=["great", "good", "bad"])[0] == rows


def test_a_first_text_whose_class_comes_again_much_later_is_no_header(tmp_path: Path) -> None:
    rows = [("rare", "at first"), *ROWS * LOOKED_AT, ("rare", "at last"), *ROWS]
    (tmp_path / "a.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in rows), encoding="utf-8")
    found, rejections = read(tmp_path / "a.tsv")
    assert sorted(found) == sorted(rows)
    assert not rejections.total


def test_the_name_of_a_class_is_one_line_without_tabs(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('label,text\n"very\ngood",x\n"not\tgood ",y\nbad,z\n', encoding="utf-8")
    assert read(tmp_path / "a.csv")[0] == [("very good", "x"), ("not good", "y"), ("bad", "z")]
    (tmp_path / "data" / "so\tso").mkdir(parents=True)
    (tmp_path / "data" / "so\tso" / "1.txt").write_text("text", encoding="utf-8")
    assert read(tmp_path / "data")[0] == [("so so", "text")]


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


def test_an_array_in_a_json_file_is_called_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"text": "x", "label": "a"}, {"text": "y", "label": "b"}]', encoding="utf-8")
    with pytest.raises(InputError, match=r"1 × not a JSON object.*one object a line is wanted: .*a\.json:1"):
        read(tmp_path / "a.json")


def test_numbers_and_truth_as_labels(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"text": "x", "label": 1}\n{"text": "y", "label": false}\n', encoding="utf-8")
    assert read(tmp_path / "a.jsonl")[0] == [("1", "x"), ("false", "y")]


def test_a_label_that_cannot_be_one_is_called_what_it_is(tmp_path: Path) -> None:
    labels = ["1.0", '["a"]', "null", '"a\\u0000"', '"\\ud800"', '" "', '"fine"']
    lines = "".join(f'{{"text": "x", "label": {label}}}\n' for label in labels) + '{"label": "a"}\n'
    (tmp_path / "a.jsonl").write_text(lines, encoding="utf-8")
    found, rejections = read(tmp_path / "a.jsonl")
    assert found == [("fine", "x")]
    assert rejections.counts == {
        "a label that is neither text nor an integer": 2,
        "no label": 2,
        "label: NUL character": 1,
        "label: not valid UTF-8": 1,
        "no text": 1,
    }


def test_a_directory_for_each_class(tmp_path: Path) -> None:
    for number, (label, text) in enumerate(ROWS):
        (tmp_path / "data" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / label / f"{number}.txt").write_text(text, encoding="utf-8")
    assert sorted(read(tmp_path / "data")[0]) == sorted(ROWS)
    (tmp_path / "nothing").mkdir()
    with pytest.raises(InputError, match="contains no directories"):
        read(tmp_path / "nothing")


def test_a_class_without_texts_is_mentioned(tmp_path: Path) -> None:
    for name in ("empty", "full"):
        (tmp_path / name).mkdir()
    (tmp_path / "full" / "1.txt").write_text("so fresh", encoding="utf-8")
    found, rejections = read(tmp_path)
    assert found == [("full", "so fresh")]
    assert rejections.examples == {"a directory of a class without files": [str(tmp_path / "empty")]}
    assert rejections.lost == 0


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode")
def test_names_of_files_and_classes_that_are_not_utf_8_are_escaped(tmp_path: Path) -> None:
    korean = os.fsdecode("가".encode("cp949"))
    (tmp_path / korean).mkdir()
    (tmp_path / korean / f"{korean}.txt").write_text("so fresh", encoding="utf-8")
    [example] = read_labelled([tmp_path], Rejections())
    assert (example.label, example.where) == ("\\udcb0\\udca1", f"{tmp_path}/\\udcb0\\udca1/\\udcb0\\udca1.txt:1")


def test_what_cannot_be_used_is_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes(b"good\tx y\n\tno label\nbad\t\nbad\t\xff\xfe\nbad\n" + b"bad\tfine\ngood\tz\n")
    found, rejections = read(tmp_path / "a.tsv")
    assert found == [("good", "x y"), ("bad", "fine"), ("good", "z")]
    reasons = rejections.to_json()["reasons"]
    assert {reason: each["examples"] for reason, each in reasons.items()} == {
        "no label": [f"{tmp_path}/a.tsv:2"],
        "empty text": [f"{tmp_path}/a.tsv:3"],
        "not valid UTF-8": [f"{tmp_path}/a.tsv:4"],
        "another number of columns than most lines have": [f"{tmp_path}/a.tsv:5"],
    }


@pytest.mark.parametrize("place", [0, 3, 5])
@pytest.mark.parametrize("label_first", [True, False])
@pytest.mark.parametrize(("name", "separator"), [("a.tsv", "\t"), ("a.csv", ",")])
def test_a_text_with_a_tab_or_comma_moves_no_columns_and_is_not_cut(
    tmp_path: Path, name: str, separator: str, label_first: bool, place: int
) -> None:
    rows = [[*row] if label_first else [*row[::-1]] for row in ROWS]
    rows.insert(place, ["good", "not bad", "but long"] if label_first else ["not bad", "but long", "good"])
    (tmp_path / name).write_text("".join(separator.join(row) + "\n" for row in rows), encoding="utf-8")
    found, rejections = read(tmp_path / name)
    assert found == ROWS
    assert rejections.examples == {"another number of columns than most lines have": [f"{tmp_path}/{name}:{place + 1}"]}


@pytest.mark.parametrize("row", ["good,not bad, but long,a", "good,cut by a line end"])
def test_a_row_must_have_the_columns_the_header_names(tmp_path: Path, row: str) -> None:
    lines = ["label,text,source"] + [f"{label},{text},a" for label, text in ROWS]
    (tmp_path / "a.csv").write_text("\n".join([*lines, row]) + "\n", encoding="utf-8")
    found, rejections = read(tmp_path / "a.csv")
    assert found == ROWS
    assert rejections.examples == {"another number of columns than the header": [f"{tmp_path}/a.csv:7"]}


@pytest.mark.parametrize("header", ["label,text", "label,text,", "stars,tweet,,"])
def test_empty_cells_and_empty_lines_at_the_end_are_no_columns(tmp_path: Path, header: str) -> None:
    rows = [*ROWS, *ROWS]
    lines = [header] + [f"{label},{text},, " for label, text in rows] + ["bad,cut,off", "", "bad,fine"]
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, rejections = read(tmp_path / "a.csv")
    assert found == [*rows, ("bad", "fine")]
    reasons = {where.rpartition(":")[2]: why for why, places in rejections.examples.items() for where in places}
    assert reasons["12"].startswith("another number of columns")
    assert reasons["13"] == "empty text"


def test_a_column_that_few_lines_fill_is_one_if_it_has_a_name(tmp_path: Path) -> None:
    rows = [*ROWS, ("bad", "the last")]
    lines = ["Urteil\tSatz\tNotiz"] + [f"{label}\t{text}\t" for label, text in ROWS] + ["bad\tthe last\tread twice"]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read(tmp_path / "a.tsv")[0] == rows


@pytest.mark.parametrize("header", [[], ["Quelle\tUrteil\tSatz"]])
def test_a_column_that_is_the_same_in_every_row_is_not_the_label(tmp_path: Path, header: list[str]) -> None:
    lines = header + [f"imdb\t{label}\t{text}" for label, text in ROWS]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read(tmp_path / "a.tsv")[0] == ROWS


@pytest.mark.parametrize("form", ["{label}\t{text}", "{n}\t{label}\t{text}", "{label}\t{text}\t{source}"])
@pytest.mark.parametrize("has_header", [True, False])
def test_one_class_is_still_seen_as_the_label(tmp_path: Path, form: str, has_header: bool) -> None:
    rows = [("good", text) for _, text in [*ROWS, ROWS[0]]]
    lines = [form.format(n="Nummer", label="Urteil", text="Satz", source="Quelle")] if has_header else []
    lines += [form.format(n=n, label=label, text=text, source="imdb") for n, (label, text) in enumerate(rows)]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert read(tmp_path / "a.tsv")[0] == rows


def test_known_labels_point_at_a_column_of_one_class(tmp_path: Path) -> None:
    lines = [f"{'ab'[n % 2]}\tgood\t{text}" for n, (_, text) in enumerate(ROWS)]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert {label for label, _ in read(tmp_path / "a.tsv", known=["good", "bad"])[0]} == {"good"}


def test_a_name_in_a_header_that_lacks_a_column_points_nowhere(tmp_path: Path) -> None:
    lines = ["label\ttweet"] + [f"{n}\t{label}\t{text}" for n, (label, text) in enumerate(ROWS)]
    (tmp_path / "a.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    found, rejections = read(tmp_path / "a.tsv")
    assert found == ROWS
    assert rejections.total == 1


def test_lines_of_which_most_have_no_number_of_columns_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("good,so fresh\nbad,dull, and long\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"its lines have 2, 3 columns.*put texts with commas in quotes"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("content", ["", "\n\n", "just a text\nand another\n"])
def test_a_file_without_labels_is_an_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.tsv").write_text(content, encoding="utf-8")
    with pytest.raises(InputError):
        read(tmp_path / "a.tsv")


def passages(path: Path) -> list[str]:
    return [each.inputs[0] for each in read_passages([path], Rejections())]


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
    with pytest.raises(InputError, match="contains no text"):
        passages(tmp_path / "a.txt")
