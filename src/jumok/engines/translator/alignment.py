"""Word alignment: which source token each output token was translated from."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from jumok.engines.batching import FloatMatrix
from jumok.tokenizer import SPACE_MARK, normalize

_BYTE_TOKEN = re.compile("<0x([0-9A-F]{2})>")


@dataclass(frozen=True, slots=True)
class Alignment:
    """Subwords of a source and its output, and index pairs (source, target) in the order of the target."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]

    def by_word(self, source: str, output: str) -> list[tuple[int, int]]:
        """The same for words: pairs of indices into `source.split()` and `output.split()`, the aligned texts."""
        of_source, of_target = _words_of(self.source, normalize(source)), _words_of(self.target, output)
        found = {(of_source[i], of_target[j]) for i, j in self.pairs}
        pairs = [(i, j) for i, j in found if i is not None and j is not None]
        return sorted(pairs, key=lambda pair: (pair[1], pair[0]))


def join_alignments(parts: Iterable[tuple[Sequence[str], Sequence[str], FloatMatrix]]) -> Alignment:
    """One alignment of (source subwords, target subwords, weights [T, S]) of consecutive parts of a text.
    Each target subword is aligned with the source subword of the largest weight, unless that is `</s>`."""
    source: list[str] = []
    target: list[str] = []
    pairs: list[tuple[int, int]] = []
    for of_source, of_target, weights in parts:
        best = weights[: len(of_target)].argmax(1).tolist()
        pairs += [(len(source) + i, len(target) + j) for j, i in enumerate(best) if i < len(of_source)]
        source += of_source
        target += of_target
    return Alignment(tuple(source), tuple(target), tuple(pairs))


def _words_of(subwords: Sequence[str], text: str) -> list[int | None]:
    """For each subword the index in `text.split()` of its word, or of the first it touches; None for white space.
    Except for white space, subwords and text have the same characters in the same order."""
    spelled = [_bytes_of(subword) for subword in subwords]
    characters = b"".join(spelled).decode("utf-8", "surrogateescape")
    indices = iter([index for index, word in enumerate(text.split()) for _ in word])
    of_bytes: list[int | None] = []
    for character in characters:
        index = None if character.isspace() else next(indices, None)
        of_bytes += [index] * len(character.encode("utf-8", "surrogateescape"))
    ends = accumulate(map(len, spelled), initial=0)
    return [next((index for index in of_bytes[begin:end] if index is not None), None) for begin, end in pairwise(ends)]


def _bytes_of(subword: str) -> bytes:
    """The bytes of a subword: `▁` is a space, `<0xE2>` a byte of a character without a token of its own."""
    byte = _BYTE_TOKEN.fullmatch(subword)
    return bytes.fromhex(byte[1]) if byte else subword.replace(SPACE_MARK, " ").encode()
