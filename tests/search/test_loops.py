"""Loops are found wherever they are, language is left alone, and a second attempt replaces only what it betters."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.search.hypothesis import Hypothesis
from jumok.search.loops import (
    LONGEST_PERIOD,
    MIN_COVERED,
    MIN_REPEATS,
    RETRY_NGRAM,
    is_suspect,
    longest_loop,
    resolve_loops,
)


def output(ids, score=-1.0, finished=True):
    return Hypothesis(list(ids), score, [score] * (len(ids) + 1), finished)


DISTINCT = st.lists(st.integers(10, 10_000), unique=True, max_size=LONGEST_PERIOD)


@given(before=DISTINCT, period=st.integers(1, LONGEST_PERIOD), repeats=st.integers(MIN_REPEATS, 12), after=DISTINCT)
def test_a_loop_is_found_where_it_is(before, period, repeats, after):
    unit = list(range(100_000, 100_000 + period))
    covered = period * repeats
    assert longest_loop([*before, *unit * repeats, *after]) == (covered if covered >= MIN_COVERED else 0)


@given(st.lists(st.integers(0, 3), max_size=60))
def test_what_is_found_is_a_loop_and_the_longest(ids):
    def is_loop(start, end, period):
        long_enough = end - start >= max(MIN_COVERED, MIN_REPEATS * period)
        return long_enough and all(ids[i] == ids[i - period] for i in range(start + period, end))

    found = longest_loop(ids)
    lengths = [
        length
        for period in range(1, len(ids) // MIN_REPEATS + 1)
        for length in range(1, len(ids) + 1)
        if any(is_loop(start, start + length, period) for start in range(len(ids) - length + 1))
    ]
    assert found == max(lengths, default=0)


@pytest.mark.parametrize(
    "ids", [[], [5], [5, 5, 5], [1, 7, 7, 7, 7, 2], [5, 6, 5, 6, 5, 6], list(range(90)) * 2, list(range(33)) * 3]
)
def test_ordinary_repetition_is_no_loop(ids):
    assert longest_loop(ids) == 0


def test_a_half_repeated_end_belongs_to_the_loop():
    assert longest_loop([9, *[1, 2, 3] * 4, 1, 2]) == 14


def test_the_end_is_not_taken_for_what_comes_before_the_beginning():
    assert longest_loop([*[1, 2, 3] * 3, 8, 7, 2, 3]) == 9


def test_suspicion():
    assert is_suspect(output([5] * 20))
    assert is_suspect(output([5, 6, 7], finished=False))
    assert not is_suspect(output([5, 6, 7]))
    assert not is_suspect(output([5] * 20), source=[8] * 15), "the source does it too"
    assert not is_suspect(output([5] * 30), source=[8] * 15), "twice as much may be"
    assert is_suspect(output([5] * 31), source=[8] * 15), "but not more"


LOOPING, CUT, GOOD = output([5] * 20, -0.1), output([5, 6, 7], -0.5, finished=False), output([5, 6], -3.0)


@pytest.mark.parametrize(
    ("first", "second", "replaced"),
    [
        (LOOPING, GOOD, True),
        (CUT, GOOD, True),
        (CUT, LOOPING, True),
        (LOOPING, CUT, False),
        (CUT, output([8, 9], -0.9, finished=False), False),
        (CUT, output([8, 9], CUT.score, finished=False), False),
        (CUT, output([8, 9], -0.2, finished=False), True),
    ],
)
def test_the_better_attempt_is_kept(first, second, replaced):
    results, again = [[GOOD], [first], [GOOD]], [[second]]
    asked = []

    def redo(sentences, n):
        asked.append((sentences, n))
        return again

    resolved = resolve_loops(results, [[], [], []], redo)
    assert asked == [([1], RETRY_NGRAM)]
    assert resolved[0] is results[0]
    assert resolved[2] is results[2]
    assert resolved[1] is (again[0] if replaced else results[1])
    assert results[1] == [first], "the results given are not changed"


def test_scores_that_were_not_asked_for_are_found_before_two_attempts_are_compared():
    def unscored(ids, finished=True):
        return output(ids, math.nan, finished)

    results = [[unscored([5, 6])], [unscored([5, 6, 7], finished=False)], [unscored([5] * 20)]]
    searches = {0: [[CUT]], RETRY_NGRAM: [[output([8, 9], CUT.score - 0.1, finished=False)], [GOOD]]}
    asked = []

    def redo(sentences, n):
        asked.append((sentences, n))
        return searches[n]

    resolved = resolve_loops(results, [[], [], []], redo)
    assert asked == [([1, 2], RETRY_NGRAM), ([1], 0)], "that of the third is of no use"
    assert resolved[0] is results[0]
    assert resolved[1] is results[1], "the first attempt has the higher score"
    assert resolved[2] == [GOOD]


def test_a_loop_is_judged_by_its_own_source():
    sources = [[8] * 15, [], [8] * 15]
    results = [[LOOPING], [LOOPING], [CUT]]
    asked = []

    def redo(sentences, n):
        asked.extend(sentences)
        return [[CUT], [LOOPING]]  # for a source that repeats itself the last is good

    assert resolve_loops(results, sources, redo) == [[LOOPING], [LOOPING], [LOOPING]]
    assert asked == [1, 2]


def test_a_second_output_that_repeats_itself_no_more_than_its_source_is_better():
    first, second = output([5] * 31, -0.1), output([5] * 20, -3.0)
    assert resolve_loops([[first]], [[8] * 15], lambda *_: [[second]]) == [[second]]


@pytest.mark.parametrize(("sources", "again"), [([[]], [[GOOD], [GOOD]]), ([[], []], [[GOOD]])])
def test_a_missing_source_or_result_is_noticed(sources, again):
    with pytest.raises(ValueError, match="shorter"):
        resolve_loops([[LOOPING], [LOOPING]], sources, lambda *_: again)


def test_nothing_is_redone_without_suspicion():
    def never(sentences, n):
        raise AssertionError((sentences, n))

    assert resolve_loops([[GOOD], [GOOD]], [[1], [2]], never) == [[GOOD], [GOOD]]
    assert resolve_loops([], [], never) == []


def test_engines_without_torch_can_use_it():
    code = "import sys, jumok.search.loops; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
