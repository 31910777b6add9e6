"""Which part of the source each part of the output comes from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jumok.engines.engine import Matrix
from jumok.tokenizer import SPACE_MARK


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pieces of a source and its output, and pairs (place in source, place in target) in the order of the target."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]

    def by_word(self) -> list[tuple[int, int]]:
        """The same for words, where a word begins at every piece with `▁`: places of words between spaces."""
        source, target = _word_places(self.source), _word_places(self.target)
        return sorted({(source[i], target[j]) for i, j in self.pairs}, key=lambda pair: (pair[1], pair[0]))


def join_alignments(parts: Iterable[tuple[Sequence[str], Sequence[str], Matrix]]) -> Alignment:
    """One alignment of (source pieces, target pieces, weights [T, S]) of parts that follow each other.

    Each target piece goes with the source piece that gave most to it, unless that is the end of the source.
    """
    source: list[str] = []
    target: list[str] = []
    pairs: list[tuple[int, int]] = []
    for of_source, of_target, weights in parts:
        best = weights[: len(of_target)].argmax(1).tolist()
        pairs += [(len(source) + i, len(target) + j) for j, i in enumerate(best) if i < len(of_source)]
        source += of_source
        target += of_target
    return Alignment(tuple(source), tuple(target), tuple(pairs))


def _word_places(pieces: Sequence[str]) -> list[int]:
    places: list[int] = []
    for piece in pieces:
        places.append(places[-1] + piece.startswith(SPACE_MARK) if places else 0)
    return places
