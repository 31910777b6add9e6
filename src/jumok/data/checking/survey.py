"""What the check of a corpus is based on: totals, hashes, lengths and first examples, gathered in one pass."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from jumok.data.checking.side_languages import EXAMPLES, SideLanguages
from jumok.data.checking.symptoms import is_garbled, is_number, lacks_script, majority_script
from jumok.data.examples import Example, printable
from jumok.data.reading.lines import EMPTY, HAS_NUL, NOT_UNICODE, OTHER_LANGUAGES, Damage, Side, TooLong, is_not_meant

_SAMPLED_LINES = 2_000  # they decide which script a side is written in
_DISTINCT_COUNTED = 1_000  # texts of a side that are counted: more are no list of labels, nor nearly all the same
_LETTERS_OF_A_COPY = 10  # names, numbers and one-word answers may well be the same in both languages
_EXCERPT_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A place in a file, as file:line, and what is written there."""

    where: str
    excerpt: str


@dataclass(slots=True)
class Tally:
    """How many pairs have a problem, and the first few of them."""

    count: int = 0
    examples: list[Excerpt] = field(default_factory=list)

    def add(self, where: str, source: Side, target: Side) -> None:
        """Count one pair."""
        self.count += 1
        if len(self.examples) < EXAMPLES:
            self.examples.append(Excerpt(where, excerpt(source, target)))


@dataclass(slots=True)
class SideSurvey:
    """Statistics of all sources or all targets."""

    name: str
    characters: int = 0
    words: int = 0
    script: str | None = None
    sample: list[str] = field(default_factory=list)
    lengths: array[int] = field(default_factory=lambda: array("I"))  # in characters, 0 where there is no text
    numbers: int = 0  # texts that are numbers or identifiers
    texts: Counter[int] = field(default_factory=Counter)  # how often the first texts occur, by hash

    def add(self, text: str | Damage) -> None:
        """Count one line."""
        if isinstance(text, Damage):
            self.lengths.append(0)
            return
        self.lengths.append(len(text))
        self.characters += len(text)
        self.words += len(text.split())
        self.numbers += is_number(text)
        key = hash(text)
        if key in self.texts or len(self.texts) < _DISTINCT_COUNTED:
            self.texts[key] += 1


class Overlap:
    """Hashes of validation examples, and which of them were seen in the training corpus."""

    def __init__(self) -> None:
        self.counts: Counter[int] = Counter()
        self.tally = Tally()
        self._seen: set[int] = set()

    def see(self, key: int, where: str, source: str, target: str) -> None:
        """Note a hash of the training corpus; `where` is its place among the validation examples."""
        if key in self.counts and key not in self._seen:
            self._seen.add(key)
            self.tally.add(where, source, target)

    @property
    def in_training(self) -> int:
        """Number of validation examples that were seen; repeated ones count each time."""
        return sum(self.counts[key] for key in self._seen)


class ValidationPairs:
    """Which validation pairs, and which of their sources with any translation, are in the training corpus too."""

    def __init__(self, examples: Iterable[Example]) -> None:
        self.pairs, self.sources = Overlap(), Overlap()
        self.samples: tuple[list[str], list[str]] = ([], [])  # sources, targets
        self._where: dict[int, str] = {}  # the first place of each source
        for example in examples:
            source, target = example.inputs
            self.pairs.counts[hash((source, target))] += 1
            self.sources.counts[hash(source)] += 1
            self._where.setdefault(hash(source), example.where)
            if len(self.samples[0]) < _SAMPLED_LINES:
                self.samples[0].append(source)
                self.samples[1].append(target)

    def compare(self, source: str, target: str) -> None:
        """Look a training pair up among the validation pairs."""
        if (where := self._where.get(hash(source))) is not None:
            self.sources.see(hash(source), where, source, target)
            self.pairs.see(hash((source, target)), where, source, target)


class Survey:
    """Statistics of a corpus, gathered as it is read; then `finish`. Memory: 24 bytes a pair, 200 a validation pair."""

    def __init__(self, names: tuple[str, str], validation: ValidationPairs | None = None) -> None:
        self.source, self.target = (SideSurvey(name) for name in names)
        self.validation = validation
        self.unequal: tuple[int, int] | None = None  # numbers of lines of two files, where they differ
        self.open_quotes: list[str] = []  # places in CSV where a quoted field seems to contain rows
        self.side_languages = SideLanguages()
        self.usable = self.not_meant = 0
        self.identical = 0
        self.numbers: array[int] = array("Q")
        self.hashes: array[int] = array("q")
        self.tallies: dict[str, Tally] = {}
        self._head: list[tuple[int, Side, Side, str | Damage, str | Damage]] | None = []

    @property
    def pairs(self) -> int:
        """Lines that both sides have, or records of a single file."""
        return len(self.numbers)

    def add(self, number: int, left: Side, right: Side, source: str | Damage, target: str | Damage) -> None:
        """Count a record: its line, both sides as they are in the file, and as texts."""
        if self._head is not None:  # the first lines decide which script a side is written in
            self._head.append((number, left, right, source, target))
            if len(self._head) == _SAMPLED_LINES:
                self.finish()
            return
        self.numbers.append(number)
        self.hashes.append(hash((source, target)))
        self.source.add(source)
        self.target.add(target)
        self.not_meant += is_not_meant(source, target)
        if OTHER_LANGUAGES in (source, target):
            return
        if isinstance(source, Damage):
            self._note(_kind_of(source), self.source, number, left, right)
        elif isinstance(target, Damage):
            self._note(_kind_of(target), self.target, number, left, right)
        else:
            self.usable += 1
            self._judge(number, source, target)

    def finish(self) -> None:
        """Count the first records, which are kept until the scripts are known."""
        head, self._head = self._head or [], None
        if head:
            self.source.sample = [source for *_, source, _ in head if isinstance(source, str)]
            self.target.sample = [target for *_, target in head if isinstance(target, str)]
            self.source.script = majority_script(self.source.sample)
            self.target.script = majority_script(self.target.sample)
        for record in head:
            self.add(*record)

    def _judge(self, number: int, source: str, target: str) -> None:
        sides = ((self.source, source), (self.target, target))
        for side, text in sides:
            if is_garbled(text):
                self._note("encoding-damage", side, number, source, target)
                break
        for side, text in sides:
            if lacks_script(text, side.script):
                self._note("wrong-script", side, number, source, target)
                break
        if source.strip() == target.strip():
            self.identical += 1
            if sum(map(str.isalpha, source)) >= _LETTERS_OF_A_COPY:
                self._note("copied-source", self.source, number, source, target)
        self.side_languages.add(number, source, target)
        if self.validation:
            self.validation.compare(source, target)

    def _note(self, kind: str, side: SideSurvey, number: int, source: Side, target: Side) -> None:
        self.tallies.setdefault(kind, Tally()).add(f"{side.name}:{number}", source, target)


def _kind_of(damage: Damage) -> str:
    if damage is EMPTY:
        return "empty-side"
    if damage in (NOT_UNICODE, HAS_NUL):
        return "encoding-damage"
    return "too-long" if isinstance(damage, TooLong) else "malformed"


def excerpt(source: Side, target: Side) -> str:
    """Both sides in one line, clipped; control characters are escaped, so that it is safe to print."""
    return f"{_shown(source)} | {_shown(target)}"


def _shown(side: Side) -> str:
    if isinstance(side, Damage):
        return f"({side.reason})"
    text = side.decode("utf-8", "backslashreplace") if isinstance(side, bytes) else side
    clipped = text if len(text) <= _EXCERPT_CHARACTERS else text[:_EXCERPT_CHARACTERS] + "…"
    return printable(clipped)
