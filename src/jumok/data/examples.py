"""Examples: what a model is trained and validated on, how they are encoded, and which of them cannot be used."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeAlias

_PLACES_PER_REASON = 5
_MOST_LEFT_OUT = 1 / 3  # of a file: if it is more, the file is not what it was taken for


class Example(NamedTuple):
    """One training or validation example."""

    inputs: tuple[Any, ...]  # JSON values, one for each column of its kind: a text, a source and its translation, …
    where: str  # file:line
    label: str = ""


class InputEncoder(Protocol):
    """Turns inputs into sequences of ids. `Tokenizer` is the one for texts."""

    @classmethod
    def from_bytes(cls, data: bytes, origin: str) -> Self:
        """Read what `to_bytes` wrote; `origin` names the file in errors. Raises BundleError if it is damaged."""

    def to_bytes(self) -> bytes:
        """The encoder as the content of a file."""

    @property
    def size(self) -> int:
        """Number of ids: every id is below it."""

    def encode(self, inputs: Sequence[Any], /) -> list[list[int]]:
        """The ids of each input, without `<s>` and `</s>`."""


def printable(text: str) -> str:
    """The text with control characters escaped, so that it is safe to print."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a key of JSON objects, that is read."""

    number: int | None  # counted from 1; None for a key
    name: str = ""
    language: str | None = None  # that it is named after

    def __str__(self) -> str:
        place = "" if self.number is None else f"column {self.number}"
        return " ".join(filter(None, (place, f'"{printable(self.name)}"' if self.name else "")))


@dataclass(slots=True)
class FileLayout:
    """How a file was read, as far as it was found out: what its columns are, and how it is written."""

    file: str
    columns: dict[str, Column] = field(default_factory=dict)  # by what they hold: "source", "label" …
    unused: list[Column] = field(default_factory=list)
    has_header: bool | None = None  # None: not a table
    separator: str = ""  # of columns, in CSV
    quotes: str = ""  # around fields, in CSV: "single", if they are not double
    sheet: str = ""
    encoding: str = ""  # if it is not UTF-8
    pictures: str = ""  # how many there are, and how they are fitted into one shape
    suspicious_lines: list[int] = field(default_factory=list)  # of CSV: a quote seems to be closed in a later row only

    def describe(self) -> str:
        """In one line; empty if there is nothing to say, as of text in UTF-8."""
        facts = [", ".join(f"{role} = {column}" for role, column in self.columns.items())]
        if self.unused:
            facts.append(f"not used: {', '.join(map(str, self.unused))}")
        if self.has_header is False:
            facts.append("no header")
        for name, value in (("sheet", self.sheet), ("separator", self.separator)):
            facts += [f'{name} "{value}"'] if value else []
        facts += [f"fields in {self.quotes} quotes"] if self.quotes else []
        facts += [f"encoding {self.encoding}"] if self.encoding else []
        facts.append(self.pictures)
        said = "; ".join(filter(None, facts))
        return f"{self.file}: {said}" if said else ""

    def to_json(self) -> dict[str, Any]:
        """As plain values, with the description."""
        return {**asdict(self), "what": self.describe()}


@dataclass(slots=True)
class Rejections:
    """How many examples cannot be used, by reason, and where the first of each are; `log` is called for every one.
    And how the files were read."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    not_meant: int = 0  # of these, what is no example, such as a blank line or another language: nothing is lost
    lines_used: int = 0  # counted by a reader whose examples are made of several lines
    layouts: list[FileLayout] = field(default_factory=list, compare=False)  # one for each file that was read
    log: Callable[[str, str], None] | None = field(default=None, repr=False, compare=False)  # reason, where

    def add(self, reason: str, where: str, detail: str = "") -> None:
        """Count one example that is left out. `detail` is about this one alone: only the log has it."""
        if self.log is not None:
            self.log(f"{reason} ({detail})" if detail else reason, where)
        self.counts[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _PLACES_PER_REASON:
            examples.append(where)

    def add_not_meant(self, reason: str, where: str) -> None:
        """Count something that is left out and is no example."""
        self.not_meant += 1
        self.add(reason, where)

    @property
    def total(self) -> int:
        """Number of examples left out, for any reason."""
        return self.counts.total()

    @property
    def lost(self) -> int:
        """Number of examples left out, without those that are not meant."""
        return self.total - self.not_meant

    def to_json(self) -> dict[str, Any]:
        """The counts and first places as plain values."""
        reasons = {reason: {"count": n, "examples": self.examples[reason]} for reason, n in self.counts.items()}
        return {"total": self.total, "reasons": reasons}

    def render(self) -> str:
        """One line for each reason, the most frequent first; empty if nothing was left out."""
        return "\n".join(describe_reasons(self.to_json()["reasons"]))


def too_many_left_out(left_out: int, used: int) -> bool:
    """Whether so much of a file cannot be used that training on the rest is probably not what is wanted."""
    return left_out > _MOST_LEFT_OUT * (left_out + used)


def describe_reasons(reasons: Mapping[str, Any]) -> Iterator[str]:
    """One line for each of the "reasons" of `Rejections.to_json`, the most frequent first."""
    for reason, found in sorted(reasons.items(), key=lambda item: -item[1]["count"]):
        more = ", …" if found["count"] > len(found["examples"]) else ""
        yield f"{found['count']:,} × {reason}: {', '.join(found['examples'])}{more}"


Paths: TypeAlias = Sequence[str | Path]
ExampleReader: TypeAlias = Callable[[Paths, Rejections], Iterator[Example]]
EncoderLearner: TypeAlias = Callable[[Callable[[], Iterator[Example]], int | None, int], tuple[InputEncoder, str]]


class ExampleCheck(Protocol):
    """Looks for what is wrong with a corpus while it is read."""

    def read(self, rejections: Rejections) -> Iterator[Example]:
        """The usable examples of the corpus."""

    def findings(self) -> list[dict[str, Any]]:
        """After `read`: what is suspicious (`kind`, `what`, `count`, `where`, `advice`). InputError if it is fatal."""


@dataclass(frozen=True, kw_only=True)
class ExampleKind:
    """What the examples of a task are, how they are read, and how their encoder is made."""

    name: str  # of the examples, in messages: "pairs"
    columns: tuple[str, ...]  # names of the inputs of an example
    pictures: tuple[str, ...] = ()  # columns of pictures (see `picture_to_text`): stored as bytes, not encoded
    files: str  # what may be given, in messages
    read: ExampleReader  # files → examples; unusable ones are added to the rejections
    learn_encoder: EncoderLearner  # training examples (each call reads them anew), size if given, seed → encoder, why
    check: Callable[[Paths, Iterable[Example] | None], ExampleCheck] | None = None  # files, validation
    encoder: str = "tokenizer"  # key of `jumok.tasks.ENCODERS`
    longest: int | None = None  # most ids of an input; examples with a longer one are left out
    labelled: bool = False
    variant: tuple[str, ...] = ()  # further choices that decide what is read, such as two languages of several
    reading: Mapping[str, Any] = field(default_factory=dict)  # the same by name, for run.json and messages
