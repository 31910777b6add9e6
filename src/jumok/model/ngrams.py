"""A score for every run of a few tokens or characters: what a linear model knows of a text, as a layer.

"not good" and "not bad at all" say in a few words what a whole review means. An encoder can learn such phrases too, but
needs to see them more often; together they are better than either. Where a character is a syllable or a word, as in
Korean and Chinese, runs of characters say more than runs of tokens, and both together most.
Axes: B texts, S tokens, R runs, C classes.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from jumok.model.config.classifier import ClassifierConfig
from jumok.model.ngram_runs import LONGEST_RUN, RunScores

LONGEST_PIECE = 16  # characters of a token


class NgramScores(nn.Module):
    """See `RunScores`. Scores and loudness are fitted before the encoder learns anything, and stay as they are.

    (`recipes/ngram_fit.py` fits them.)
    """

    def __init__(self, config: ClassifierConfig, unit: str) -> None:
        super().__init__()
        self.longest = LONGEST_RUN[unit]
        self.scores = nn.Parameter(torch.zeros(config.ngrams, config.classes), requires_grad=False)
        self.loudness = nn.Parameter(torch.ones(config.ngrams), requires_grad=False)
        self.spelling: Tensor | None
        spelling = torch.zeros(config.vocabulary, LONGEST_PIECE)  # numbers of characters: exact in float32
        self.register_buffer("spelling", spelling if unit == "character" else None)

    def runs(self, text: Int[Tensor, "B S"]) -> tuple[Int[Tensor, "B R"], Bool[Tensor, "B R"]]:
        """The places of a text's runs in rising order, and which of them count: each place once."""
        found, counted = self._arrays().runs(text.numpy())
        return torch.from_numpy(found), torch.from_numpy(counted)

    def forward(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        return torch.from_numpy(self._arrays()(text.numpy()))

    def worth(self, text: Int[Tensor, "1 S"], chosen: int) -> Float[Tensor, " S"]:
        """How much each token speaks for a class against the mean of the others: its share of the runs it is in."""
        return torch.from_numpy(self._arrays().worth(text.numpy(), chosen))

    def _arrays(self) -> RunScores:
        """The same memory, for NumPy."""
        spelling = None if self.spelling is None else self.spelling.numpy()
        return RunScores(self.scores.numpy(), self.loudness.numpy(), self.longest, spelling)

    def extra_repr(self) -> str:
        return f"{len(self.scores):,} places"
