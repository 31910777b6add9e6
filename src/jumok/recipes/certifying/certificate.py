"""The comparison of an exported model with PyTorch on probes: what the tasks' `certify` share."""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jumok.bundle import Bundle
from jumok.data.store import TokenStore
from jumok.engines.batching import TokenIds
from jumok.errors import JumokError
from jumok.metrics.classification import ClassScores
from jumok.tokenizer import FIRST_PIECE, Tokenizer

MOST_PROBES = 500
TIE = 1e-3  # rounding may swap two tokens or classes whose scores differ by less
MOST_SCORE_DIFFERENCE = 1e-3  # in float32
RANDOM_SOURCES = 8  # short and long ones: no corpus has everything that may come
LONGEST_RANDOM_SOURCE = 80

Probes = Sequence[tuple[str, ...]]  # the inputs of each example: source and reference, or the one text


class ParityError(JumokError):
    """An exported model whose outputs differ from the original's."""


@dataclass(frozen=True)
class Certificate:
    """The result of a comparison."""

    sources: int
    equal: int  # identical outputs; for greedy search every token
    ties: int  # outputs that differ only because two tokens or classes were equally probable
    largest_score_difference: float  # of a token's log-probability, or of a class score
    example: dict[str, Any] | None  # of an output that differs


@dataclass(frozen=True)
class Export:
    """A converted model that is to be compared with the bundle it was made from."""

    bundle: Bundle
    directory: Path  # holds the CTranslate2 model
    quantization: str
    encoder: Any
    probes: Probes
    train: TokenStore | None = None  # the training examples, if they are still there

    @property
    def is_exact(self) -> bool:
        """Whether outputs must be equal but for rounding."""
        return self.quantization == "float32"

    def values(self, found: Certificate) -> dict[str, Any]:
        """The certificate as plain values; raises ParityError if an exact export differs."""
        if self.is_exact:
            require_parity(found)
        return asdict(found)

    def too_lossy(self, problem: str) -> ParityError:
        """The error for a model whose quantization changes its outputs too much."""
        return ParityError(
            f"Rounded to {self.quantization} the model {problem}. Nothing was exported; export it as float32."
        )


@dataclass(frozen=True)
class GreedyEngine:
    """What two engines are compared by."""

    greedy: Callable[[TokenIds], list[list[int]]]  # sources → the output of greedy search for each
    score: Callable[[TokenIds, TokenIds], list[list[float]]]  # sources, outputs → log-probabilities, the last of `</s>`


def compare(original: GreedyEngine, exported: GreedyEngine, sources: TokenIds) -> Certificate:
    """Compare the greedy outputs of both, and the log-probabilities that both give to the original's outputs."""
    expected, outputs = original.greedy(sources), exported.greedy(sources)
    scored = [index for index in range(len(sources)) if expected[index]]
    pairs = [sources[index] for index in scored], [expected[index] for index in scored]
    differences = [
        abs(one - other)
        for ours, theirs in zip(original.score(*pairs), exported.score(*pairs), strict=True)
        for one, other in zip(ours, theirs, strict=True)
    ]

    def is_tie(index: int) -> bool:
        """Whether the first tokens in which two outputs differ are equally probable to the original."""
        one, other = expected[index], outputs[index]
        shared = zip(one, other, strict=False)
        first = next((i for i, (a, b) in enumerate(shared) if a != b), min(len(one), len(other)))
        scores = original.score([sources[index]] * 2, [one[: first + 1], other[: first + 1]])
        return abs(scores[0][first] - scores[1][first]) < TIE

    return _certificate(sources, expected, outputs, is_tie, max(differences, default=0.0))


def compare_scores(original: ClassScores, exported: ClassScores, texts: TokenIds) -> Certificate:
    """Compare the scores [B, C] of both for the same texts; the output is the class with the highest."""
    expected, outputs = original.argmax(1).tolist(), exported.argmax(1).tolist()

    def is_tie(index: int) -> bool:
        return bool(original[index, expected[index]] - original[index, outputs[index]] < TIE)

    return _certificate(texts, expected, outputs, is_tie, float(np.abs(original - exported).max(initial=0)))


def _certificate(
    sources: TokenIds, expected: Sequence[Any], outputs: Sequence[Any], is_tie: Callable[[int], bool], largest: float
) -> Certificate:
    different = [index for index in range(len(sources)) if expected[index] != outputs[index]]
    wrong = [index for index in different if not is_tie(index)]
    example = None
    if wrong:
        example = {"source": list(sources[wrong[0]]), "expected": expected[wrong[0]], "found": outputs[wrong[0]]}
    equal, ties = len(sources) - len(different), len(different) - len(wrong)
    return Certificate(len(sources), equal, ties, largest, example)


def require_parity(found: Certificate) -> None:
    """Raise unless all outputs are equal except for ties, and all scores are close."""
    wrong = found.sources - found.equal - found.ties
    advice = 'Nothing was exported; use `engine="torch"` and report this.'
    if wrong:
        raise ParityError(
            f"The outputs of the exported model differ from PyTorch's for {wrong} of {found.sources} probes, "
            f"for example {found.example}. {advice}"
        )
    if found.largest_score_difference > MOST_SCORE_DIFFERENCE:
        raise ParityError(
            f"The exported model's scores differ from PyTorch's by up to {found.largest_score_difference:.2g}; "
            f"rounding explains at most {MOST_SCORE_DIFFERENCE:g}. {advice}"
        )


def random_sources(tokenizer: Tokenizer) -> list[list[int]]:
    """Sequences of random tokens, from short to long."""
    draw = random.Random(0)
    lengths = [1 + int(LONGEST_RANDOM_SOURCE ** (i / (RANDOM_SOURCES - 1))) for i in range(RANDOM_SOURCES)]
    return [[draw.randrange(FIRST_PIECE, tokenizer.size) for _ in range(length)] for length in lengths]
