"""From the statistics of a survey to findings."""

import math
import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jumok.data.checking.findings import Finding
from jumok.data.checking.side_languages import EXAMPLES
from jumok.data.checking.survey import Excerpt, Survey
from jumok.data.checking.symptoms import (
    SCRIPT_OF_LANGUAGE,
    first_unpartnered,
    length_misfit,
    letter_profile,
    similarity,
)
from jumok.data.examples import Paths, too_many_left_out
from jumok.data.reading.lines import format_of

_RATIO_OFF = math.log(3.0)  # three times longer or shorter than the median of this corpus,
_RATIO_SPREADS = 6.0  # and by so many standard deviations
_LABELS_AT_MOST = 50
_LABEL_CHARACTERS = 20
_PAIRS_TO_JUDGE = 20  # statistics of fewer say nothing
_SAME_FILE_SHARE = 0.9
_NUMBERS_SHARE = 0.9
_CONSTANT_SHARE = 0.5
_SAME_PAIRS = 0.9  # two findings of about as many pairs are about the same ones
_SHARED_SOURCES = 0.05  # some short sentences recur in any good split


class Finder:
    """Derives the findings from a survey."""

    def __init__(self, paths: Paths, survey: Survey, excerpts: Callable[[set[int]], dict[int, str]]) -> None:
        self._paths, self._survey = paths, survey
        self._source_lengths = np.asarray(survey.source.lengths)
        self._target_lengths = np.asarray(survey.target.lengths)
        self._usable = np.flatnonzero((self._source_lengths > 0) & (self._target_lengths > 0))
        self._labels = self._label_values()
        self._swapped, self._same = survey.side_languages.swapped, survey.side_languages.same
        self._misfits, self._misfit_lines = self._find_misfits()
        self._repeats, self._repeated_lines = self._find_repeats()
        self._unpartnered = self._find_unpartnered() if survey.unequal else 0
        repeated = [line for line, _ in self._repeated_lines]
        self._one_sided = list(self._find_one_sided())
        self._first_lines = [survey.numbers[index] for index in self._usable[:EXAMPLES]] if self._one_sided else []
        by_language = [*self._swapped.lines, *self._same.lines]
        lines = {*self._misfit_lines, *repeated, *by_language, *self._first_lines, self._unpartnered}
        self._shown = excerpts(lines - {0})

    def findings(self) -> Iterator[Finding]:
        """All findings, in no particular order."""
        survey, same_file = self._survey, self._is_same_file()
        for kind, tally in survey.tallies.items():
            # The pairs of another finding are not reported again under another name.
            of_swapped = kind == "wrong-script" and self._swapped.count >= _SAME_PAIRS * tally.count
            if not of_swapped and not (kind == "copied-source" and same_file):
                yield self._share_of_pairs(kind, tally.count, tally.examples)
        left_out = survey.pairs - survey.not_meant - survey.usable
        if not survey.unequal and too_many_left_out(left_out, survey.usable):
            yield self._share_of_pairs("left-out", left_out, [])
        if same_file:
            yield self._share_of_pairs("same-file", survey.identical, [])
        if survey.open_quotes:
            places = tuple(Excerpt(where, "") for where in survey.open_quotes[:EXAMPLES])
            yield Finding("open-quote", len(survey.open_quotes), places)
        if self._labels:
            yield Finding("labels", self._labels)
        for kind, side, count in self._one_sided:
            examples = [self._excerpt(line, of=side) for line in self._first_lines]
            yield self._share_of_pairs(kind, count, examples)
        yield from self._wrong_languages()
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
            values = len(side.texts)
            few = values <= _LABELS_AT_MOST and survey.usable >= max(_PAIRS_TO_JUDGE, 10 * values)
            if few and side.characters <= _LABEL_CHARACTERS * survey.pairs and len(other.texts) >= 5 * values:
                return values
        return 0

    def _find_one_sided(self) -> Iterator[tuple[str, str, int]]:
        """Kind, file and count of a side of numbers, or with one text in most pairs, opposite a side of other texts."""
        usable = self._survey.usable
        if usable < _PAIRS_TO_JUDGE or self._labels:
            return
        source, target = self._survey.source, self._survey.target
        for side, other in ((source, target), (target, source)):
            most, most_of_other = (max(each.texts.values(), default=0) for each in (side, other))
            if side.numbers >= _NUMBERS_SHARE * usable > other.numbers:
                yield "numbers", side.name, side.numbers
            elif most >= _CONSTANT_SHARE * usable > 2 * most_of_other:
                yield "constant", side.name, most

    def _wrong_languages(self) -> Iterator[Finding]:
        by_script = self._survey.tallies.get("wrong-script")
        if self._swapped.count:
            examples = [self._excerpt(number) for number in self._swapped.lines]
            yield self._share_of_pairs("swapped-pairs", self._swapped.count, examples)
        if self._same.count > (by_script.count if by_script else 0):
            examples = [self._excerpt(number) for number in self._same.lines]
            yield self._share_of_pairs("wrong-language", self._same.count, examples)

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

    def _excerpt(self, number: int, before: str = "", of: str = "") -> Excerpt:
        return Excerpt(f"{of or self._survey.source.name}:{number}", before + self._shown.get(number, ""))
