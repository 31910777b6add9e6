"""Batches of examples of similar length, by a budget of tokens. Their order is a pure function of (seed, epoch)."""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
import numpy.typing as npt

from jumok.errors import ConfigError
from jumok.seeds import bit_stream

Lengths = npt.NDArray[np.int64]


@dataclass(frozen=True)
class BatchPlan:
    """One epoch: which examples form a batch, and the order of the batches."""

    examples: npt.NDArray[np.int64]  # every example once
    bounds: npt.NDArray[np.int64]  # batch b is examples[bounds[b] : bounds[b + 1]]
    order: npt.NDArray[np.int64]  # batch number to b

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, number: int) -> npt.NDArray[np.int64]:
        """The examples of that batch."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        batch = self.order[number]
        return self.examples[self.bounds[batch] : self.bounds[batch + 1]]

    def digest(self) -> str:
        """A fingerprint of the plan."""
        parts = (self.examples, self.bounds, self.order)
        return sha256(b"".join(np.ascontiguousarray(part, "<i8").tobytes() for part in parts)).hexdigest()


def plan_batches(lengths: tuple[Lengths, ...], tokens: int, seed: int, epoch: int) -> BatchPlan:
    """Batches whose padded size, rows × longest length, is at most `tokens` in every column, or of one longer example.
    Examples are sorted by the last column, then the others, then at random: batches differ between epochs."""
    if tokens < 1:
        raise ConfigError(f"batch.tokens={tokens} must be at least 1.")
    # Raw bits: NumPy may change how it draws from distributions in a later version, and the order must not change.
    bits = bit_stream(seed, "batches", epoch)
    examples = np.lexsort([bits.random_raw(len(lengths[0])), *_zigzag(lengths)])
    bounds = _cut(np.stack(lengths)[:, examples].max(0), tokens)
    return BatchPlan(examples, bounds, np.argsort(bits.random_raw(len(bounds) - 1), kind="stable"))


def _zigzag(lengths: tuple[Lengths, ...]) -> list[Lengths]:
    """Sort keys, most important last. The others rise under even lengths of the last column and fall under odd ones, so
    that neighbours stay alike where the last column changes."""
    direction = np.where(lengths[-1] % 2 == 0, 1, -1)
    return [*(column * direction for column in lengths[:-1]), lengths[-1]]


def _cut(widths: npt.NDArray[np.int64], tokens: int) -> npt.NDArray[np.int64]:
    """Where each batch begins, and the end: as many rows as fit, counting all as wide as the widest of them.
    `widths` need not be sorted: a running maximum over a stretch that surely contains the end of a batch finds it."""
    bounds = [0]
    while (start := bounds[-1]) < len(widths):
        most = max(1, tokens // max(1, int(widths[start])))
        reach = np.maximum.accumulate(widths[start : start + most])
        fits = int(np.searchsorted(reach * np.arange(1, len(reach) + 1), tokens, side="right"))
        bounds.append(start + max(1, fits))
    return np.array(bounds)
