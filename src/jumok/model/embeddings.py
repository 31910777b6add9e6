"""Tokens to vectors and back, with one matrix: section 3.4 of the paper."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from jumok.errors import ShapeError, require_at_least
from jumok.model.dropout import Dropout
from jumok.model.positions import make_positions


class TokenEmbedding(nn.Module):
    """The matrix shared by source, target and output. Rows enter the model times √D and leave it as they are."""

    def __init__(self, vocabulary: int, d_model: int) -> None:
        super().__init__()
        require_at_least(1, vocabulary=vocabulary, d_model=d_model)
        # Deviation D^-½: vectors of length about 1 before scaling, logits of deviation about 1 behind a LayerNorm.
        self.weight = nn.Parameter(torch.randn(vocabulary, d_model) * d_model**-0.5)
        self.scale = math.sqrt(d_model)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        if ids.dtype not in (torch.int64, torch.int32):
            raise ShapeError(f"Token ids must be of type int64 or int32, not {ids.dtype}.")
        try:
            rows = nn.functional.embedding(ids, self.weight)
        except IndexError:  # cheaper than looking at every id beforehand
            size = len(self.weight)
            wrong = int(ids[(ids < 0) | (ids >= size)][0])
            raise ShapeError(
                f"Token id {wrong} is outside the vocabulary of {size}: ids go from 0 to {size - 1}."
            ) from None
        return rows * self.scale

    def logits(self, states: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """The final Linear: how well each token of the vocabulary fits each state."""
        return nn.functional.linear(states, self.weight)

    def extra_repr(self) -> str:
        return f"vocabulary={self.weight.shape[0]}, d_model={self.weight.shape[1]}"


class Embedder(nn.Module):
    """Token vector plus position, then dropout: what enters the bottom of either stack."""

    def __init__(self, vocabulary: int, d_model: int, *, positions: str, max_length: int = 0, dropout: float) -> None:
        super().__init__()
        self.tokens = TokenEmbedding(vocabulary, d_model)
        self.positions = make_positions(positions, d_model, max_length)
        self.dropout = Dropout(dropout)

    def forward(self, ids: Int[Tensor, "B T"], start: int = 0) -> Float[Tensor, "B T D"]:
        embedded: Tensor = self.dropout(self.positions(self.tokens(ids), start))
        return embedded
