"""The proof that an exported model answers as the one it was made from: compared with PyTorch on a probe set."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from jumok.engines.engine import SearchOptions, TokenEngine
from jumok.engines.language_model.text import GenerationOptions, LanguageEngine
from jumok.errors import JumokError
from jumok.metrics.classification import Scores
from jumok.tokenizer import FIRST_PIECE, Tokenizer

GREEDY = SearchOptions(beam=1, max_ratio=1.0)  # a model may not come to an end of what is made up
TIE = 1e-3  # two tokens or classes whose scores differ by less may change places by rounding
MOST_SCORE_DIFFERENCE = 1e-3  # in float32
MADE_UP = 8  # sources of random pieces, short and long: no corpus has all that may come
LONGEST_MADE_UP = 80

Ids = Sequence[Sequence[int]]


class ParityError(JumokError):
    """An exported model that does not answer as its original."""


@dataclass(frozen=True)
class Certificate:
    """What was compared and found."""

    sources: int
    equal: int  # answers that are the same; of greedy outputs every token
    ties: int  # that differ only because two tokens or classes were equally probable
    largest_score_difference: float  # of a token's log-probability, or of a class's score
    example: dict[str, Any] | None  # of an answer that differs

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Probed:
    """What two engines are compared by."""

    greedy: Callable[[Ids], list[list[int]]]  # sources → the output of greedy search for each
    score: Callable[[Ids, Ids], list[list[float]]]  # sources, outputs → log-probabilities, the last one of `</s>`


def translations(engine: TokenEngine) -> Probed:
    """Of sentences."""
    return Probed(lambda sources: [found[0].ids for found in engine.generate(sources, GREEDY)], engine.score)


def continuations(engine: LanguageEngine, tokens: int) -> Probed:
    """Of prompts, by so many tokens."""
    options = GenerationOptions(max_tokens=tokens, temperature=0)

    def score(prompts: Ids, outputs: Ids) -> list[list[float]]:
        texts = [[*prompt, *output] for prompt, output in zip(prompts, outputs, strict=True)]
        return [row[len(prompt) :] for prompt, row in zip(prompts, engine.score(texts), strict=True)]

    return Probed(lambda prompts: [engine.generate(prompt, options) for prompt in prompts], score)


def compare(original: Probed, exported: Probed, sources: Ids) -> Certificate:
    """Greedy outputs of both, and the log-probabilities that both give to the original's."""
    expected, answers = original.greedy(sources), exported.greedy(sources)
    different = [place for place in range(len(sources)) if expected[place] != answers[place]]
    ties = [place for place in different if _is_tie(original, sources[place], expected[place], answers[place])]
    wrong = [place for place in different if place not in ties]
    example = None
    if wrong:
        place = wrong[0]
        example = {"source": list(sources[place]), "expected": expected[place], "found": answers[place]}
    scored = [place for place in range(len(sources)) if expected[place]]
    pairs = [sources[place] for place in scored], [expected[place] for place in scored]
    differences = [
        abs(one - other)
        for ours, theirs in zip(original.score(*pairs), exported.score(*pairs), strict=True)
        for one, other in zip(ours, theirs, strict=True)
    ]
    return Certificate(
        len(sources),
        len(sources) - len(different),
        len(ties),
        max(differences, default=0.0),
        example,
    )


def compare_scores(original: Scores, exported: Scores, texts: Ids) -> Certificate:
    """The scores [B, C] of both for the same texts; the answer is the class with the best."""
    expected, answers = original.argmax(1).tolist(), exported.argmax(1).tolist()
    different = [place for place in range(len(texts)) if expected[place] != answers[place]]
    wrong = [place for place in different if original[place, expected[place]] - original[place, answers[place]] >= TIE]
    example = None
    if wrong:
        place = wrong[0]
        example = {"source": list(texts[place]), "expected": expected[place], "found": answers[place]}
    largest = float(np.abs(original - exported).max(initial=0))
    return Certificate(len(texts), len(texts) - len(different), len(different) - len(wrong), largest, example)


def require_parity(found: Certificate) -> None:
    """Raises unless every output is the same but for ties, and all scores are close."""
    wrong = found.sources - found.equal - found.ties
    advice = "Nothing was exported; use --engine torch and report this."
    if wrong:
        raise ParityError(
            f"The exported model answers otherwise than PyTorch to {wrong} of {found.sources} probes, "
            f"for example {found.example}. {advice}"
        )
    if found.largest_score_difference > MOST_SCORE_DIFFERENCE:
        raise ParityError(
            f"The exported model's scores differ from PyTorch's by up to {found.largest_score_difference:.2g}; "
            f"at most {MOST_SCORE_DIFFERENCE:g} is rounding. {advice}"
        )


def made_up_sources(tokenizer: Tokenizer, seed: int = 0) -> list[list[int]]:
    """Random pieces, some few and some many."""
    draw = random.Random(seed)
    lengths = [1 + int(LONGEST_MADE_UP ** (place / (MADE_UP - 1))) for place in range(MADE_UP)]
    return [[draw.randrange(FIRST_PIECE, tokenizer.size) for _ in range(length)] for length in lengths]


def _is_tie(original: Probed, source: Sequence[int], expected: list[int], found: list[int]) -> bool:
    """Whether the first tokens in which two outputs differ are equally probable to the original."""
    place = next((i for i, (one, other) in enumerate(zip(expected, found, strict=False)) if one != other), None)
    if place is None:
        place = min(len(expected), len(found))
    rows = [output[: place + 1] for output in (expected, found)]
    scores = original.score([source, source], rows)
    return abs(scores[0][place] - scores[1][place]) < TIE
