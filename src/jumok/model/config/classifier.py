"""The config of a classifier."""

from __future__ import annotations

from dataclasses import dataclass

from jumok.errors import ConfigError
from jumok.model.config.base import ModelConfig

POOLINGS = ("mean", "max", "answers")
NGRAM_UNITS = ("token", "character", "both", "word+token", "word+token+ending", "character+spaceless+token")


@dataclass(frozen=True, kw_only=True)
class ClassifierConfig(ModelConfig):
    """An encoder, and beside it optional scores of n-grams."""

    task: str = "classifier"
    encoder_layers: int = 6
    classes: int = 2  # C
    pooling: str = "mean"  # mean | max of the token states, then class scores | answers: class scores a token, then max
    window: int = 0  # tokens that attend to each other, a longer text is read in parts; 0: all of them
    ngrams: int = 0  # rows of the hashed table of n-gram scores, a power of 2; 0: no such scores
    # One of NGRAM_UNITS: n-grams of tokens, characters (spaceless: across spaces), words or the last words of a text;
    # those of several units are scored apart and added. "both" is character and token.
    ngram_unit: str = "token"
    ngram_fingerprints: bool = False  # of several n-grams that meet in a row, only one is scored

    choices = {**ModelConfig.choices, "pooling": POOLINGS, "ngram_unit": NGRAM_UNITS}  # noqa: RUF012 (ClassVar above)
    may_be_zero = frozenset({"window", "ngrams"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ngrams & (self.ngrams - 1):
            raise ConfigError(f"ngrams={self.ngrams} must be a power of 2, such as {1 << self.ngrams.bit_length()}.")

    @property
    def ngram_units(self) -> tuple[str, ...]:
        """The units that n-grams are made of, one table of scores for each; empty without n-gram scores."""
        if not self.ngrams:
            return ()
        return ("character", "token") if self.ngram_unit == "both" else tuple(self.ngram_unit.split("+"))
