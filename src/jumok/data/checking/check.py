"""What is wrong with a corpus of sentence pairs: from the statistics of a survey to findings."""

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from jumok.data.checking.finder import Finder
from jumok.data.checking.findings import KINDS, Finding, Report, SideTotals
from jumok.data.checking.survey import SideSurvey, Survey, ValidationPairs, excerpt
from jumok.data.examples import Example, Paths, Rejections
from jumok.data.reading.lines import text_of
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.reading.pairs import UnequalLengthError, names_of, read_pairs, read_records
from jumok.data.reading.unused_options import refuse_unused_for_pairs
from jumok.errors import InputError

_FATAL = ("unequal-length", "labels")  # training on such a corpus is useless
_REJECTED = ("left-out", "malformed", "empty-side", "too-long")  # counted among the rejections of a training already


def check_pairs(paths: Paths, valid: Paths | None = None, *, options: ReadingOptions = DEFAULT) -> Report:
    """Read a corpus (and its validation corpus) and report what is suspicious. InputError if it cannot be read."""
    refuse_unused_for_pairs(options, paths, valid)
    validation = read_pairs(valid, Rejections(), options=options) if valid else None
    check = PairCheck(paths, validation, options=options)
    check.survey_records()
    if not check.survey.pairs and not check.survey.unequal:
        raise InputError(f"{' and '.join(map(str, paths))}: there are no lines.")
    return check.report()


class PairCheck:
    """Surveys a corpus of sentence pairs while it is read; afterwards reports what is suspicious."""

    def __init__(
        self, paths: Paths, valid: Iterable[Example] | None = None, *, options: ReadingOptions = DEFAULT
    ) -> None:
        self._paths, self._options = paths, options
        self._rejections = Rejections()
        self.survey = Survey(names_of(paths), None if valid is None else ValidationPairs(valid))

    def read(self, rejections: Rejections) -> Iterator[Example]:
        """The usable pairs. Of files of unequal length, the error names the first line without a partner."""
        self._rejections = rejections
        try:
            yield from read_pairs(self._paths, rejections, options=self._options, on_record=self.survey.add)
        except UnequalLengthError as error:
            self.survey.unequal = error.lines
            [unequal] = (finding for finding in self._find() if finding.kind == "unequal-length")
            raise UnequalLengthError(names_of(self._paths), error.lines, unequal.examples[0].where) from None

    def survey_records(self) -> None:
        """Read the corpus for its report alone: a corpus without any usable pair is reported too."""
        try:
            for number, left, right in read_records(self._paths, self._options, self._rejections):
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
        read_as = tuple(said for layout in self._rejections.layouts if (said := layout.describe()))
        return Report(survey.pairs, survey.usable, source, target, findings, read_as)

    def _find(self, excerpts: Callable[[set[int]], dict[int, str]] = lambda _: {}) -> tuple[Finding, ...]:
        self.survey.finish()
        self.survey.side_languages.finish()
        self.survey.open_quotes = [
            f"{layout.file}:{line}" for layout in self._rejections.layouts for line in layout.suspicious_lines
        ]
        found = Finder(self._paths, self.survey, excerpts).findings()
        return tuple(sorted(found, key=lambda finding: list(KINDS).index(finding.kind)))

    def _read_excerpts(self, numbers: set[int]) -> dict[int, str]:
        """What is written on these lines: read again, since which lines matter is known only at the end."""
        if not numbers or not all(map(os.path.isfile, self._paths)):
            return {}  # standard input and pipes cannot be read twice
        found: dict[int, str] = {}
        with suppress(UnequalLengthError):
            for number, source, target in read_records(self._paths, self._options):
                if number in numbers:
                    found[number] = excerpt(source, target)
                if number >= max(numbers):
                    break
        return found


def _totals(side: SideSurvey, lines: int) -> SideTotals:
    characters, words, texts = side.characters, side.words, max(1, sum(map(bool, side.lengths)))
    return SideTotals(side.name, lines, characters, words, characters / texts, words / texts, side.script)
