"""Batches of sequences of similar length, and results put back into the original order. No torch here."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from jumok.tokenizer import PAD

TokenIds: TypeAlias = Sequence[Sequence[int]]  # the ids of several texts, without <s> and </s>
FloatMatrix: TypeAlias = npt.NDArray[np.float32]
Item = TypeVar("Item")

FIRST_CHUNK, LARGEST_CHUNK = 64, 4096  # texts: the first results come early
GROWTH = 4  # the next chunk has so many times the texts: short chunks take a tenth more time per text
CHUNK_SECONDS = 2.0  # they grow while they take less than this: an interrupt loses the results of a chunk
LEAST_LENGTH = 8  # shorter sequences count as this long: each also costs a score for every token of the vocabulary


def sorted_batches(lengths: Sequence[int], budget: int, rows: int = 1) -> list[list[int]]:
    """Indices of `lengths` in batches of similar length: longest length * batch size * rows is within the budget. The
    longest come first, so that what exceeds memory fails at once. A sequence over the budget is a batch of its own."""
    batches: list[list[int]] = []
    room = 0
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if not batches or len(batches[-1]) == room:
            batches.append([])
            room = max(1, budget // (max(lengths[index], LEAST_LENGTH) * rows))
        batches[-1].append(index)
    return batches


def growing_chunks(take: Callable[[int], list[Item]], *, same_always: bool = False) -> Iterator[list[Item]]:
    """Chunks of items, short ones at first and as long as the work on them takes long. `take(n)` gives the next items,
    at most n. `same_always`: the lengths of chunks do not depend on how long the work takes."""
    most = FIRST_CHUNK
    while chunk := take(most):
        began = time.monotonic()
        yield chunk
        if same_always or time.monotonic() - began < CHUNK_SECONDS:
            most = min(GROWTH * most, LARGEST_CHUNK)


def in_two_ways(
    fits: Sequence[bool],
    usual: Callable[..., list[Item]],
    other: Callable[..., list[Item]],
    *columns: Sequence[Any],
) -> list[Item]:
    """Results for the rows of the columns in order: `usual(*columns)` for those that fit, `other` for the rest."""

    def run(function: Callable[..., list[Item]], indices: list[int]) -> Iterator[tuple[int, Item]]:
        return zip(indices, function(*([column[i] for i in indices] for column in columns)), strict=True)

    results = dict(run(usual, [index for index, fit in enumerate(fits) if fit]))
    if not all(fits):
        results.update(run(other, [index for index, fit in enumerate(fits) if not fit]))
    return [results[index] for index in range(len(fits))]


def padded_array(rows: TokenIds) -> npt.NDArray[np.int64]:
    """Rows of ids as one array [B, S], shorter rows padded."""
    result = np.full((len(rows), max(map(len, rows))), PAD, np.int64)
    for number, row in enumerate(rows):
        result[number, : len(row)] = row
    return result


def to_unit_length(vectors: FloatMatrix) -> FloatMatrix:
    """The vectors [B, D], each divided by its norm; zeros stay zeros."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    result: FloatMatrix = vectors / np.maximum(norms, np.finfo(np.float32).tiny)
    return result
