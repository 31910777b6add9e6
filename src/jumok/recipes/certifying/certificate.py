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
    different = [index for index in range(len(sources)) if expected[index] != outputs[index]]
    ties = [index for index in different if _is_tie(original, sources[index], expected[index], outputs[index])]
    wrong = [index for index in different if index not in ties]
    scored = [index for index in range(len(sources)) if expected[index]]
    pairs = [sources[index] for index in scored], [expected[index] for index in scored]
    differences = [
        abs(one - other)
        for ours, theirs in zip(original.score(*pairs), exported.score(*pairs), strict=True)
        for one, other in zip(ours, theirs, strict=True)
    ]
    example = _example(wrong, sources, expected, outputs)
    return Certificate(len(sources), len(sources) - len(different), len(ties), max(differences, default=0.0), example)


def compare_scores(original: ClassScores, exported: ClassScores, texts: TokenIds) -> Certificate:
    """Compare the scores [B, C] of both for the same texts; the output is the class with the highest."""
    expected, outputs = original.argmax(1).tolist(), exported.argmax(1).tolist()
    different = [index for index in range(len(texts)) if expected[index] != outputs[index]]
    wrong = [index for index in different if original[index, expected[index]] - original[index, outputs[index]] >= TIE]
    largest = float(np.abs(original - exported).max(initial=0))
    example = _example(wrong, texts, expected, outputs)
    return Certificate(len(texts), len(texts) - len(different), len(different) - len(wrong), largest, example)


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


def random_sources(tokenizer: Tokenizer, seed: int = 0) -> list[list[int]]:
    """Sequences of random tokens, from short to long."""
    draw = random.Random(seed)
    lengths = [1 + int(LONGEST_RANDOM_SOURCE ** (i / (RANDOM_SOURCES - 1))) for i in range(RANDOM_SOURCES)]
    return [[draw.randrange(FIRST_PIECE, tokenizer.size) for _ in range(length)] for length in lengths]


def _example(wrong: list[int], sources: TokenIds, expected: Sequence[Any], outputs: Sequence[Any]) -> Any:
    if not wrong:
        return None
    first = wrong[0]
    return {"source": list(sources[first]), "expected": expected[first], "found": outputs[first]}


def _is_tie(original: GreedyEngine, source: Sequence[int], expected: list[int], found: list[int]) -> bool:
    """Whether the first tokens in which two outputs differ are equally probable to the original."""
    pairs = enumerate(zip(expected, found, strict=False))
    first = next((i for i, (one, other) in pairs if one != other), min(len(expected), len(found)))
    rows = [output[: first + 1] for output in (expected, found)]
    scores = original.score([source, source], rows)
    return abs(scores[0][first] - scores[1][first]) < TIE
