"""Reading a corpus several times, always with the same examples held out for validation."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from jumok.data.corpora import Rejections
from jumok.errors import InputError

HELD_OUT_SHARE, HELD_OUT_MOST = 0.05, 1000  # examples for validation when none are given


@dataclass(frozen=True, slots=True)
class Example:
    """Something to learn from."""

    texts: tuple[str, ...]  # a text, or a source and its translation
    where: str  # file:line
    label: str = ""


class Reader:
    """The examples of some files, those that are learned from and those that are not."""

    def __init__(
        self,
        read: Callable[[Sequence[str | Path], Rejections], Iterator[Example]],
        paths: Sequence[str | Path],
        valid: Sequence[str | Path] | None,
        seed: int,
    ) -> None:
        self.read, self.paths, self.valid_paths, self.seed = read, paths, valid, seed
        self.threshold = -1
        if valid is None:
            self.threshold = self._choose_threshold()

    def train(self, rejections: Rejections | None = None) -> Iterator[Example]:
        """What is learned from. What cannot be used is counted in `rejections`."""
        for example in self.read(self.paths, rejections if rejections is not None else Rejections()):
            if self._hash(example) > self.threshold:
                yield example

    def valid(self, rejections: Rejections) -> Iterator[Example]:
        """What is measured on: the files given for it, or what was held out."""
        if self.valid_paths is not None:
            yield from self.read(self.valid_paths, rejections)
        else:
            yield from (each for each in self.read(self.paths, Rejections()) if self._hash(each) <= self.threshold)

    def _choose_threshold(self) -> int:
        """The examples whose first texts have the smallest hashes are held out: repeated ones stay on one side."""
        total, seen = 0, set[int]()
        smallest: list[int] = []  # a heap of the negative hashes, the largest hash on top
        for example in self.read(self.paths, Rejections()):
            total += 1
            number = self._hash(example)
            if number in seen or (len(smallest) == HELD_OUT_MOST and number > -smallest[0]):
                continue
            seen.add(number)
            heapq.heappush(smallest, -number)
            if len(smallest) > HELD_OUT_MOST:
                seen.discard(-heapq.heappop(smallest))
        if len(seen) < 2:
            raise InputError(
                f"{self.paths[0]}: {total:,} usable example(s), all with the same text: nothing to learn from and to "
                "measure on. Give at least two different texts."
            )
        wanted = min(max(1, int(total * HELD_OUT_SHARE)), len(seen) - 1, HELD_OUT_MOST)
        return sorted(seen)[wanted - 1]

    def _hash(self, example: Example) -> int:
        key = self.seed.to_bytes(8, "little")
        return int.from_bytes(blake2b(example.texts[0].encode(), digest_size=8, key=key).digest(), "little")
