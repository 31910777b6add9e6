"""Pairs of sentences as something to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from jumok.data.corpus import Kind
from jumok.data.reading.languages import Languages
from jumok.data.reading.pairs import Rejections, read_pairs
from jumok.data.split import Example

LONGEST = 512  # tokens on either side of a pair that is learned from


def _read(paths: Sequence[str | Path], rejections: Rejections, languages: Languages | None = None) -> Iterator[Example]:
    # Of two text files the languages are known without being looked for.
    for pair in read_pairs(paths, rejections, languages=languages if len(paths) == 1 else None):
        yield Example((pair.source, pair.target), pair.where)


PAIRS = Kind(
    name="pairs",
    columns=("source", "target"),
    read=_read,
    files="two aligned text files, or one TSV, CSV, JSONL or TMX file",
    longest=LONGEST,
)


def pairs_in(languages: Languages | None) -> Kind:
    """Pairs in these two languages, from files that name theirs; None: files that have two, in their order."""
    return PAIRS if languages is None else replace(PAIRS, read=partial(_read, languages=languages), variant=languages)
