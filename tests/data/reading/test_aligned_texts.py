"""Pairs with their empty sides."""

from pathlib import Path

import pytest

from jumok.data.reading.pairs import aligned_texts
from jumok.errors import InputError


def test_aligned_texts_keep_empty_sides(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n\nthree\n", encoding="utf-8")
    (tmp_path / "b").write_text("\nzwei\ndrei\n", encoding="utf-8")
    assert list(aligned_texts([tmp_path / "a", tmp_path / "b"])) == [("one", ""), ("", "zwei"), ("three", "drei")]


def test_aligned_texts_name_what_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    (tmp_path / "b").write_bytes(b"eins\n\xff\xfe\n")
    with pytest.raises(InputError, match=r"b:2: not valid UTF-8"):
        list(aligned_texts([tmp_path / "a", tmp_path / "b"]))
