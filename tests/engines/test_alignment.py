"""Pairs from weights."""

import numpy as np

from jumok.engines.alignment import Alignment, join_alignments

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
    assert joined.by_word() == [(1, 0), (3, 1)]


def test_words_of_unspaced_text() -> None:
    assert Alignment(("雨", "が"), ("rain",), ((0, 0), (1, 0))).by_word() == [(0, 0)]
