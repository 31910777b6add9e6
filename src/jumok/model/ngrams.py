"""A score for every run of one to four tokens: what a linear model knows of a text, as a layer.

"not good" and "not bad at all" say in a few words what a whole review means. An encoder can learn such phrases too, but
needs to see them more often; together they are better than either. Runs are found by a hash, so there is no table of
them to keep: two rare ones may share a place. Axes: B texts, S tokens, L = 4 lengths of runs, R = L S, C classes.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

LONGEST_RUN = 4
_MULTIPLIER = 6364136223846793005  # of Knuth's generator: spreads neighbouring numbers over all the bits
_UPPER_BITS = 29  # the lower bits of a product know only the lower bits of its factors


def hashed_runs(text: Int[Tensor, "B S"], places: int) -> tuple[Int[Tensor, "L B S"], Bool[Tensor, "L B S"]]:
    """The place of the run of each length that begins at each token, and whether there is one: it holds no padding."""
    hashes, whole = [], []
    mixed, complete = torch.zeros_like(text), torch.ones_like(text, dtype=torch.bool)
    for shift in range(LONGEST_RUN):
        beyond = min(shift, text.shape[1])
        token = nn.functional.pad(text[:, beyond:], (0, beyond))
        mixed = (mixed + token) * _MULTIPLIER + 1
        complete = complete & (token != 0)
        hashes.append((mixed >> _UPPER_BITS) & (places - 1))
        whole.append(complete)
    return torch.stack(hashes), torch.stack(whole)


def run_places(text: Int[Tensor, "B S"], places: int) -> tuple[Int[Tensor, "B R"], Bool[Tensor, "B R"]]:
    """The places of a text's runs in rising order, and which of them count: each place once."""
    hashes, whole = hashed_runs(text, places)
    found = torch.where(whole, hashes, places).permute(1, 0, 2).flatten(1)  # what is no run comes last
    found = found.sort(1).values
    new = torch.ones_like(found, dtype=torch.bool)
    new[:, 1:] = found[:, 1:] != found[:, :-1]
    return found.clamp(max=places - 1), new & (found < places)


class NgramScores(nn.Module):
    """The sum of the scores of a text's runs, divided by how loud they are together: long texts are not shouted.

    Scores and loudness are fitted before the encoder learns anything (`recipes/ngram_fit.py`) and stay as they are.
    """

    def __init__(self, places: int, classes: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.zeros(places, classes), requires_grad=False)
        self.loudness = nn.Parameter(torch.ones(places), requires_grad=False)  # adds up as squares do
        # How much the encoder has to say beside these scores: known only after some of its learning.
        self.encoder_share = nn.Parameter(torch.ones(()), requires_grad=False)

    def forward(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        found, counted = run_places(text, len(self.scores))
        scores = nn.functional.embedding(found, self.scores) * counted[..., None]
        total: Tensor = scores.sum(1) / self._together(found, counted)[:, None]
        return total

    def worth(self, text: Int[Tensor, "1 S"], chosen: int) -> Float[Tensor, " S"]:
        """How much each token speaks for a class against the mean of the others: its share of the runs it is in."""
        hashes, whole = hashed_runs(text, len(self.scores))
        together = self._together(*run_places(text, len(self.scores)))
        others = (self.scores.sum(1) - self.scores[:, chosen]) / max(1, self.scores.shape[1] - 1)
        margins = (self.scores[:, chosen] - others)[hashes[:, 0]] * whole[:, 0] / together  # [L, S]
        result = torch.zeros_like(margins[0])
        for length in range(1, LONGEST_RUN + 1):
            for place in range(min(length, len(result))):
                result[place:] += margins[length - 1, : len(result) - place] / length
        return result

    def _together(self, found: Int[Tensor, "B R"], counted: Bool[Tensor, "B R"]) -> Float[Tensor, " B"]:
        loudness = (self.loudness[found] * counted).sum(1)
        return loudness.where(loudness > 0, 1.0).sqrt()

    def extra_repr(self) -> str:
        return f"{len(self.scores):,} places"
