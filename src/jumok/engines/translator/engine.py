"""The interface of engines that run a translator: token ids in, hypotheses out. No torch here.
Sources and targets are the tokenizer's ids, without `<s>` and `</s>`: each engine adds what its model needs.
Shape letters: B texts, S source tokens and `</s>`, T target tokens and `</s>`, D d_model."""

import math
from collections.abc import Mapping
from typing import Protocol, TypeAlias

from jumok.engines.batching import FloatMatrix, TokenIds
from jumok.engines.options import SearchOptions
from jumok.search.hypothesis import Hypothesis

Bias: TypeAlias = Mapping[int, float]  # id → added to its log-probability at every step

LIMIT_STEP = 16  # source lengths up to the next multiple share a limit
ROOM = 32  # tokens an output may have beyond its share of the source: a short word can need a long phrase


class TranslatorEngine(Protocol):
    """Runs a translator. Results are in the order of the sources; each is independent of the others in the call."""

    @property
    def longest(self) -> int | None:
        """The most tokens a source or an output can have, `</s>` not counted; None: no limit."""

    def generate(
        self, sources: TokenIds, options: SearchOptions, *, prefixes: TokenIds | None = None, bias: Bias | None = None
    ) -> list[list[Hypothesis]]:
        """The `n_best` outputs for each source, best first."""

    def score(self, sources: TokenIds, targets: TokenIds) -> list[list[float]]:
        """The log-probabilities of every target's tokens; the last one is that of `</s>`."""

    def align(self, sources: TokenIds, targets: TokenIds) -> list[FloatMatrix]:
        """For each pair a matrix [T, S] of attention weights; rows sum to 1."""

    def vectors(self, texts: TokenIds) -> FloatMatrix:
        """Sentence vectors [B, D] of length 1 from the encoder; zeros for a text without any token."""


def longest_output(source: int, prefix: int, options: SearchOptions, longest: int | None) -> int:
    """The most tokens an output may have, given the number of source tokens and of forced prefix tokens.
    Sources of similar length have the same limit, so that an engine with one limit a batch can take them together."""
    source = -(-source // LIMIT_STEP) * LIMIT_STEP
    limit = max(math.ceil(options.max_ratio * source), prefix) + ROOM
    return limit if longest is None else min(limit, longest)
