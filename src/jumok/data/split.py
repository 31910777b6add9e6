"""Which examples of a corpus are held out for validation, if no validation files are given."""

import heapq
import json
from hashlib import blake2b

from jumok.data.examples import Example
from jumok.errors import InputError, counted

HELD_OUT_SHARE, HELD_OUT_MOST = 0.05, 1000


class Holdout:
    """Chooses validation examples while a corpus is read once: `add` every example, then `choose`.

    Examples whose first inputs have the smallest hashes are held out, so that repeated ones stay on one side. Of every
    class, the one with the largest hash is trained on. Memory: hashes of HELD_OUT_MOST examples and of one a class.
    """

    def __init__(self, seed: int) -> None:
        self._key = seed.to_bytes(8, "little")
        self._total = 0
        self._smallest: list[int] = []  # a heap of negative hashes, the largest hash on top
        self._candidates: set[int] = set()  # the same hashes
        self._largest: dict[str, int] = {}  # the largest hash of each class
        self._threshold = -1
        self._kept: set[int] = set()  # below the threshold, but trained on

    def add(self, example: Example) -> int:
        """Take an example into account; returns its hash."""
        first = example.inputs[0]
        text = first if isinstance(first, str) else json.dumps(first, sort_keys=True)
        number = int.from_bytes(blake2b(text.encode(), digest_size=8, key=self._key).digest(), "little")
        self._total += 1
        if number > self._largest.get(example.label, -1):
            self._largest[example.label] = number
        full = len(self._smallest) == HELD_OUT_MOST
        if not (full and number > -self._smallest[0]) and number not in self._candidates:
            self._candidates.add(number)
            heapq.heappush(self._smallest, -number)
            if full:
                self._candidates.discard(-heapq.heappop(self._smallest))
        return number

    def choose(self, name: str, what: str = "texts") -> None:
        """Decide which examples are held out. `name` is that of the corpus, `what` of its examples, for the error."""
        free = sorted(self._candidates.difference(self._largest.values()))
        if not free:
            of_a_class = " of a class" if len(self._largest) > 1 else ""
            raise InputError(
                f"{name}: all {what}{of_a_class} are identical ({counted(self._total, 'usable example')}); none can "
                f"be held out for validation. Give at least two different {what}{of_a_class}, or other files with "
                "`valid=`."
            )
        self._threshold = free[min(max(1, int(self._total * HELD_OUT_SHARE)), len(free)) - 1]
        self._kept = {number for number in self._largest.values() if number <= self._threshold}

    def holds(self, number: int) -> bool:
        """Whether the example with this hash is held out."""
        return number <= self._threshold and number not in self._kept
