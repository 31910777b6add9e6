"""What is wrong with a corpus, before hours are spent on it: from what a survey gathered to findings."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from jumok.data.checking.findings import KINDS, Excerpt, Finding, Report, SideTotals
from jumok.data.checking.survey import EXAMPLES, SideSurvey, Survey, ValidationPairs, excerpt
from jumok.data.checking.symptoms import (
    first_unpartnered,
    length_misfit,
    letter_profile,
    script_of_language,
    similarity,
)
from jumok.data.reading.languages import Languages
from jumok.data.reading.lines import without_compression
from jumok.data.reading.pairs import UnequalLengthError, read_records
from jumok.errors import InputError

__all__ = ["Excerpt", "Finding", "Report", "SideTotals", "check_pairs"]

_RATIO_OFF = math.log(3.0)  # three times longer or shorter than is usual in this corpus,
_RATIO_SPREADS = 6.0  # and far outside of what its pairs vary
_LABELS_AT_MOST = 50
_LABEL_CHARACTERS = 20
_PAIRS_TO_JUDGE = 20  # a corpus smaller than this has no habits to go by
_SAME_FILE_SHARE = 0.9
_SHARED_SOURCES = 0.05  # some short sentences recur in any honest split


def check_pairs(
    paths: Sequence[str | Path], valid: Sequence[str | Path] | None = None, *, languages: Languages | None = None
) -> Report:
    """Read a corpus (and its validation corpus) and report whatever is suspicious. InputError if it cannot be read."""
    held_out = ValidationPairs(valid, languages if len(valid) == 1 else None) if valid else None
    survey = Survey(paths, languages, held_out)
    if not survey.pairs and not survey.unequal:
        raise InputError(f"{' and '.join(map(str, paths))}: there is nothing in it.")
    finder = _Finder(paths, languages, survey)
    lines = survey.unequal or (survey.pairs, survey.pairs)
    return Report(
        pairs=survey.pairs,
        usable=survey.usable,
        source=_totals(survey.source, lines[0]),
        target=_totals(survey.target, lines[1]),
        findings=tuple(sorted(finder.findings(), key=lambda finding: list(KINDS).index(finding.kind))),
    )


def _totals(side: SideSurvey, lines: int) -> SideTotals:
    texts = max(1, sum(1 for length in side.lengths if length))
    return SideTotals(
        side.name, lines, side.characters, side.words, side.characters / texts, side.words / texts, side.script
    )


class _Finder:
    """Draws the conclusions from a survey."""

    def __init__(self, paths: Sequence[str | Path], languages: Languages | None, survey: Survey) -> None:
        self._paths, self._languages, self._survey = paths, languages, survey
        self._source_lengths = np.asarray(survey.source.lengths)
        self._target_lengths = np.asarray(survey.target.lengths)
        self._usable = np.flatnonzero((self._source_lengths > 0) & (self._target_lengths > 0))

    def findings(self) -> Iterator[Finding]:
        same_file, labels = self._is_same_file(), self._label_values()
        for kind, tally in self._survey.tallies.items():
            if not (kind == "copied-source" and same_file):
                yield self._share_of_pairs(kind, tally.count, tally.examples)
        if same_file:
            yield self._share_of_pairs("same-file", self._survey.identical, [])
        if labels:
            yield Finding("labels", labels)
        elif not self._survey.unequal:  # else lengths do not fit, but that is not the fault of the pairs
            yield from self._length_ratio()
        if self._names_are_swapped() or self._validation_is_swapped():
            yield Finding("swapped", 1)
        yield from self._unequal_length()
        yield from self._duplicates()
        yield from self._overlap()

    def _unequal_length(self) -> Iterator[Finding]:
        if not self._survey.unequal:
            return
        source_lines, target_lines = self._survey.unequal
        sides = [self._source_lengths, self._target_lengths]
        names = [self._survey.source.name, self._survey.target.name]
        if target_lines > source_lines:
            sides.reverse()
            names.reverse()
        surplus = abs(source_lines - target_lines)
        line = 1 + first_unpartnered(sides[0], sides[1], surplus)
        shown = self._excerpts([line]).get(line, f"{names[1]} ends before this line")
        yield Finding("unequal-length", surplus, (Excerpt(f"{names[0]}:{line}", shown),))

    def _length_ratio(self) -> Iterator[Finding]:
        misfit = np.abs(length_misfit(self._source_lengths[self._usable], self._target_lengths[self._usable]))
        if misfit.size < _PAIRS_TO_JUDGE:
            return
        spread = 1.4826 * float(np.median(misfit))
        off = np.flatnonzero(misfit > max(_RATIO_OFF, _RATIO_SPREADS * spread))
        if off.size:
            worst = off[np.argsort(-misfit[off], kind="stable")[:EXAMPLES]]
            numbers = [self._survey.numbers[index] for index in self._usable[worst]]
            shown = self._excerpts(numbers)
            examples = [self._example(number, shown.get(number, "")) for number in numbers]
            yield self._share_of_pairs("length-ratio", int(off.size), examples)

    def _duplicates(self) -> Iterator[Finding]:
        hashes = np.asarray(self._survey.hashes)[self._usable]
        order = np.argsort(hashes, kind="stable")
        repeats = np.sort(order[1:][hashes[order][1:] == hashes[order][:-1]])
        if repeats.size:
            numbers = [self._survey.numbers[index] for index in self._usable[repeats[:EXAMPLES]]]
            firsts = [np.flatnonzero(hashes == hashes[index])[0] for index in repeats[:EXAMPLES]]
            shown = self._excerpts(numbers)
            examples = [
                self._example(
                    number, f"as in line {self._survey.numbers[self._usable[first]]}: {shown.get(number, '')}"
                )
                for number, first in zip(numbers, firsts, strict=True)
            ]
            yield self._share_of_pairs("duplicates", int(repeats.size), examples)

    def _overlap(self) -> Iterator[Finding]:
        held_out = self._survey.held_out
        if not held_out:
            return
        total, pairs, sources = held_out.sources.total(), held_out.met_pairs, held_out.met_sources
        if pairs:
            examples = tuple(held_out.pair_examples.examples)
            yield Finding("validation-in-training", pairs, examples, pairs / total)
        if sources > _SHARED_SOURCES * total:
            examples = tuple(held_out.source_examples.examples)
            yield Finding("validation-sources-in-training", sources, examples, sources / total)

    def _label_values(self) -> int:
        """How many labels a side has that seems to consist of labels, else 0."""
        survey = self._survey
        for side, other in ((survey.source, survey.target), (survey.target, survey.source)):
            values = len(side.distinct)
            few = values <= _LABELS_AT_MOST and survey.usable >= max(_PAIRS_TO_JUDGE, 10 * values)
            if few and side.characters <= _LABEL_CHARACTERS * survey.pairs and len(other.distinct) >= 5 * values:
                return values
        return 0

    def _is_same_file(self) -> bool:
        if len(self._paths) == 2 and all(map(os.path.isfile, self._paths)) and os.path.samefile(*self._paths):
            return True
        many = self._survey.usable >= _PAIRS_TO_JUDGE
        return many and self._survey.identical >= _SAME_FILE_SHARE * self._survey.usable

    def _names_are_swapped(self) -> bool:
        """`a.en` is in the script of Korean and `a.ko` in that of English."""
        if len(self._paths) != 2:
            return False
        named = [script_of_language(without_compression(path).suffix.lstrip(".").lower()) for path in self._paths]
        found = [self._survey.source.script, self._survey.target.script]
        return None not in named and named[0] != named[1] and found == named[::-1]

    def _validation_is_swapped(self) -> bool:
        held_out = self._survey.held_out
        if not held_out:
            return False
        source, target = (letter_profile(side.sample) for side in (self._survey.source, self._survey.target))
        valid_source, valid_target = (letter_profile(side.sample) for side in (held_out.source, held_out.target))
        return similarity(valid_source, target) > similarity(valid_source, source) and (
            similarity(valid_target, source) > similarity(valid_target, target)
        )

    def _share_of_pairs(self, kind: str, count: int, examples: Sequence[Excerpt]) -> Finding:
        return Finding(kind, count, tuple(examples), count / self._survey.pairs)

    def _example(self, number: int, shown: str) -> Excerpt:
        return Excerpt(f"{self._survey.source.name}:{number}", shown)

    def _excerpts(self, numbers: Sequence[int]) -> dict[int, str]:
        """What stands on these lines: read again, since which ones matter is known only at the end."""
        if not all(map(os.path.isfile, self._paths)):
            return {}  # standard input and pipes cannot be read twice
        found: dict[int, str] = {}
        try:
            for number, source, target in read_records(self._paths, self._languages):
                if number in numbers:
                    found[number] = excerpt(source, target)
                if number >= max(numbers):
                    break
        except UnequalLengthError:
            pass
        return found
