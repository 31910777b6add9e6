"""Which outputs are doubtful: those whose score, or whose source, is unlike anything of the validation data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from jumok.engines.batching import TokenIds
from jumok.engines.options import SearchOptions
from jumok.search.hypothesis import Hypothesis

CARD_KEY = "confidence"
TAIL = 0.005  # share of the validation sentences beyond each bound: about a hundredth of good sentences is marked
MARGIN = 3.0  # standard errors by which the bounds are wider, because few sentences show little of the tails


@dataclass(frozen=True, slots=True)
class Confidence:
    """The bounds of what a model is used to, measured on validation sentences."""

    score: float  # the lowest mean log-probability of an output's tokens
    tokens_per_character: float  # the most of a source: words of another language or script are spelled out

    @classmethod
    def measure(cls, texts: Sequence[str], sources: TokenIds, hypotheses: Sequence[Hypothesis]) -> Self:
        """The bounds from translated validation sentences, of which there is at least one."""
        scores = np.array([_mean_log_prob(hypothesis, 1.0) for hypothesis in hypotheses])
        shares = np.array([tokens_per_character(*source) for source in zip(texts, sources, strict=True)])
        return cls(-_upper_bound(-scores), _upper_bound(shares))

    @classmethod
    def from_card(cls, card: Mapping[str, Any]) -> Self | None:
        """The bounds that a model's card names; None for a model of an earlier version."""
        values = card.get(CARD_KEY)
        if not isinstance(values, dict):
            return None
        score, tokens = values.get("score"), values.get("tokens_per_character")
        if not isinstance(score, int | float) or not isinstance(tokens, int | float):
            return None
        return cls(score, tokens)

    def to_card(self) -> dict[str, Any]:
        """What the card of the model says."""
        return {CARD_KEY: {name: round(value, 4) for name, value in asdict(self).items()}}

    def is_low(self, text: str, source: Sequence[int], output: Hypothesis, options: SearchOptions) -> bool:
        """Whether the output for this source is doubtful: cut off, or outside of the bounds."""
        outside = _mean_log_prob(output, options.length_penalty) < self.score
        return not output.finished or outside or tokens_per_character(text, source) > self.tokens_per_character


def tokens_per_character(text: str, source: Sequence[int]) -> float:
    """Tokens of a text for each of its characters, without white space and digits, which are always spelled out."""
    digits = sum(map(str.isdecimal, text))
    characters = len("".join(text.split())) - digits
    return max(0, len(source) - digits) / characters if characters else 0.0


def _mean_log_prob(output: Hypothesis, length_penalty: float) -> float:
    """The mean log-probability of the output's tokens, from its score."""
    length = len(output.ids) + output.finished
    return float(output.score * max(1, length) ** (length_penalty - 1))


def _upper_bound(values: npt.NDArray[np.float64]) -> float:
    median, high, bound = np.quantile(values, [0.5, 0.84, 1 - TAIL])
    return float(bound + MARGIN * (high - median) / math.sqrt(len(values)))
