"""Pairs whose sides are in the wrong language: swapped, or both in the same one.

No language is known in advance. What tells the two sides apart, character n-grams, is learned from the corpus itself,
although some of its pairs are swapped. The first pairs are oriented together, by naive Bayes: the evidence of a text is
the sum of the log-likelihood ratios of its n-grams, and pairs are swapped until the evidence of all sides agrees. If
about half of the pairs are swapped, this needs a better start: each pair is the difference between the n-gram counts of
its two sides, and the first principal component of all differences is the direction from one language to the other.
Later pairs are judged as they come. No pair is judged by what was learned from itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

_PAIRS_AT_A_TIME = 2_000
_LEARNED_PAIRS = 100_000  # from then on, pairs are only judged
_CHARACTERS = 200  # the beginning of a text is enough
EXAMPLES = 3  # of each finding
_BUCKETS = 1 << 17  # n-grams are hashed
_ORDERS = 3  # single characters, bigrams, trigrams
_SMOOTHING = 0.5
_RARE = 5.0  # n-grams that occur less often than about this count less in the principal component
_FOLDS = 4  # the first pairs are judged by what the other folds teach
_ITERATIONS = 12  # at most; two or three are usual
_SETTLED = 0.05  # share of pairs that the last iteration may still swap: otherwise the folds contradict each other
_BETTER = 1.1

# How much evidence, in nats and in nats a character, a language must have on both sides of a pair.
_SWAPPED = (3.0, 0.1)
_SAME = (10.0, 0.3)  # names and cognates are the same on both sides, in whatever language they look like
_JUDGED_SHARE = 0.4  # if fewer pairs can be judged, the two languages are too similar
_FEWEST, _SMALLEST_SHARE = 3, 0.001  # fewer pairs than this, or a smaller share, are not reported
_SHARE_OF_UNCLEAR = 0.02  # the smallest share grows with that of the pairs that cannot be judged

_Vector = npt.NDArray[np.float64]


@dataclass(frozen=True)
class _NGrams:
    """The hashed n-grams of some texts."""

    buckets: Sequence[npt.NDArray[np.int32]]  # of each order, one for each position in all texts
    number: int  # of buckets
    lengths: npt.NDArray[np.int64]  # of the texts

    @classmethod
    def of(cls, texts: Sequence[str]) -> Self:
        """The n-grams of these texts."""
        # Two line feeds keep the n-grams of a text apart from those of the next.
        pieces = ["\n\n" + text[:_CHARACTERS].lower() for text in texts]
        codes = np.frombuffer(("".join(pieces) + "\n\n").encode("utf-32-le"), "<u4")
        positions = len(codes) - 2
        hashes, buckets = np.zeros(positions, np.uint32), []
        for order in range(_ORDERS):
            hashes = (hashes ^ codes[order : order + positions]) * np.uint32(0x9E3779B1)
            hashes ^= hashes >> np.uint32(15)
            buckets.append((hashes % np.uint32(_BUCKETS)).astype(np.int32))
        return cls(buckets, _BUCKETS, np.fromiter(map(len, pieces), np.int64, len(pieces)))

    def renumbered(self, numbers: npt.NDArray[np.int32]) -> "_NGrams":
        """The same n-grams in other buckets; `numbers` are in ascending order."""
        return _NGrams([numbers[each] for each in self.buckets], int(numbers[-1]) + 1, self.lengths)

    def sums(self, weights: _Vector) -> _Vector:
        """For each text the sum of the weights of its n-grams, averaged over the orders."""
        at_positions = np.sum([weights[each] for each in self.buckets], axis=0)
        sums: _Vector = np.add.reduceat(at_positions, np.cumsum(self.lengths) - self.lengths) / _ORDERS
        return sums

    def counts(self, weights: _Vector) -> _Vector:
        """How often each n-gram occurs, the texts weighted."""
        at_positions = np.repeat(weights, self.lengths)
        counts: _Vector = np.sum([np.bincount(each, at_positions, self.number) for each in self.buckets], axis=0)
        return counts


@dataclass(slots=True)
class LinesFound:
    """How many pairs were found, and the lines of the first."""

    count: int = 0
    lines: list[int] = field(default_factory=list)

    def add(self, lines: npt.NDArray[np.int64]) -> None:
        """Count these."""
        self.count += len(lines)
        self.lines += lines[: EXAMPLES - len(self.lines)].tolist()


class SideLanguages:
    """Judges every pair: `add` all of them, then `finish`. Memory: the texts of 2,000 pairs, and about 10 MB."""

    def __init__(self) -> None:
        self._pending: list[tuple[int, str, str]] = []
        self._counts: npt.NDArray[np.float64] | None = None  # (2, buckets): n-grams of both languages
        self._weights: _Vector = np.empty(0)
        self._learned = self._learned_by_weights = 0
        self._pairs = 0
        self._straight, self._swapped, self._same = LinesFound(), LinesFound(), LinesFound()

    def add(self, number: int, source: str, target: str) -> None:
        """Take a pair into account."""
        self._pending.append((number, source[:_CHARACTERS], target[:_CHARACTERS]))
        if len(self._pending) == _PAIRS_AT_A_TIME:
            self.finish()

    def finish(self) -> None:
        """Judge the pairs that were added since the last time."""
        if not self._pending:
            return
        numbers, sources, targets = zip(*self._pending, strict=True)
        self._pending.clear()
        self._judge(np.asarray(numbers), _NGrams.of(sources), _NGrams.of(targets))

    @property
    def swapped(self) -> LinesFound:
        """The pairs whose sides are the other way round than those of most pairs."""
        fewer = min(self._straight, self._swapped, key=lambda found: found.count)
        return self._if_many(fewer)

    @property
    def same(self) -> LinesFound:
        """The pairs with both sides in the same language."""
        return self._if_many(self._same)

    def _if_many(self, found: LinesFound) -> LinesFound:
        judged = self._straight.count + self._swapped.count
        if judged < _JUDGED_SHARE * self._pairs:
            return LinesFound()
        unclear = 1 - judged / max(1, self._pairs)
        smallest = max(_FEWEST, (_SMALLEST_SHARE + _SHARE_OF_UNCLEAR * unclear) * self._pairs)
        return found if found.count >= smallest else LinesFound()

    def _judge(self, lines: npt.NDArray[np.int64], sources: _NGrams, targets: _NGrams) -> None:
        if self._counts is None:
            self._counts, evidence = _learn_first(sources, targets)
            self._learned = len(lines)
        else:
            if self._learned >= 2 * self._learned_by_weights:
                self._weights, self._learned_by_weights = _log_ratios(self._counts), self._learned
            evidence = sources.sums(self._weights), targets.sums(self._weights)
        of_source, of_target = (
            _languages(side, nats, _SWAPPED) for side, nats in zip((sources, targets), evidence, strict=True)
        )
        swapped = (of_source < 0) & (of_target > 0)
        if self._learned_by_weights and self._learned < _LEARNED_PAIRS:
            self._counts += _count(sources, targets, swapped, np.ones(len(lines)))
            self._learned += len(lines)
        same = _languages(sources, evidence[0], _SAME) * _languages(targets, evidence[1], _SAME) > 0
        self._pairs += len(lines)
        self._straight.add(lines[(of_source > 0) & (of_target < 0)])
        self._swapped.add(lines[swapped])
        self._same.add(lines[same])


def _languages(side: _NGrams, evidence: _Vector, least: tuple[float, float]) -> _Vector:
    """1 for each text in the language of most sources, -1 in that of most targets, 0 if that is unclear."""
    nats, nats_per_character = least
    is_clear = np.abs(evidence) > np.maximum(nats, nats_per_character * side.lengths)
    return np.where(is_clear, np.sign(evidence), 0.0)


def _count(sources: _NGrams, targets: _NGrams, swapped: npt.NDArray[np.bool_], weights: _Vector) -> _Vector:
    """Counts of the n-grams of both languages (2, buckets), the pairs weighted."""
    straight = weights * ~swapped
    counts = np.stack([sources.counts(straight), targets.counts(straight)])
    if swapped.any():
        counts += np.stack([targets.counts(weights * swapped), sources.counts(weights * swapped)])
    return counts


def _log_ratios(counts: _Vector) -> _Vector:
    """For each n-gram the logarithm of how much more frequent it is in the first language than in the second."""
    first, second = np.log((counts + _SMOOTHING) / (counts.sum(axis=1, keepdims=True) + 1.0))
    ratios: _Vector = first - second
    return ratios


def _learn_first(sources: _NGrams, targets: _NGrams) -> tuple[_Vector, tuple[_Vector, _Vector]]:
    """Counts of the n-grams of both languages (2, buckets), and the evidence of every source and target.
    Only buckets in use are numbered until then: a small corpus has few of them."""
    used = np.zeros(_BUCKETS, bool)
    for buckets in (*sources.buckets, *targets.buckets):
        used[buckets] = True
    numbers = np.cumsum(used, dtype=np.int32) - 1
    found = _orient(sources.renumbered(numbers), targets.renumbered(numbers))
    counts = np.zeros((2, _BUCKETS))
    counts[:, used] = found.counts
    return counts, found.evidence


@dataclass(frozen=True)
class _Orientation:
    """What was learned from pairs, and how clear it is."""

    counts: _Vector  # of the n-grams of both languages (2, buckets)
    evidence: tuple[_Vector, _Vector]  # of every source and every target
    judged: int  # pairs whose sides are clearly in two languages


def _orient(sources: _NGrams, targets: _NGrams) -> _Orientation:
    """Learn the two languages; the first is that of most sources. The principal component decides only if without it
    clearly fewer pairs can be judged."""
    nothing_swapped = np.zeros(len(sources.lengths), bool)
    plain, better = (_refined(sources, targets, each) for each in (nothing_swapped, _component(sources, targets)))
    return better if better.judged > _BETTER * plain.judged else plain


def _refined(sources: _NGrams, targets: _NGrams, swapped: npt.NDArray[np.bool_]) -> _Orientation:
    """Learn the two languages from a first guess which pairs are swapped. Each fold is judged by the others."""
    folds = np.arange(len(swapped)) % _FOLDS
    evidence = np.zeros(len(swapped)), np.zeros(len(swapped))
    for _ in range(_ITERATIONS):
        of_folds = [_count(sources, targets, swapped, (folds == fold).astype(float)) for fold in range(_FOLDS)]
        counts: _Vector = np.sum(of_folds, axis=0)
        for fold in range(_FOLDS):
            ratios, judged = _log_ratios(counts - of_folds[fold]), folds == fold
            for side, nats in zip((sources, targets), evidence, strict=True):
                nats[judged] = side.sums(ratios)[judged]
        before, swapped = swapped, evidence[0] < evidence[1]
        changed = np.mean(before != swapped)
        if not changed:
            break
    clear = _languages(sources, evidence[0], _SWAPPED) * _languages(targets, evidence[1], _SWAPPED) < 0
    return _Orientation(counts, evidence, int(clear.sum()) if changed < _SETTLED else 0)


def _component(sources: _NGrams, targets: _NGrams) -> npt.NDArray[np.bool_]:
    """Which pairs are on the other side of the first principal component than most are, by power iteration."""
    ones = np.ones(len(sources.lengths))
    rarity = 1.0 / (sources.counts(ones) + targets.counts(ones) + _RARE)
    scale = 1.0 / np.sqrt(sources.lengths + targets.lengths)
    scores, swapped = ones, ones < 0
    for iteration in range(_ITERATIONS):
        direction = (sources.counts(scores * scale) - targets.counts(scores * scale)) * rarity
        scores = (sources.sums(direction) - targets.sums(direction)) * scale
        scores /= np.abs(scores).max() or 1.0
        before, swapped = swapped, scores < 0
        if iteration > 2 and np.array_equal(before, swapped):
            break
    return swapped if 2 * swapped.sum() <= len(swapped) else ~swapped
