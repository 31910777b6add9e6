"""What an engine is: lists of token ids in, hypotheses out, and the options that say how to search.

No torch here. Sources and targets are the tokenizer's ids, without `<s>` and `</s>`: each engine adds what its model
wants. Shape letters: S source tokens and `</s>`, T target tokens and `</s>`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from jumok.errors import ConfigError, did_you_mean
from jumok.search.hypothesis import Hypothesis

Matrix: TypeAlias = npt.NDArray[np.float32]

LIMIT_STEP = 16  # source lengths up to the next multiple share a limit
ROOM = 32  # tokens an output may have beyond its share of the source: a short word can need a long phrase
COLDEST = 0.001  # the lowest temperature but 0
SHORTEST_COUNTED = 8  # every row also carries a score for each word of the vocabulary, however short its source is


@dataclass(frozen=True, slots=True)
class Sampling:
    """Outputs drawn at random instead of searched for. What is drawn for a text depends on it and the seed alone."""

    temperature: float = 1.0  # below 1 safer, above 1 bolder
    top_k: int = 0  # only the so many most probable tokens; 0: all
    top_p: float = 1.0  # only the fewest tokens that have this probability together
    seed: int = 0

    def __post_init__(self) -> None:
        _require_number(self, "temperature", 0, math.inf)
        if 0 < self.temperature < COLDEST:  # what is divided by it would be beyond all numbers
            raise ConfigError(f"temperature is {self.temperature}; it must be 0 (no chance) or at least {COLDEST}.")
        _require_whole(self, "top_k", 0)
        _require_number(self, "top_p", 0, 1)
        if self.top_p == 0:
            raise ConfigError("top_p is 0; it must be above 0 and at most 1 (all tokens).")
        _require_whole(self, "seed", 0)


@dataclass(frozen=True)
class SearchOptions:
    """What an engine has to honour."""

    beam: int = 5  # hypotheses kept side by side; 1 is greedy search. Sampling has no beam
    n_best: int = 1  # how many outputs for each source; at most `beam`, or any number of samples
    length_penalty: float = 1.0  # scores are log-probability / length ** length_penalty
    no_repeat_ngram: int = 0  # no so many tokens in a row twice in an output; 0: no such rule
    max_ratio: float = 2.0  # the longest output has max_ratio * source tokens + 32: beyond that, it is lost in a loop
    sampling: Sampling | None = None
    batch_tokens: int = 4096  # padded source tokens * beam that go through the model at a time; changes no output

    def __post_init__(self) -> None:
        _require_whole(self, "beam", 1)
        _require_whole(self, "n_best", 1)
        if self.n_best > self.beam and self.sampling is None:
            raise ConfigError(
                f"n_best is {self.n_best}, more than the beam of {self.beam}. Use a beam as wide, or less."
            )
        _require_number(self, "length_penalty", 0, math.inf)
        _require_whole(self, "no_repeat_ngram", 0)
        _require_number(self, "max_ratio", 0, math.inf)
        _require_whole(self, "batch_tokens", 1)
        if self.sampling is not None and not isinstance(self.sampling, Sampling):
            raise ConfigError(f"sampling is {self.sampling!r}; it must be Sampling(temperature=…, …) or None.")

    @property
    def rows(self) -> int:
        """Hypotheses of one source that go through the model side by side."""
        return self.beam if self.sampling is None else self.n_best


@dataclass(frozen=True)
class DecodingOptions(SearchOptions):
    """How texts are translated: how the engine searches, and what is asked of the text that comes out."""

    prefix: str = ""  # every output begins with it
    # Word or piece of the vocabulary → added to its log-probability wherever it could stand; "▁" marks a word's start.
    bias: Mapping[str, float] = field(default_factory=dict)
    segment_tokens: int | None = None  # a longer line is split at sentence ends; None: at what the model is used to
    resolve_loops: bool = True  # a second attempt for outputs that repeat themselves or do not end
    alignment: bool = False  # which piece comes from which

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.prefix, str) or "\n" in self.prefix:
            raise ConfigError(f"prefix is {self.prefix!r}; it must be text of one line.")
        for word, value in self.bias.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ConfigError(f'The bias of "{word}" is {value!r}; it must be a finite number.')
        if self.segment_tokens is not None:
            _require_whole(self, "segment_tokens", SHORTEST_COUNTED)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Options by name. An unknown name is an error that says which was meant."""
        known = [field.name for field in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f'Unknown option "{name}".{did_you_mean(name, known)}')
        return cls(**values)


class TokenEngine(Protocol):
    """Runs a translator. Results come in the order of the sources, and do not depend on what else is asked for."""

    @property
    def longest(self) -> int | None:
        """The most tokens a source or an output can have, `</s>` not counted; None: any number."""
        ...

    def generate(
        self,
        sources: Sequence[Sequence[int]],
        options: SearchOptions,
        *,
        prefixes: Sequence[Sequence[int]] | None = None,
        bias: Mapping[int, float] | None = None,
    ) -> list[list[Hypothesis]]:
        """The `n_best` outputs for each source, best first."""
        ...

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        """The log-probability of every token of each target, and last that of its `</s>`."""
        ...

    def align(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Matrix]:
        """For each pair a matrix [T, S]: how much of each source token went into each target token. Rows sum to 1."""
        ...


def longest_output(source: int, prefix: int, options: SearchOptions, longest: int | None) -> int:
    """The most tokens an output may have, for so many tokens of source and of forced prefix.

    Sources of about the same length have the same limit, so that an engine that knows one limit can take them at once.
    """
    source = -(-source // LIMIT_STEP) * LIMIT_STEP
    limit = max(math.ceil(options.max_ratio * source), prefix) + ROOM
    return limit if longest is None else min(limit, longest)


def sorted_batches(lengths: Sequence[int], budget: int, rows: int = 1) -> list[list[int]]:
    """Indices of `lengths` in batches of similar length: the longest in it * its size * rows is within the budget.

    The longest come first, so that what does not fit into memory fails at once. A source that is over the budget all by
    itself has a batch of its own.
    """
    batches: list[list[int]] = []
    room = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not batches or len(batches[-1]) == room:
            batches.append([])
            room = max(1, budget // (max(lengths[index], SHORTEST_COUNTED) * rows))
        batches[-1].append(index)
    return batches


def to_unit_length(vectors: Matrix) -> Matrix:
    """The vectors [B, D], each divided by its length; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: Matrix = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return result


def _require_whole(options: object, name: str, least: int) -> None:
    value = getattr(options, name)
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigError(f"{name} is {value!r}; it must be a whole number, at least {least}.")


def _require_number(options: object, name: str, least: float, most: float) -> None:
    value = getattr(options, name)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most:
        upper = f" and at most {most:g}" if math.isfinite(most) else ""
        raise ConfigError(f"{name} is {value!r}; it must be a number, at least {least:g}{upper}.")
