"""Which tokens of the vocabulary the loss of a batch compares, if not all (sampled softmax; Jean et al. 2015).

Nearly half of the products of a small model's step are the scores of tokens that hardly ever come. Axes: N targets, V
vocabulary, C candidates.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from jumok.training.products import ROWS


class Candidates(NamedTuple):
    """Tokens that stand for the vocabulary in the loss of one batch."""

    tokens: Int[Tensor, " C"]
    log_weights: Float[Tensor, " C"]  # how many tokens each stands for, as a logarithm
    positions: Int[Tensor, " N"]  # of the targets among them


class CandidateSampler:
    """Draws candidates: the targets of a batch, the most frequent tokens, and a random sample of the others, which
    stands for all of these. So the sum of exp(score) over the vocabulary is estimated without bias."""

    def __init__(self, counts: Int[Tensor, " V"], size: int) -> None:
        """`counts` says how often each token occurs in targets. Beside the targets of a batch there are about `size`
        candidates, the most frequent tokens for half of them."""
        self.vocabulary, self.sampled = len(counts), size - size // 2
        self.frequent = counts.argsort(descending=True, stable=True)[: size // 2]

    def draw(self, targets: Int[Tensor, " N"]) -> Candidates:
        """The candidates for these targets, which are on the CPU; random, from PyTorch's generator."""
        certain = torch.zeros(self.vocabulary, dtype=torch.bool)
        certain[self.frequent] = True
        certain[targets] = True
        others, always = (~certain).nonzero()[:, 0], certain.nonzero()[:, 0]
        total = -(-(len(always) + self.sampled) // ROWS) * ROWS  # products of ever new shapes would take longer
        drawn = others[torch.randperm(len(others))[: total - len(always)]]
        tokens = torch.cat((always, drawn))
        log_weights = torch.zeros(len(tokens))
        log_weights[len(always) :] = torch.tensor(len(others) / max(1, len(drawn))).log()
        positions = torch.empty(self.vocabulary, dtype=torch.int64)
        positions[tokens] = torch.arange(len(tokens))
        return Candidates(tokens, log_weights, positions[targets])
