"""Examples: what a model is trained and validated on, how they are encoded, and which of them cannot be used."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Rejections:
    """How many examples cannot be used, by reason, and where the first of each are; `log` is called for every one."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=dict)
    not_meant: int = 0  # of these, blank lines and records in other languages than those chosen: nothing is lost
    lines_used: int = 0  # counted by a reader whose examples are made of several lines
    unused_columns: list[str] = field(default_factory=list)  # of a table: number and name of each
    log: Callable[[str, str], None] | None = field(default=None, repr=False, compare=False)  # reason, where

    def add(self, reason: str, where: str) -> None:
        """Count one example that is left out."""
        if self.log is not None:
            self.log(reason, where)
        self.counts[reason] += 1
        examples = self.examples.setdefault(reason, [])
        if len(examples) < _PLACES_PER_REASON:
            examples.append(where)

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
    files: str  # what may be given, in messages
    read: ExampleReader  # files → examples; unusable ones are added to the rejections
    learn_encoder: EncoderLearner  # training examples (each call reads them anew), size if given, seed → encoder, why
    check: Callable[[Paths, Sequence[Example] | None], ExampleCheck] | None = None  # files, validation
    encoder: str = "tokenizer"  # key of `jumok.tasks.ENCODERS`
    longest: int | None = None  # most ids of an input; examples with a longer one are left out
    labelled: bool = False
    variant: tuple[str, ...] = ()  # further choices that decide what is read, such as two languages of several
