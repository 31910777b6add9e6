"""What is wrong with a corpus of sentence pairs: from the statistics of a survey to findings."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from jumok.data.checking.findings import KINDS, Finding, Report, SideTotals
from jumok.data.checking.survey import EXAMPLES, Excerpt, SideSurvey, Survey, ValidationPairs, excerpt
from jumok.data.checking.symptoms import (
    SCRIPT_OF_LANGUAGE,
    first_unpartnered,
    length_misfit,
    letter_profile,
    similarity,
)
from jumok.data.examples import Example, Paths, Rejections
from jumok.data.reading.languages import Languages
from jumok.data.reading.lines import format_of, text_of
from jumok.data.reading.pairs import UnequalLengthError, names_of, read_pairs, read_records
from jumok.errors import InputError

_FATAL = ("unequal-length", "labels")  # training on such a corpus is useless
_REJECTED = ("malformed", "empty-side", "too-long")  # counted among the rejections of a training already

_RATIO_OFF = math.log(3.0)  # three times longer or shorter than the median of this corpus,
_RATIO_SPREADS = 6.0  # and by so many standard deviations
_LABELS_AT_MOST = 50
_LABEL_CHARACTERS = 20
_PAIRS_TO_JUDGE = 20  # statistics of fewer say nothing
_SAME_FILE_SHARE = 0.9
_SHARED_SOURCES = 0.05  # some short sentences recur in any good split


def check_pairs(paths: Paths, valid: Paths | None = None, *, languages: Languages | None = None) -> Report:
    """Read a corpus (and its validation corpus) and report what is suspicious. InputError if it cannot be read."""
    validation = read_pairs(valid, Rejections(), languages=languages) if valid else None
    check = PairCheck(paths, validation, languages=languages)
    check.survey_records()
    if not check.survey.pairs and not check.survey.unequal:
        raise InputError(f"{' and '.join(map(str, paths))}: there is nothing in it.")
    return check.report()


class PairCheck:
    """Surveys a corpus of sentence pairs while it is read; afterwards reports what is suspicious."""

    def __init__(
        self, paths: Paths, valid: Iterable[Example] | None = None, *, languages: Languages | None = None
    ) -> None:
        self._paths, self._languages = paths, languages
        self._rejections = Rejections()
        self.survey = Survey(names_of(paths), None if valid is None else ValidationPairs(valid))

    def read(self, rejections: Rejections) -> Iterator[Example]:
        """The usable pairs. Of files of unequal length, the error names the first line without a partner."""
        self._rejections = rejections
        try:
            yield from read_pairs(self._paths, rejections, languages=self._languages, on_record=self.survey.add)
        except UnequalLengthError as error:
            self.survey.unequal = error.lines
            [unequal] = (finding for finding in self._find() if finding.kind == "unequal-length")
            raise UnequalLengthError(names_of(self._paths), error.lines, unequal.examples[0].where) from None

    def survey_records(self) -> None:
        """Read the corpus for its report alone: a corpus without any usable pair is reported too."""
        try:
            for number, left, right in read_records(self._paths, self._languages, self._rejections):
                self.survey.add(number, left, right, text_of(left), text_of(right))
        except UnequalLengthError as error:
            self.survey.unequal = error.lines
        self.survey.finish()

    def findings(self) -> list[dict[str, Any]]:
        """After `read`: what a training should warn of, as plain values. Raises InputError if it would be useless."""
        told = []
        for finding in self._find():
            if finding.kind in _FATAL:
                raise InputError(f"{' and '.join(map(str, self._paths))}: {finding.what}. {finding.advice}")
            if finding.kind not in _REJECTED:
                told.append(finding.to_json())
        return told

    def report(self) -> Report:
        """After the survey: totals and findings, with excerpts, for which the files are read once more."""
        survey = self.survey
        findings = self._find(self._read_excerpts)
        lines = survey.unequal or (survey.pairs, survey.pairs)
        source, target = _totals(survey.source, lines[0]), _totals(survey.target, lines[1])
        return Report(pairs=survey.pairs, usable=survey.usable, source=source, target=target, findings=findings)

    def _find(self, excerpts: Callable[[set[int]], dict[int, str]] = lambda _: {}) -> tuple[Finding, ...]:
        self.survey.finish()
        self.survey.unused_columns = self._rejections.unused_columns
        found = _Finder(self._paths, self.survey, excerpts).findings()
        return tuple(sorted(found, key=lambda finding: list(KINDS).index(finding.kind)))

    def _read_excerpts(self, numbers: set[int]) -> dict[int, str]:
        """What is written on these lines: read again, since which lines matter is known only at the end."""
        if not numbers or not all(map(os.path.isfile, self._paths)):
            return {}  # standard input and pipes cannot be read twice
        found: dict[int, str] = {}
        with suppress(UnequalLengthError):
            for number, source, target in read_records(self._paths, self._languages):
                if number in numbers:
                    found[number] = excerpt(source, target)
                if number >= max(numbers):
                    break
        return found


def _totals(side: SideSurvey, lines: int) -> SideTotals:
    characters, words, texts = side.characters, side.words, max(1, sum(map(bool, side.lengths)))
    return SideTotals(side.name, lines, characters, words, characters / texts, words / texts, side.script)


class _Finder:
    """Derives the findings from a survey."""

    def __init__(self, paths: Paths, survey: Survey, excerpts: Callable[[set[int]], dict[int, str]]) -> None:
        self._paths, self._survey = paths, survey
        self._source_lengths = np.asarray(survey.source.lengths)
        self._target_lengths = np.asarray(survey.target.lengths)
        self._usable = np.flatnonzero((self._source_lengths > 0) & (self._target_lengths > 0))
        self._labels = self._label_values()
        self._misfits, self._misfit_lines = self._find_misfits()
        self._repeats, self._repeated_lines = self._find_repeats()
        self._unpartnered = self._find_unpartnered() if survey.unequal else 0
        repeated = [line for line, _ in self._repeated_lines]
        self._shown = excerpts({*self._misfit_lines, *repeated, self._unpartnered} - {0})

    def findings(self) -> Iterator[Finding]:
        survey, same_file = self._survey, self._is_same_file()
        for kind, tally in survey.tallies.items():
            if not (kind == "copied-source" and same_file):
                yield self._share_of_pairs(kind, tally.count, tally.examples)
        if same_file:
            yield self._share_of_pairs("same-file", survey.identical, [])
        if survey.unused_columns:
            columns = Excerpt(survey.source.name, f"column {', '.join(survey.unused_columns)}")
            yield Finding("unused-columns", len(survey.unused_columns), (columns,))
        if self._labels:
            yield Finding("labels", self._labels)
        if self._misfits:
            examples = [self._excerpt(number) for number in self._misfit_lines]
            yield self._share_of_pairs("length-ratio", self._misfits, examples)
        if self._names_are_swapped() or self._validation_is_swapped():
            yield Finding("swapped", 1)
        if survey.unequal:
            yield self._unequal_length(*survey.unequal)
        if self._repeats:
            examples = [self._excerpt(n, f"as in line {first}: ") for n, first in self._repeated_lines]
            yield self._share_of_pairs("duplicates", self._repeats, examples)
        yield from self._overlap()

    def _unequal_length(self, source_lines: int, target_lines: int) -> Finding:
        names = [self._survey.source.name, self._survey.target.name]
        longer, shorter = names if source_lines > target_lines else reversed(names)
        shown = self._shown.get(self._unpartnered, f"{shorter} ends before this line")
        examples = (Excerpt(f"{longer}:{self._unpartnered}", shown),)
        return Finding("unequal-length", abs(source_lines - target_lines), examples)

    def _find_unpartnered(self) -> int:
        """The line of the longer file that seems to be the first without a partner."""
        assert self._survey.unequal
        source_lines, target_lines = self._survey.unequal
        sides = [self._source_lengths, self._target_lengths]
        longer, shorter = sides if source_lines > target_lines else reversed(sides)
        return 1 + first_unpartnered(longer, shorter, abs(source_lines - target_lines))

    def _find_misfits(self) -> tuple[int, list[int]]:
        """How many pairs have lengths that do not fit each other, and the lines of the worst."""
        # In files of unequal length nothing fits, and labels are shorter than texts; neither is the fault of the pairs.
        if self._labels or self._survey.unequal:
            return 0, []
        misfit = np.abs(length_misfit(self._source_lengths[self._usable], self._target_lengths[self._usable]))
        if misfit.size < _PAIRS_TO_JUDGE:
            return 0, []
        spread = 1.4826 * float(np.median(misfit))
        off = np.flatnonzero(misfit > max(_RATIO_OFF, _RATIO_SPREADS * spread))
        worst = off[np.argsort(-misfit[off], kind="stable")[:EXAMPLES]]
        return int(off.size), [self._survey.numbers[index] for index in self._usable[worst]]

    def _find_repeats(self) -> tuple[int, list[tuple[int, int]]]:
        """How many pairs repeat an earlier one, and for the first of them their lines and those of the earlier ones."""
        hashes = np.asarray(self._survey.hashes)[self._usable]
        order = np.argsort(hashes, kind="stable")
        repeats = np.sort(order[1:][hashes[order][1:] == hashes[order][:-1]])
        lines = np.asarray(self._survey.numbers)[self._usable]
        shown = [(int(lines[index]), int(lines[hashes == hashes[index]][0])) for index in repeats[:EXAMPLES]]
        return int(repeats.size), shown

    def _overlap(self) -> Iterator[Finding]:
        if validation := self._survey.validation:
            for kind, found, accepted in (
                ("validation-in-training", validation.pairs, 0),
                ("validation-sources-in-training", validation.sources, _SHARED_SOURCES),
            ):
                count, total = found.in_training, found.counts.total()
                if count > accepted * total:
                    yield Finding(kind, count, tuple(found.tally.examples), count / total)

    def _label_values(self) -> int:
        """Number of different labels, if one side seems to consist of labels; else 0."""
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
        """Whether file names and scripts contradict each other: `a.en` is in Korean script and `a.ko` in Latin."""
        if len(self._paths) != 2:
            return False
        named = [SCRIPT_OF_LANGUAGE.get(format_of(path).lstrip(".")) for path in self._paths]
        found = [self._survey.source.script, self._survey.target.script]
        return None not in named and named[0] != named[1] and found == named[::-1]

    def _validation_is_swapped(self) -> bool:
        validation = self._survey.validation
        if not validation:
            return False
        source, target = (letter_profile(side.sample) for side in (self._survey.source, self._survey.target))
        valid_source, valid_target = map(letter_profile, validation.samples)
        source_is_swapped = similarity(valid_source, target) > similarity(valid_source, source)
        return source_is_swapped and similarity(valid_target, source) > similarity(valid_target, target)

    def _share_of_pairs(self, kind: str, count: int, examples: Sequence[Excerpt]) -> Finding:
        return Finding(kind, count, tuple(examples), count / self._survey.pairs)

    def _excerpt(self, number: int, before: str = "") -> Excerpt:
        return Excerpt(f"{self._survey.source.name}:{number}", before + self._shown.get(number, ""))
