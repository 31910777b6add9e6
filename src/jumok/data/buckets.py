"""Batches of examples of similar length, by a budget of tokens. Their order is a pure function of (seed, epoch)."""

import math
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.errors import ConfigError
from jumok.seeds import bit_stream

Lengths = npt.NDArray[np.integer[Any]]
_NUMBERS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class BatchPlan:
    """Which examples form a batch, and the order of the batches, of one epoch or a section of it."""

    examples: npt.NDArray[np.int32]  # every example once
    bounds: npt.NDArray[np.int64]  # batch b is examples[bounds[b] : bounds[b + 1]]
    order: npt.NDArray[np.int64]  # batch number to b
    largest: int  # the b with the most padded tokens

    def __len__(self) -> int:
        return len(self.order)

    def __getitem__(self, number: int) -> npt.NDArray[np.int64]:
        """The examples of that batch."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.batch(int(self.order[number]))

    def batch(self, b: int) -> npt.NDArray[np.int64]:
        """The examples of the b-th batch in the order of lengths."""
        return self.examples[self.bounds[b] : self.bounds[b + 1]].astype(np.int64)

    def digest(self) -> str:
        """A fingerprint of the plan."""
        digest = sha256()
        for part in (self.examples, self.bounds, self.order):
            for start in range(0, len(part), _NUMBERS_AT_A_TIME):
                digest.update(np.ascontiguousarray(part[start : start + _NUMBERS_AT_A_TIME], "<i8").tobytes())
        return digest.hexdigest()


def plan_batches(lengths: tuple[Lengths, ...], tokens: int, seed: int, *numbers: int) -> BatchPlan:
    """Batches whose padded size, rows × longest length, is at most `tokens` in every column, or of one longer example.
    Examples are sorted by the last column, then the others, then at random: batches differ between epochs.
    `numbers` are those of the epoch and, if there are several, of the section. Memory: 40 bytes an example."""
    # Raw bits: NumPy may change how it draws from distributions in a later version, and the order must not change.
    bits = bit_stream(seed, "batches", *numbers)
    examples = np.lexsort((bits.random_raw(len(lengths[0])), _sort_key(lengths))).astype(np.int32)
    widths = lengths[0][examples]
    for column in lengths[1:]:
        np.maximum(widths, column[examples], out=widths)
    bounds = _cut(widths, tokens)
    order = np.argsort(bits.random_raw(len(bounds) - 1), kind="stable")
    return BatchPlan(examples, bounds, order, int(np.argmax(_padded(widths, bounds))) if len(order) else 0)


def measure_batches(lengths: tuple[Lengths, ...], tokens: int) -> tuple[int, int]:
    """The number of batches that `plan_batches` makes, and the most padded tokens of one. Neither depends on chance:
    that only exchanges examples of the same lengths."""
    widths = np.maximum.reduce(lengths)[np.argsort(_sort_key(lengths), kind="stable")]
    bounds = _cut(widths, tokens)
    return len(bounds) - 1, int(_padded(widths, bounds).max(initial=0))


def _sort_key(lengths: tuple[Lengths, ...]) -> npt.NDArray[np.unsignedinteger[Any]]:
    """One number an example, by which they are sorted: the last column first, then the others. These rise under even
    lengths of the last column and fall under odd ones, so that neighbours stay alike where the last column changes."""
    *others, last = lengths
    spans = [int(column.max(initial=0)) + 1 for column in lengths]
    key = last.astype(np.min_scalar_type(math.prod(spans)))
    falls = last % 2 == 1
    for column, span in zip(reversed(others), reversed(spans[:-1]), strict=True):
        key *= key.dtype.type(span)
        key += np.where(falls, span - 1 - column, column).astype(key.dtype)
    return key


def _padded(widths: Lengths, bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Rows × longest length of each batch."""
    if len(bounds) < 2:
        return np.empty(0, np.int64)
    return np.maximum.reduceat(widths, bounds[:-1]) * np.diff(bounds)


def _cut(widths: Lengths, tokens: int) -> npt.NDArray[np.int64]:
    """Where each batch begins, and the end: as many rows as fit, counting all as wide as the widest of them.
    `widths` need not be sorted: a running maximum over a stretch that surely contains the end of a batch finds it."""
    if tokens < 1:
        raise ConfigError(f"batch.tokens={tokens} must be at least 1.")
    bounds = [0]
    while (start := bounds[-1]) < len(widths):
        most = max(1, tokens // max(1, int(widths[start])))
        reach = np.maximum.accumulate(widths[start : start + most])
        fits = int(np.searchsorted(reach * np.arange(1, len(reach) + 1), tokens, side="right"))
        bounds.append(start + max(1, fits))
    return np.array(bounds)
