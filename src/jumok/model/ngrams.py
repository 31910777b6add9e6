"""A score for every n-gram of tokens, characters or words: a linear bag-of-n-grams model as a layer.

An encoder can learn phrases such as "not bad at all" too, but needs to see them more often; together they are
better than either. In Korean and Chinese, character n-grams say more than token n-grams, and both together most, with
those across spaces, which many writers leave out. In alphabets, words say more than the tokens they are cut into, and
in long texts the words at the end are worth scores of their own.
Axes: B texts, S tokens, R n-grams, C classes.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from jumok.model.config.classifier import ClassifierConfig
from jumok.model.ngram_table import NgramTable, packed_size

LONGEST_TOKEN = 16  # characters of a token


class NgramScores(nn.Module):
    """`NgramTable` as a layer, fitted by `recipes/ngram_fit.py` before the encoder is trained, then kept fixed."""

    def __init__(self, config: ClassifierConfig, unit: str) -> None:
        super().__init__()
        self.unit = unit
        self.scores = nn.Parameter(torch.zeros(config.ngrams, config.classes), requires_grad=False)
        self.scale = nn.Parameter(torch.ones(config.ngrams), requires_grad=False)
        self.spelling: Tensor | None
        spelling = torch.zeros(config.vocabulary, LONGEST_TOKEN)  # code points: exact in float32
        self.register_buffer("spelling", spelling if unit != "token" else None)
        self.fingerprints: Tensor | None
        fingerprints = torch.zeros(packed_size(config.ngrams))
        self.register_buffer("fingerprints", fingerprints if config.ngram_fingerprints else None)

    def rows(self, text: Int[Tensor, "B S"]) -> tuple[Int[Tensor, "B R"], Bool[Tensor, "B R"]]:
        """The table rows of a text's n-grams in ascending order, and which entries count: each row once."""
        found, counted = self.table().rows(text.cpu().numpy())
        return torch.from_numpy(found).to(text.device), torch.from_numpy(counted).to(text.device)

    def forward(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        return torch.from_numpy(self.table()(text.cpu().numpy())).to(text.device)

    def attribution(self, text: Int[Tensor, "1 S"], chosen: int) -> Float[Tensor, " S"]:
        """How much each token adds to the score of a class, less the mean of the others."""
        return torch.from_numpy(self.table().attribution(text.cpu().numpy(), chosen)).to(text.device)

    def _apply(self, fn: Any, recurse: bool = True) -> "NgramScores":
        """The table stays in the memory of the host, where NumPy reads it, wherever the model is moved."""
        return self

    def table(self) -> NgramTable:
        """The same memory, for NumPy."""
        spelling, fingerprints = (None if part is None else part.numpy() for part in (self.spelling, self.fingerprints))
        return NgramTable.of_unit(self.unit, self.scores.numpy(), self.scale.numpy(), spelling, fingerprints)

    def extra_repr(self) -> str:
        return f"{len(self.scores):,} rows"
