"""The comparison of an exported model with PyTorch on probes: what the tasks' `certify` share.

Every token is compared, and texts of up to LONGEST_PROBE tokens, so that no wrong weight goes unnoticed.
An int8 model is compared twice: computed in float32 it must equal PyTorch with the weights rounded in the same way, and
computed in int8 it must be hardly worse than the original.
"""

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from jumok.bundle import Bundle
from jumok.data.store import TokenStore
from jumok.engines.batching import TokenIds
from jumok.errors import JumokError
from jumok.metrics.classification import ClassScores
from jumok.tokenizer import EOS, FIRST_PIECE, Tokenizer

MOST_PROBES = 500
TIE = 1e-3  # rounding may swap two tokens or classes whose scores differ by less
MOST_SCORE_DIFFERENCE = 1e-3  # in float32
MOST_ROUNDING = 4  # times the rounding errors of PyTorch itself: those of CTranslate2 are others, but of the same size
RANDOM_SOURCES = 8  # short and long ones: no corpus has everything that may come
LONGEST_RANDOM_SOURCE = 80
LONGEST_PROBE = 2047  # tokens; the time and memory of attention grow with the square

EXACT = "float32"  # quantization and type of computation that change a model by rounding errors alone
LARGEST_INT8 = 127  # what the largest weight of a row becomes

Engine = TypeVar("Engine", bound=Any)  # a `TorchEngine`
Scores = npt.NDArray[Any]
Probes = Sequence[tuple[str, ...]]  # the inputs of each example: source and reference, or the one text
ADVICE = 'Nothing was exported; use `engine="torch"` and report this.'


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
        """Whether outputs must be equal but for rounding errors."""
        return self.quantization == EXACT

    def reference(self, kind: type[Engine]) -> Engine:
        """The PyTorch engine that the exported model equals if it computes in float32: with rounded weights."""
        engine: Engine = kind.from_bundle(self.bundle)
        if not self.is_exact:
            round_weights(engine.model)
        return engine

    def too_lossy(self, problem: str) -> ParityError:
        """The error for a model whose quantization changes its outputs too much."""
        return ParityError(
            f"Rounded to {self.quantization} the model {problem}. Nothing was exported; export it as float32."
        )


@dataclass(frozen=True)
class GreedyEngine:
    """What two engines are compared by."""

    # Sources, the first tokens of their outputs → the outputs of greedy search, with `</s>` if they have ended.
    greedy: Callable[[TokenIds, TokenIds], list[list[int]]]
    score: Callable[[TokenIds, TokenIds], list[list[float]]]  # sources, outputs → log-probabilities, the last of `</s>`


def compare(original: GreedyEngine, exported: GreedyEngine, sources: TokenIds) -> Certificate:
    """Compare the greedy outputs of both, and the log-probabilities that both give to the original's outputs."""
    nothing: TokenIds = [()] * len(sources)
    expected, outputs = original.greedy(sources, nothing), exported.greedy(sources, nothing)
    scored = [index for index in range(len(sources)) if _text(expected[index])]
    pairs = [sources[index] for index in scored], [_text(expected[index]) for index in scored]
    largest = largest_difference(flat(original.score(*pairs)) - flat(exported.score(*pairs)))

    def is_tie(index: int) -> bool:
        return _differ_by_ties(original, sources[index], expected[index], outputs[index])

    return _certificate(sources, list(map(_text, expected)), list(map(_text, outputs)), is_tie, largest)


def _differ_by_ties(original: GreedyEngine, source: Sequence[int], expected: list[int], output: list[int]) -> bool:
    """Whether wherever `output` leaves the path of the original, its token is as probable to the original as the best.
    After each such token the original goes on from there."""
    longest = max(len(expected), len(output))  # both have ended, or have as many tokens as they may
    while _text(expected) != _text(output):
        first = next((i for i, (a, b) in enumerate(zip(expected, output, strict=False)) if a != b), None)
        if first is None:  # one is cut off
            return False
        best, chosen = original.score([source] * 2, [_text(row[: first + 1]) for row in (expected, output)])
        if not best[first] - chosen[first] < TIE:
            return False
        if output[first] == EOS:
            return True
        [expected] = original.greedy([source], [output[: first + 1]])
        expected = expected[:longest]
    return True


def _text(output: Sequence[int]) -> list[int]:
    """An output without the `</s>` that may end it."""
    return [token for token in output if token != EOS]


def compare_scores(original: ClassScores, exported: ClassScores, texts: TokenIds) -> Certificate:
    """Compare the scores [B, C] of both for the same texts; the output is the class with the highest."""
    expected, outputs = original.argmax(1).tolist(), exported.argmax(1).tolist()

    def is_tie(index: int) -> bool:
        return bool(original[index, expected[index]] - original[index, outputs[index]] < TIE)

    return _certificate(texts, expected, outputs, is_tie, largest_difference(original - exported))


def flat(rows: Sequence[Sequence[float]]) -> Scores:
    """The numbers of all rows in one array."""
    return np.array([number for row in rows for number in row])


def largest_difference(differences: Scores) -> float:
    """The largest absolute value; NaN if there is one: no number is close to it."""
    return float(np.abs(differences).max(initial=0.0))


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


def require_parity(found: Certificate) -> Certificate:
    """Raise unless all outputs are equal except for ties, and all scores are close."""
    wrong = found.sources - found.equal - found.ties
    if wrong:
        raise ParityError(
            f"The outputs of the exported model differ from PyTorch's for {wrong} of {found.sources} probes, "
            f"for example {found.example}. {ADVICE}"
        )
    if not found.largest_score_difference <= MOST_SCORE_DIFFERENCE:
        raise _not_close("scores", found.largest_score_difference, MOST_SCORE_DIFFERENCE)
    return found


def require_close(what: str, measure: Callable[[Any], Scores], original: Any, exported: Any) -> None:
    """Raise unless what is measured of both engines differs by rounding errors alone. Some models enlarge them: then
    the original in float64 shows by how much."""
    expected = measure(original)
    found = largest_difference(expected - measure(exported))
    if found <= MOST_SCORE_DIFFERENCE:
        return
    precise = type(original)(copy.deepcopy(original.model).double())
    explained = MOST_ROUNDING * largest_difference(expected - measure(precise))
    if not found <= explained:
        raise _not_close(what, found, max(explained, MOST_SCORE_DIFFERENCE))


def _not_close(what: str, found: float, explained: float) -> ParityError:
    return ParityError(
        f"The exported model's {what} differ from PyTorch's by up to {found:.2g}; "
        f"rounding explains at most {explained:.2g}. {ADVICE}"
    )


def round_weights(model: Any) -> None:
    """Round the weights of a PyTorch model that CTranslate2 stores as int8, row by row, as it does."""
    for name, weight in model.named_parameters():
        if weight.dim() == 2 and name.startswith(("embed.tokens.", "encoder.", "decoder.")):
            largest = weight.abs().amax(1, keepdim=True).clamp(min=1e-30)
            # Not LARGEST_INT8 / largest: PyTorch would multiply by the reciprocal and may round the other way.
            scale = largest.new_full((), LARGEST_INT8) / largest
            weight.copy_((weight * scale).round() / scale)


def random_sources(tokenizer: Tokenizer) -> list[list[int]]:
    """Sequences of random tokens, from short to long."""
    draw = random.Random(0)
    lengths = [1 + int(LONGEST_RANDOM_SOURCE ** (i / (RANDOM_SOURCES - 1))) for i in range(RANDOM_SOURCES)]
    return [[draw.randrange(FIRST_PIECE, tokenizer.size) for _ in range(length)] for length in lengths]


def covering_texts(tokenizer: Tokenizer, longest: int) -> list[list[int]]:
    """Texts with every token and every position: a random one of `longest` tokens, then all tokens in random order."""
    longest = min(longest, LONGEST_PROBE)
    draw = random.Random(1)
    tokens = list(range(EOS + 1, tokenizer.size))  # those of single bytes too
    draw.shuffle(tokens)
    size = min(longest, LONGEST_RANDOM_SOURCE)
    return [draw.choices(tokens, k=longest), *(tokens[i : i + size] for i in range(0, len(tokens), size))]
