"""Detecting outputs that repeat themselves, as those of weak models often do, and searching again. Needs no torch."""

import math
from collections.abc import Callable, Sequence

from jumok.search.hypothesis import Hypothesis

MIN_REPEATS = 3
MIN_COVERED = 8  # "no, no, no" and "1 000 000 000" are language; eight tokens and more of the same thing rarely are
LONGEST_PERIOD = 32  # tokens; whole sentences repeat too
LEAST_REPEATED = MIN_COVERED - MIN_COVERED // MIN_REPEATS  # tokens of any loop that occurred before
RETRY_NGRAM = 3  # the second search allows no trigram twice


def longest_loop(ids: Sequence[int]) -> int:
    """How many tokens the longest repeating stretch of `ids` has, anywhere in it; 0 if none is long enough."""
    longest = 0
    repeated = len(ids) - len(set(ids))  # too few in most sentences, and quick to compute
    most = 0 if repeated < LEAST_REPEATED else repeated // (MIN_REPEATS - 1)
    for period in range(1, min(LONGEST_PERIOD, most) + 1):
        covered = _longest_stretch(ids, period)
        if covered >= max(MIN_COVERED, MIN_REPEATS * period):
            longest = max(longest, covered)
    return longest


def _longest_stretch(ids: Sequence[int], period: int) -> int:
    """The length of the longest stretch in which every token equals the one `period` positions before it."""
    longest, start = period, 0
    for end in range(period, len(ids)):
        if ids[end] != ids[end - period]:
            start = end - period + 1
        longest = max(longest, end + 1 - start)
    return longest


def is_suspect(hypothesis: Hypothesis, source: Sequence[int] = ()) -> bool:
    """True if an output was cut at its length limit, or repeats itself far more than its source does."""
    if not hypothesis.finished:
        return True
    loop = longest_loop(hypothesis.ids)
    return loop > 0 and loop > 2 * longest_loop(source)  # the source is looked at only where it matters


def resolve_loops(
    results: Sequence[list[Hypothesis]],
    sources: Sequence[Sequence[int]],
    redo: Callable[[list[int], int], Sequence[list[Hypothesis]]],
) -> list[list[Hypothesis]]:
    """The results, those of a second search replacing suspect ones where they are better: not suspect; else finished;
    else of higher score. `redo(sentences, n)` searches again for these sentences (indices into `results`) in one call,
    with scores, allowing no n-gram twice; 0 repeats the search. Results that are not replaced are the same objects as
    before."""
    pairs = enumerate(zip(results, sources, strict=True))
    suspects = [number for number, (hypotheses, source) in pairs if is_suspect(hypotheses[0], source)]
    resolved = list(results)
    if not suspects:
        return resolved

    def kind(number: int, best: Hypothesis) -> tuple[bool, bool]:
        return not is_suspect(best, sources[number]), best.finished

    for number, second in zip(suspects, redo(suspects, RETRY_NGRAM), strict=True):
        first = results[number]
        kinds = kind(number, first[0]), kind(number, second[0])
        if kinds[0] == kinds[1] and math.isnan(first[0].score):
            [first] = redo([number], 0)
        if (kinds[1], second[0].score) > (kinds[0], first[0].score):
            resolved[number] = second
    return resolved
