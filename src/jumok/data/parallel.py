"""Pairs of sentences as something to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jumok.data.corpora import Rejections, read_pairs
from jumok.data.held_out import Example
from jumok.data.prepared import Kind

LONGEST = 512  # tokens on either side of a pair that is learned from


def _read(paths: Sequence[str | Path], rejections: Rejections) -> Iterator[Example]:
    for pair in read_pairs(paths, rejections):
        yield Example((pair.source, pair.target), pair.where)


PAIRS = Kind(
    name="pairs",
    columns=("source", "target"),
    read=_read,
    files="two aligned text files, or one TSV, CSV, JSONL or TMX file",
    longest=LONGEST,
)
