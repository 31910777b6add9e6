"""An option that applies to none of the files is refused; one that applies to some of them is used there."""

from pathlib import Path
from typing import Any

import pytest

from jumok.data.reading.lines import byte_lines
from jumok.data.reading.options import reading_options
from jumok.data.reading.unused_options import refuse_unused_for_pairs, refuse_unused_options
from jumok.errors import ConfigError, InputError

APPLY = {  # the options for each format, of those below
    "a.xlsx": {"columns", "sheet"},
    "a.XLSX.gz": {"columns", "sheet"},
    "a.csv": {"columns", "separator", "encoding"},
    "a.tsv.zst": {"columns", "separator", "encoding"},
    "a.jsonl": {"columns", "encoding"},
    "a.tmx": {"columns", "encoding"},
    "-": {"columns", "separator", "encoding"},  # one file of pairs is a table
}
VALUES: dict[str, Any] = {"columns": ("A", "B"), "separator": ";", "sheet": "1", "encoding": "cp1252"}


@pytest.mark.parametrize("file", APPLY)
@pytest.mark.parametrize("name", VALUES)
def test_an_option_is_refused_exactly_if_the_format_of_the_file_has_no_use_for_it(file: str, name: str) -> None:
    options = reading_options(**{name: VALUES[name]})
    if name in APPLY[file]:
        refuse_unused_for_pairs(options, [file])
    else:
        with pytest.raises(ConfigError, match=f"`{name}=` has no effect: .* is not an? "):
            refuse_unused_for_pairs(options, [file])


def test_two_text_files_and_a_plain_text_have_an_encoding_and_nothing_else(tmp_path: Path) -> None:
    for name, value in VALUES.items():
        options = reading_options(**{name: value})
        if name == "encoding":
            refuse_unused_for_pairs(options, ["a.en", "a.de"])
            refuse_unused_options(options, [tmp_path], unnamed="table")  # a directory of texts
            continue
        with pytest.raises(ConfigError, match=r"none of a\.en, a\.de is"):
            refuse_unused_for_pairs(options, ["a.en", "a.de"])
        with pytest.raises(ConfigError, match="is not"):
            refuse_unused_options(options, ["a.txt"], unnamed="text")
        with pytest.raises(ConfigError, match="is not"):
            refuse_unused_options(options, [tmp_path], unnamed="table")


def test_an_option_may_be_meant_for_the_validation_data_alone() -> None:
    for name in ("columns", "sheet"):
        refuse_unused_for_pairs(reading_options(**{name: VALUES[name]}), ["a.en", "a.de"], ["valid.xlsx"])


def test_an_encoding_that_the_byte_order_mark_contradicts_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_bytes("Grüße\n".encode("utf-8-sig"))
    assert list(byte_lines(file, "utf-8")) == list(byte_lines(file)) == ["Grüße".encode()]
    with pytest.raises(InputError, match="byte-order mark of UTF-8, so that it cannot be Windows-1252"):
        list(byte_lines(file, "cp1252"))


@pytest.mark.parametrize("name", ["utf-7", "cp037"])
def test_encodings_that_change_the_letters_of_ascii_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} is not read"):
        reading_options(encoding=name)
