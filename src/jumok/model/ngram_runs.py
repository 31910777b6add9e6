"""The runs of tokens or characters of a text, and what they score. Needs no torch: no gradient ever goes through.

Runs are found by a hash, so there is no table of them to keep: two rare ones may share a place.
Axes: B texts, S tokens, U units (tokens or characters), L lengths of runs, R = L U, P places, C classes, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LONGEST_RUN = {"token": 4, "character": 6}  # in units
_MULTIPLIER = np.int64(6364136223846793005)  # of Knuth's generator: spreads neighbouring numbers over all the bits
_UPPER_BITS = np.int64(29)  # the lower bits of a product know only the lower bits of its factors

Whole = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Reals = npt.NDArray[np.float32]


def hashed_runs(units: Whole, longest: int, places: int) -> tuple[Whole, Flags]:
    """For units [B, U] the place [L, B, U] of the run of each length that begins at each, and whether there is one.

    A run holds no padding.
    """
    hashes, whole = [], []
    mixed, complete = np.zeros_like(units), np.ones_like(units, np.bool_)
    for shift in range(longest):
        unit = np.zeros_like(units)
        unit[:, : max(0, units.shape[1] - shift)] = units[:, shift:]
        mixed = (mixed + unit) * _MULTIPLIER + 1
        complete = complete & (unit != 0)
        hashes.append((mixed >> _UPPER_BITS) & (places - 1))
        whole.append(complete)
    return np.stack(hashes), np.stack(whole)


def run_places(units: Whole, longest: int, places: int) -> tuple[Whole, Flags]:
    """The places [B, R] of each text's runs in rising order, and which of them count: each place once."""
    hashes, whole = hashed_runs(units, longest, places)
    found = np.where(whole, hashes, places).transpose(1, 0, 2).reshape(len(units), -1)  # what is no run comes last
    found.sort(1)
    new = np.ones_like(found, np.bool_)
    new[:, 1:] = found[:, 1:] != found[:, :-1]
    return np.minimum(found, places - 1), new & (found < places)


def spelled(text: Whole, spelling: Reals) -> Whole:
    """The characters [B, U] of all tokens [B, S] one after another, then padding. `spelling` [V, W] has them all."""
    characters = spelling[text].reshape(len(text), -1)
    real = characters != 0
    counts = real.sum(1)
    result = np.zeros((len(text), counts.max(initial=0)), np.int64)
    result[np.arange(result.shape[1]) < counts[:, None]] = characters[real]
    return result


@dataclass(frozen=True)
class RunScores:
    """The sum of the scores of a text's runs, divided by how loud they are together: long texts are not shouted."""

    scores: Reals  # [P, C]
    loudness: Reals  # [P]
    longest: int  # units of a run
    spelling: Reals | None = None  # [V, W] the characters of every token, if they are the units

    def runs(self, text: Whole) -> tuple[Whole, Flags]:
        """The places [B, R] of the runs of texts [B, S] in rising order, and which of them count: each place once."""
        return run_places(self._units(text), self.longest, len(self.scores))

    def __call__(self, text: Whole) -> Reals:
        """Scores [B, C] of texts [B, S]."""
        found, counted = self.runs(text)
        rows, places = np.nonzero(counted)[0], found[counted]
        columns = [np.bincount(rows, of_class[places], len(text)) for of_class in self.scores.T]
        result: Reals = (np.stack(columns, 1) / self._together(rows, places, len(text))[:, None]).astype(np.float32)
        return result

    def worth(self, text: Whole, chosen: int) -> Reals:
        """How much each token of a text [1, S] speaks for a class against the mean of the others: [S].

        A token has its share of the runs it is in.
        """
        hashes, whole = hashed_runs(self._units(text), self.longest, len(self.scores))
        others = (self.scores.sum(1) - self.scores[:, chosen]) / max(1, self.scores.shape[1] - 1)
        found, counted = self.runs(text)
        together = self._together(np.nonzero(counted)[0], found[counted], 1)
        margins = (self.scores[:, chosen] - others)[hashes[:, 0]] * whole[:, 0] / together
        result = np.zeros(margins.shape[1])  # [U]
        for length in range(1, self.longest + 1):
            for place in range(min(length, len(result))):
                result[place:] += margins[length - 1, : len(result) - place] / length
        if self.spelling is not None:
            owners = np.repeat(np.arange(text.shape[1]), (self.spelling[text[0]] != 0).sum(1))
            result = np.bincount(owners, result, text.shape[1])
        return result.astype(np.float32)

    def _units(self, text: Whole) -> Whole:
        """What runs are made of: the tokens, or their characters. A text that is nothing but its end has none."""
        text = np.where((text != 0).sum(1, keepdims=True) > 1, text, 0)
        return text if self.spelling is None else spelled(text, self.spelling)

    def _together(self, rows: Whole, places: Whole, texts: int) -> npt.NDArray[np.float64]:
        """How loud the runs of each text are together. Loudness adds up as squares do."""
        loudness = np.bincount(rows, self.loudness[places], texts)
        return np.sqrt(np.where(loudness > 0, loudness, 1.0))
