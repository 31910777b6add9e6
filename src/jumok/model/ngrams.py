"""A score for every run of a few tokens or characters: what a linear model knows of a text, as a layer.

"not good" and "not bad at all" say in a few words what a whole review means. An encoder can learn such phrases too, but
needs to see them more often; together they are better than either. Where a character is a syllable or a word, as in
Korean and Chinese, runs of characters say more than runs of tokens, and both together most. Runs are found by a hash,
so there is no table of them to keep: two rare ones may share a place.
Axes: B texts, S tokens, U units (tokens or characters), L lengths of runs, R = L U, C classes, V vocabulary.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from jumok.model.config import ModelConfig

LONGEST_RUN = {"token": 4, "character": 6}  # in units
LONGEST_PIECE = 16  # characters of a token
_MULTIPLIER = 6364136223846793005  # of Knuth's generator: spreads neighbouring numbers over all the bits
_UPPER_BITS = 29  # the lower bits of a product know only the lower bits of its factors


def hashed_runs(
    units: Int[Tensor, "B U"], longest: int, places: int
) -> tuple[Int[Tensor, "L B U"], Bool[Tensor, "L B U"]]:
    """The place of the run of each length that begins at each unit, and whether there is one: it holds no padding."""
    hashes, whole = [], []
    mixed, complete = torch.zeros_like(units), torch.ones_like(units, dtype=torch.bool)
    for shift in range(longest):
        beyond = min(shift, units.shape[1])
        unit = nn.functional.pad(units[:, beyond:], (0, beyond))
        mixed = (mixed + unit) * _MULTIPLIER + 1
        complete = complete & (unit != 0)
        hashes.append((mixed >> _UPPER_BITS) & (places - 1))
        whole.append(complete)
    return torch.stack(hashes), torch.stack(whole)


def run_places(units: Int[Tensor, "B U"], longest: int, places: int) -> tuple[Int[Tensor, "B R"], Bool[Tensor, "B R"]]:
    """The places of a text's runs in rising order, and which of them count: each place once."""
    hashes, whole = hashed_runs(units, longest, places)
    found = torch.where(whole, hashes, places).permute(1, 0, 2).flatten(1)  # what is no run comes last
    found = found.sort(1).values
    new = torch.ones_like(found, dtype=torch.bool)
    new[:, 1:] = found[:, 1:] != found[:, :-1]
    return found.clamp(max=places - 1), new & (found < places)


def spelled(text: Int[Tensor, "B S"], spelling: Float[Tensor, "V W"]) -> Int[Tensor, "B U"]:
    """The characters of all tokens of a text one after another, then padding. `spelling` has those of every token."""
    characters = spelling[text].flatten(1).long()
    real = characters != 0
    result = torch.zeros(len(text), int(real.sum(1).max()) if real.numel() else 0, dtype=torch.long)
    result[torch.arange(result.shape[1]) < real.sum(1, keepdim=True)] = characters[real]
    return result


class NgramScores(nn.Module):
    """The sum of the scores of a text's runs, divided by how loud they are together: long texts are not shouted.

    Scores and loudness are fitted before the encoder learns anything (`recipes/ngram_fit.py`) and stay as they are.
    """

    def __init__(self, config: ModelConfig, unit: str) -> None:
        super().__init__()
        self.longest = LONGEST_RUN[unit]
        self.scores = nn.Parameter(torch.zeros(config.ngrams, config.classes), requires_grad=False)
        self.loudness = nn.Parameter(torch.ones(config.ngrams), requires_grad=False)  # adds up as squares do
        self.spelling: Tensor | None
        spelling = torch.zeros(config.vocabulary, LONGEST_PIECE)  # numbers of characters: exact in float32
        self.register_buffer("spelling", spelling if unit == "character" else None)

    def units(self, text: Int[Tensor, "B S"]) -> Int[Tensor, "B U"]:
        """What runs are made of: the tokens, or their characters."""
        return text if self.spelling is None else spelled(text, self.spelling)

    def runs(self, text: Int[Tensor, "B S"]) -> tuple[Int[Tensor, "B R"], Bool[Tensor, "B R"]]:
        """The places of a text's runs in rising order, and which of them count: each place once."""
        return run_places(self.units(text), self.longest, len(self.scores))

    def forward(self, text: Int[Tensor, "B S"]) -> Float[Tensor, "B C"]:
        found, counted = self.runs(text)
        scores = nn.functional.embedding(found, self.scores) * counted[..., None]
        total: Tensor = scores.sum(1) / self._together(found, counted)[:, None]
        return total

    def worth(self, text: Int[Tensor, "1 S"], chosen: int) -> Float[Tensor, " S"]:
        """How much each token speaks for a class against the mean of the others: its share of the runs it is in."""
        hashes, whole = hashed_runs(self.units(text), self.longest, len(self.scores))
        others = (self.scores.sum(1) - self.scores[:, chosen]) / max(1, self.scores.shape[1] - 1)
        margins = (self.scores[:, chosen] - others)[hashes[:, 0]] * whole[:, 0] / self._together(*self.runs(text))
        result = torch.zeros_like(margins[0])  # [U]
        for length in range(1, self.longest + 1):
            for place in range(min(length, len(result))):
                result[place:] += margins[length - 1, : len(result) - place] / length
        if self.spelling is None:
            return result
        owners = torch.repeat_interleave(torch.arange(text.shape[1]), (self.spelling[text[0]] != 0).sum(1))
        return torch.zeros(text.shape[1]).index_add_(0, owners, result)

    def _together(self, found: Int[Tensor, "B R"], counted: Bool[Tensor, "B R"]) -> Float[Tensor, " B"]:
        loudness = (self.loudness[found] * counted).sum(1)
        return loudness.where(loudness > 0, 1.0).sqrt()

    def extra_repr(self) -> str:
        return f"{len(self.scores):,} places"
