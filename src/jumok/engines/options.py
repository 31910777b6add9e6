"""Options of search, sampling, decoding and generation, checked when they are made. No torch here."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypedDict

from jumok.errors import ArgumentError, ConfigError, did_you_mean

LOWEST_TEMPERATURE = 0.001  # except 0
SHORTEST_SEGMENT = 8  # tokens


class _Options:
    """Base of all options: they can be made by name, with a helpful error for a wrong one."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Options by name. An unknown name is an ArgumentError that says which one is meant."""
        cls._require_known(values)
        return cls(**values)

    def changed(self, **values: Any) -> Self:
        """These options with other values for some, by name as in `of`."""
        self._require_known(values)
        return replace(self, **values)  # type: ignore[type-var]

    @classmethod
    def _require_known(cls, values: Mapping[str, Any]) -> None:
        known = [field.name for field in fields(cls)]  # type: ignore[arg-type]
        for name, value in values.items():
            if name in known:
                continue
            advice = did_you_mean(name, known)
            if "sampling" in known and name in [field.name for field in fields(Sampling)]:
                advice = f" It is an option of sampling: `sampling=jumok.Sampling({name}={value!r})`."
            raise ArgumentError(f'Unknown option "{name}".{advice}')


@dataclass(frozen=True)
class Sampling(_Options):
    """Random outputs instead of search. The sample for a text depends only on the text and the seed."""

    temperature: float = 1.0  # below 1 more conservative, above 1 more random, 0 greedy
    top_k: int = 0  # sample from this many most probable tokens; 0: all
    top_p: float = 1.0  # sample from the smallest set of tokens with this total probability
    seed: int = 0

    def __post_init__(self) -> None:
        require_number(self, "temperature", 0, math.inf)
        if 0 < self.temperature < LOWEST_TEMPERATURE:  # dividing by less would overflow
            raise ConfigError(
                f"temperature is {self.temperature}; it must be 0 (greedy) or at least {LOWEST_TEMPERATURE}."
            )
        require_integers(self, 0, "top_k", "seed")
        require_number(self, "top_p", 0, 1)
        if self.top_p == 0:
            raise ConfigError("top_p is 0; it must be above 0 and at most 1 (all tokens).")


@dataclass(frozen=True)
class SearchOptions(_Options):
    """How an engine searches for the best outputs."""

    beam: int = 5  # beam width; 1 is greedy search. Not used when sampling
    n_best: int = 1  # outputs for each source; at most `beam`, or any number of samples
    length_penalty: float = 1.0  # scores are log-probability / length ** length_penalty
    no_repeat_ngram: int = 0  # no n-gram of this length twice in an output; 0: no such rule
    max_ratio: float = 2.0  # the longest output has max_ratio * source tokens + 32 tokens
    sampling: Sampling | None = None
    batch_tokens: int = 4096  # padded source tokens * beam in a batch; changes no output
    scores: bool = True  # False: outputs need no scores; CTranslate2's greedy search is faster then, and gives NaN

    def __post_init__(self) -> None:
        require_integers(self, 1, "beam", "n_best", "batch_tokens")
        if self.n_best > self.beam and self.sampling is None:
            raise ConfigError(
                f"n_best is {self.n_best}, more than the beam of {self.beam}. Use a larger beam, or a smaller n_best."
            )
        require_number(self, "length_penalty", 0, math.inf)
        require_number(self, "max_ratio", 0, math.inf)
        require_integers(self, 0, "no_repeat_ngram")
        if self.sampling is not None and not isinstance(self.sampling, Sampling):
            raise ConfigError(f"sampling is {self.sampling!r}; it must be Sampling(temperature=…, …) or None.")

    @property
    def rows(self) -> int:
        """Hypotheses of one source in a batch."""
        return self.beam if self.sampling is None else self.n_best


@dataclass(frozen=True)
class DecodingOptions(SearchOptions):
    """How texts are translated: the search, and constraints on the output text."""

    prefix: str = ""  # every output begins with it
    # Word or subword of the vocabulary → added to its log-probability at every step; "▁" marks the start of a word.
    bias: Mapping[str, float] = field(default_factory=dict)
    segment_tokens: int | None = None  # longer lines are split at sentence ends; None: as long as in training
    # Translate the sentences of a line one by one; None: if the lines of the training data were single sentences.
    split_sentences: bool | None = None
    resolve_loops: bool = True  # search again, without repeated n-grams, for outputs that loop or do not end
    alignment: bool = False  # also align output tokens with source tokens

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.prefix, str) or "\n" in self.prefix:
            raise ConfigError(f"prefix is {self.prefix!r}; it must be text of one line.")
        for word, value in self.bias.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
                raise ConfigError(f'The bias of "{word}" is {value!r}; it must be a finite number.')
        if self.split_sentences not in (None, True, False):
            raise ConfigError(f"split_sentences is {self.split_sentences!r}; it must be True, False or None.")
        if self.segment_tokens is not None:
            require_integers(self, SHORTEST_SEGMENT, "segment_tokens")


@dataclass(frozen=True)
class GenerationOptions(Sampling):
    """How a language model continues a text."""

    max_tokens: int = 200
    no_repeat_ngram: int = 0  # no n-gram of this length twice, the prompt included; 0: no such rule

    def __post_init__(self) -> None:
        super().__post_init__()
        require_integers(self, 1, "max_tokens")
        require_integers(self, 0, "no_repeat_ngram")


class DecodingKeywords(TypedDict, total=False):
    """The fields of `DecodingOptions` as keyword arguments, for editors and type checkers."""

    beam: int
    n_best: int
    length_penalty: float
    no_repeat_ngram: int
    max_ratio: float
    sampling: Sampling | None
    batch_tokens: int
    scores: bool
    prefix: str
    bias: Mapping[str, float]
    segment_tokens: int | None
    split_sentences: bool | None
    resolve_loops: bool
    alignment: bool


class GenerationKeywords(TypedDict, total=False):
    """The fields of `GenerationOptions` as keyword arguments, for editors and type checkers."""

    temperature: float
    top_k: int
    top_p: float
    seed: int
    max_tokens: int
    no_repeat_ngram: int


def require_integers(options: object, least: int, *names: str) -> None:
    """Raises ConfigError unless the fields with these names are whole numbers, not below `least`."""
    for name in names:
        value = getattr(options, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(f"{name} is {value!r}; it must be a whole number, at least {least}.")


def require_number(options: object, name: str, least: float, most: float) -> None:
    """Raises ConfigError unless the field is a finite number from `least` to `most`."""
    value = getattr(options, name)
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not least <= value <= most:
        upper = f" and at most {most:g}" if math.isfinite(most) else ""
        raise ConfigError(f"{name} is {value!r}; it must be a number, at least {least:g}{upper}.")
