"""Reading a corpus several times, always with the same examples held out for validation."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

from jumok.data.examples import Example, ExampleReader, Rejections
from jumok.errors import InputError

HELD_OUT_SHARE, HELD_OUT_MOST = 0.05, 1000  # examples for validation when none are given


class Reader:
    """The examples of some files, those that are learned from and those that are not."""

    def __init__(
        self,
        read: ExampleReader,
        paths: Sequence[str | Path],
        valid: Sequence[str | Path] | None,
        seed: int,
    ) -> None:
        self.read, self.paths, self.valid_paths, self.seed = read, paths, valid, seed
        self.threshold = -1
        self.last_of_a_class: set[int] = set()  # below the threshold, and yet learned from
        if valid is None:
            self._choose()

    def train(self, rejections: Rejections | None = None) -> Iterator[Example]:
        """What is learned from. What cannot be used is counted in `rejections`."""
        for example in self.read(self.paths, rejections if rejections is not None else Rejections()):
            if not self._is_held_out(example):
                yield example

    def valid(self, rejections: Rejections) -> Iterator[Example]:
        """What is measured on: the files given for it, or what was held out."""
        if self.valid_paths is not None:
            yield from self.read(self.valid_paths, rejections)
        else:
            yield from filter(self._is_held_out, self.read(self.paths, Rejections()))

    def _is_held_out(self, example: Example) -> bool:
        number = self._hash(example)
        return number <= self.threshold and number not in self.last_of_a_class

    def _choose(self) -> None:
        """The examples whose first texts have the smallest hashes are held out: repeated ones stay on one side.

        Of every class, the one with the largest is learned from: a class of which nothing is learned would be lost.
        """
        total, seen, last = 0, set[int](), dict[str, int]()
        smallest: list[int] = []  # a heap of the negative hashes, the largest hash on top
        for example in self.read(self.paths, Rejections()):
            total += 1
            number = self._hash(example)
            last[example.label] = max(number, last.get(example.label, 0))
            if number in seen or (len(smallest) == HELD_OUT_MOST and number > -smallest[0]):
                continue
            seen.add(number)
            heapq.heappush(smallest, -number)
            if len(smallest) > HELD_OUT_MOST:
                seen.discard(-heapq.heappop(smallest))
        free = sorted(seen.difference(last.values()))
        if not free:
            of_a_class = " of a class" if len(last) > 1 else ""
            raise InputError(
                f"{self.paths[0]}: {total:,} usable example(s), all{of_a_class} with the same text: nothing to learn "
                f"from and to measure on. Give at least two different texts{of_a_class}, or others with --valid."
            )
        self.threshold = free[min(max(1, int(total * HELD_OUT_SHARE)), len(free)) - 1]
        self.last_of_a_class = {number for number in last.values() if number <= self.threshold}

    def _hash(self, example: Example) -> int:
        key = self.seed.to_bytes(8, "little")
        return int.from_bytes(blake2b(_bytes_of(example.inputs[0]), digest_size=8, key=key).digest(), "little")


def _bytes_of(value: Any) -> bytes:
    """Bytes that are the same for equal inputs: of a text its UTF-8, of anything else its JSON."""
    return value.encode() if isinstance(value, str) else json.dumps(value, sort_keys=True).encode()
