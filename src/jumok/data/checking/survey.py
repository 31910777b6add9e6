"""One pass over a corpus that gathers what the check judges: totals, hashes, lengths, and the first of each oddity."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from jumok.data.checking.symptoms import is_garbled, lacks_script, majority_script
from jumok.data.reading.languages import Languages
from jumok.data.reading.lines import EMPTY, HAS_NUL, NOT_UNICODE, Damage, Record, Side, TooLong, text_of
from jumok.data.reading.pairs import UnequalLengthError, names_of, read_records

EXAMPLES = 3
_SAMPLED_LINES = 2_000  # they decide what a side is written in
_DISTINCT_COUNTED = 1_000  # beyond it, a side surely is no list of labels
_LETTERS_OF_A_COPY = 10  # names, numbers and one-word answers may well be the same in both languages
_EXCERPT_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A place in a file, as file:line, and what is written there."""

    where: str
    excerpt: str


@dataclass(slots=True)
class Tally:
    """How often something was met, and the first few times."""

    count: int = 0
    examples: list[Excerpt] = field(default_factory=list)

    def add(self, where: str, source: Side, target: Side) -> None:
        """Count one pair."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(Excerpt(where, excerpt(source, target)))


@dataclass(slots=True)
class SideSurvey:
    """What was gathered about the source or the target."""

    name: str
    characters: int = 0
    words: int = 0
    script: str | None = None
    sample: list[str] = field(default_factory=list)
    lengths: array[int] = field(default_factory=lambda: array("I"))  # in characters, 0 where there is no text
    distinct: set[int] = field(default_factory=set)

    def look_at(self, head: Iterable[Side]) -> None:
        """Decide from the first lines what the side is written in."""
        self.sample = [text for text in map(text_of, head) if isinstance(text, str)]
        self.script = majority_script(self.sample)

    def add(self, text: str | Damage) -> None:
        """Count one line."""
        if isinstance(text, Damage):
            self.lengths.append(0)
            return
        self.lengths.append(len(text))
        self.characters += len(text)
        self.words += len(text.split())
        if len(self.distinct) < _DISTINCT_COUNTED:
            self.distinct.add(hash(text))


class ValidationPairs:
    """Hashes of the validation pairs, and which of them training met."""

    def __init__(self, paths: Sequence[str | Path], languages: Languages | None) -> None:
        records = read_records(paths, languages)
        self.source, self.target = (SideSurvey(name) for name in names_of(paths))
        self.pairs: Counter[int] = Counter()
        self.sources: Counter[int] = Counter()
        self._lines: dict[int, int] = {}  # where a source was met first
        self._met_pairs: set[int] = set()
        self._met_sources: set[int] = set()
        self.pair_examples = Tally()
        self.source_examples = Tally()
        for number, left, right in records:
            source, target = text_of(left), text_of(right)
            if not isinstance(source, Damage) and not isinstance(target, Damage):
                self._add(number, source, target)

    def _add(self, number: int, source: str, target: str) -> None:
        self.pairs[hash((source, target))] += 1
        self.sources[hash(source)] += 1
        self._lines.setdefault(hash(source), number)
        if len(self.source.sample) < _SAMPLED_LINES:
            self.source.sample.append(source)
            self.target.sample.append(target)

    def meet(self, source: str, target: str) -> None:
        """Note that training has this pair."""
        key = hash(source)
        if key not in self.sources:
            return
        where = f"{self.source.name}:{self._lines[key]}"
        if key not in self._met_sources:
            self._met_sources.add(key)
            self.source_examples.add(where, source, target)
        pair = hash((source, target))
        if pair in self.pairs and pair not in self._met_pairs:
            self._met_pairs.add(pair)
            self.pair_examples.add(where, source, target)

    @property
    def met_pairs(self) -> int:
        """Validation pairs that are in training, counted as often as validation has them."""
        return sum(self.pairs[key] for key in self._met_pairs)

    @property
    def met_sources(self) -> int:
        """Validation sources that are in training, with whatever translation."""
        return sum(self.sources[key] for key in self._met_sources)


class Survey:
    """Reads a corpus once. Memory: 24 bytes a pair, and whatever the held-out pairs need."""

    def __init__(
        self, paths: Sequence[str | Path], languages: Languages | None = None, held_out: ValidationPairs | None = None
    ) -> None:
        records = read_records(paths, languages)
        self.source, self.target = (SideSurvey(name) for name in names_of(paths))
        self.held_out = held_out
        self.unequal: tuple[int, int] | None = None
        self.usable = 0
        self.identical = 0
        self.numbers: array[int] = array("Q")
        self.hashes: array[int] = array("q")
        self.tallies: dict[str, Tally] = {}
        self._read(records)

    @property
    def pairs(self) -> int:
        """Lines that both sides have, or records of a single file."""
        return len(self.numbers)

    def _read(self, records: Iterator[Record]) -> None:
        records = self._until_one_ends(records)
        head = list(islice(records, _SAMPLED_LINES))
        self.source.look_at(source for _, source, _ in head)
        self.target.look_at(target for _, _, target in head)
        for number, left, right in chain(head, records):
            self._add(number, left, right)

    def _until_one_ends(self, records: Iterator[Record]) -> Iterator[Record]:
        try:
            yield from records
        except UnequalLengthError as error:
            self.unequal = error.lines

    def _add(self, number: int, left: Side, right: Side) -> None:
        source, target = text_of(left), text_of(right)
        self.numbers.append(number)
        self.hashes.append(hash((source, target)))
        self.source.add(source)
        self.target.add(target)
        if isinstance(source, Damage):
            self._note(_kind_of(source), self.source, number, left, right)
        elif isinstance(target, Damage):
            self._note(_kind_of(target), self.target, number, left, right)
        else:
            self.usable += 1
            self._judge(number, source, target)

    def _judge(self, number: int, source: str, target: str) -> None:
        for side, text in ((self.source, source), (self.target, target)):
            if is_garbled(text):
                self._note("encoding-damage", side, number, source, target)
                break
        for side, text in ((self.source, source), (self.target, target)):
            if lacks_script(text, side.script):
                self._note("wrong-script", side, number, source, target)
                break
        if source.strip() == target.strip():
            self.identical += 1
            if sum(map(str.isalpha, source)) >= _LETTERS_OF_A_COPY:
                self._note("copied-source", self.source, number, source, target)
        if self.held_out:
            self.held_out.meet(source, target)

    def _note(self, kind: str, side: SideSurvey, number: int, source: Side, target: Side) -> None:
        self.tallies.setdefault(kind, Tally()).add(f"{side.name}:{number}", source, target)


def _kind_of(damage: Damage) -> str:
    if damage is EMPTY:
        return "empty-side"
    if damage in (NOT_UNICODE, HAS_NUL):
        return "encoding-damage"
    return "too-long" if isinstance(damage, TooLong) else "malformed"


def excerpt(source: Side, target: Side) -> str:
    """Both sides on one line, clipped, and safe to print: what a terminal would act on is spelt out."""
    return f"{_shown(source)} | {_shown(target)}"


def _shown(side: Side) -> str:
    if isinstance(side, Damage):
        return f"({side.reason})"
    text = side.decode("utf-8", "backslashreplace") if isinstance(side, bytes) else side
    clipped = text if len(text) <= _EXCERPT_CHARACTERS else text[:_EXCERPT_CHARACTERS] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in clipped)
