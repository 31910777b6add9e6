"""Which part of the source each part of the output comes from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from jumok.engines.engine import Matrix
from jumok.tokenizer import SPACE_MARK, normalize

_BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")


@dataclass(frozen=True, slots=True)
class Alignment:
    """Pieces of a source and its output, and pairs (place in source, place in target) in the order of the target."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]

    def by_word(self, source: str | None = None, output: str | None = None) -> list[tuple[int, int]]:
        """The same for words: pairs of places in `source.split()` and `output.split()`, the texts that were aligned.

        Without the texts, words are what stands between the spaces of the pieces: nearly the same, but every part of a
        split text then begins a word.
        """
        of_source = _words_of(self.source, None if source is None else normalize(source))
        of_target = _words_of(self.target, output)
        found = {(of_source[i], of_target[j]) for i, j in self.pairs}
        pairs = [(i, j) for i, j in found if i is not None and j is not None]
        return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


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


def _words_of(pieces: Sequence[str], text: str | None) -> list[int | None]:
    """For each piece the place in `text.split()` of the word it stands in, or begins; None: it is white space alone.

    But for white space, pieces and text have the same characters in the same order.
    """
    spelled = [_bytes_of(piece) for piece in pieces]
    characters = b"".join(spelled).decode("utf-8", "surrogateescape")
    words = (characters if text is None else text).split()
    places = iter([place for place, word in enumerate(words) for _ in word])
    of_bytes: list[int | None] = []
    for character in characters:
        place = None if character.isspace() else next(places, None)
        of_bytes += [place] * len(character.encode("utf-8", "surrogateescape"))
    ends = accumulate(map(len, spelled), initial=0)
    return [next((place for place in of_bytes[begin:end] if place is not None), None) for begin, end in pairwise(ends)]


def _bytes_of(piece: str) -> bytes:
    """What a piece writes: `▁` is a space, `<0xE2>` a byte of a character that has no piece of its own."""
    byte = _BYTE_PIECE.fullmatch(piece)
    return bytes.fromhex(byte[1]) if byte else piece.replace(SPACE_MARK, " ").encode()
