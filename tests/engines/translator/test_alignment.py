"""Pairs from weights, and the words they are of."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jumok.engines.options import DecodingOptions
from jumok.engines.translator.alignment import Alignment, join_alignments
from jumok.engines.translator.text import TextTranslator

PIECES = (["▁the", "▁ca", "t"], ["▁고양", "이"])


def test_each_target_piece_goes_with_what_gave_most_to_it() -> None:
    weights = np.array([[0.1, 0.5, 0.3, 0.1], [0.1, 0.2, 0.6, 0.1], [0, 0, 0, 1]], dtype=np.float32)
    assert join_alignments([(*PIECES, weights)]) == Alignment(*map(tuple, PIECES), ((1, 0), (2, 1)))


def test_what_comes_from_the_end_of_the_source_is_not_aligned() -> None:
    weights = np.array([[0.1, 0.1, 0.1, 0.7], [0.1, 0.2, 0.6, 0.1], [1, 0, 0, 0]], dtype=np.float32)
    assert join_alignments([(*PIECES, weights)]).pairs == ((2, 1),)


def test_parts_follow_each_other() -> None:
    weights = np.array([[0.1, 0.5, 0.3, 0.1], [0.1, 0.2, 0.6, 0.1], [0, 0, 0, 1]], dtype=np.float32)
    joined = join_alignments([(*PIECES, weights), (*PIECES, weights)])
    assert joined.source == ("▁the", "▁ca", "t", "▁the", "▁ca", "t")
    assert joined.pairs == ((1, 0), (2, 1), (4, 2), (5, 3))
    assert joined.by_word("the cat the cat", "고양이 고양이") == [(1, 0), (3, 1)]


def test_words_of_unspaced_text() -> None:
    assert Alignment(("雨", "が"), ("rain",), ((0, 0), (1, 0))).by_word("雨が", "rain") == [(0, 0)]


EAST = tuple(f"<0x{byte:02X}>" for byte in "東".encode())


@pytest.mark.parametrize(
    ("pieces", "text", "words"),
    [
        (("▁The", "▁", "▁small", "▁cat"), "The  small cat", [0, None, 1, 2]),
        (("▁", "▁The", "▁ca", "t", "▁"), " The cat ", [None, 0, 1, 1, None]),
        (("▁a", "<0x09>", "b", "<0x09>", "▁c"), "a\tb\t c", [0, None, 1, None, 2]),
        (("▁a", "<0xE3>", "<0x80>", "<0x80>", "b"), "a\u3000b", [0, None, None, None, 1]),
        (("▁a\u3000b", "c"), "a\u3000bc", [0, 1]),
        (("▁a", "▁", *EAST, "b"), "a 東b", [0, None, 1, 1, 1, 1]),
        (("▁a", "▁<", "0", "x", "4", "1", ">"), "a <0x41>", [0, 1, 1, 1, 1, 1, 1]),
        (("▁", "<0xE2>", "<0x96>", "<0x81>", "▁a"), "\u2581 a", [None, 0, 0, 0, 1]),
        (("▁a", "<0xE2>", "▁b"), "a\ufffd b", [0, 0, 1]),  # a character that was cut off
    ],
)
def test_words_are_those_of_split(pieces: tuple[str, ...], text: str, words: list[int | None]) -> None:
    for place, word in enumerate(words):
        expected = [] if word is None else [word]
        as_source = Alignment(pieces, ("▁x",), ((place, 0),))
        as_output = Alignment(("▁x",), pieces, ((0, place),))
        assert [source for source, _ in as_source.by_word(text, "x")] == expected
        assert [output for _, output in as_output.by_word("x", text)] == expected


def test_parts_without_a_space_between_them_are_one_word() -> None:
    parts = Alignment(("▁雨。", "▁雪。"), ("▁Rain.", "▁Snow."), ((0, 0), (1, 1)))
    assert parts.by_word("雨。雪。", "Rain. Snow.") == [(0, 0), (0, 1)]


def test_a_source_is_counted_as_it_was_read() -> None:
    decomposed = "e\u0301 b"
    assert Alignment(("▁\u00e9", "▁b"), ("▁x",), ((1, 0),)).by_word(decomposed, "x") == [(1, 0)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=30))
def test_every_word_of_an_echo_comes_from_itself(text: str, echoing: TextTranslator) -> None:
    [result] = echoing.translate_batch([text], DecodingOptions(alignment=True))
    pairs = result.alignment.by_word(text, result.text) if result.alignment else []
    assert pairs == [(place, place) for place in range(len(text.split()))]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(words=st.lists(st.sampled_from(["cat.", "dog", "雨。", "Snow!", "\t", "  ", "\u3000", "x"]), max_size=20))
def test_words_stay_in_range_when_a_text_is_split(words: list[str], echoing: TextTranslator) -> None:
    text = " ".join(words[:10]) + "".join(words[10:])
    [result] = echoing.translate_batch([text], DecodingOptions(alignment=True, segment_tokens=8))
    pairs = result.alignment.by_word(text, result.text) if result.alignment else []
    assert {source for source, _ in pairs} == set(range(len(text.split())))
    assert {target for _, target in pairs} == set(range(len(result.text.split())))
