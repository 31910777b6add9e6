"""The batches of an epoch, for a corpus of any size: its examples are planned in sections, one at a time in memory.

A corpus of up to `SECTION_EXAMPLES` is one section. A larger one is divided by the numbers of the examples, however it
is stored. Sections follow each other in an order that is a pure function of (seed, epoch), as is that of the batches
within each. How many batches a section has does not depend on the epoch, so that a position in an epoch stays one
integer: the number of a batch.
"""

import json
from collections.abc import Callable
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple

import numpy as np

from jumok.data.buckets import BatchPlan, Lengths, measure_batches, plan_batches
from jumok.data.store import Indices
from jumok.seeds import bit_stream

SECTION_EXAMPLES = 1 << 24
_KEPT = 2  # planned sections in memory: the one in use, and the first, which is used whenever the state is checked


class _Measured(NamedTuple):
    batches: int
    most_tokens: int  # padded, of one batch


class CorpusPlan:
    """Plans of all epochs. `lengths` gives the lengths of some examples, column by column."""

    def __init__(
        self, lengths: Callable[[slice], tuple[Lengths, ...]], examples: int, *, tokens: int, seed: int
    ) -> None:
        self.lengths, self.tokens, self.seed = lengths, tokens, seed
        size = SECTION_EXAMPLES
        self.sections = [slice(start, min(start + size, examples)) for start in range(0, max(1, examples), size)]
        self._kept: dict[tuple[int, int], BatchPlan] = {}

    def epoch(self, epoch: int) -> "EpochPlan":
        """The plan of one epoch."""
        return EpochPlan(self, epoch)

    def largest(self) -> Indices:
        """The examples of the batch with the most padded tokens."""
        numbers = range(len(self.sections))
        number = 0 if len(numbers) == 1 else max(numbers, key=lambda number: self._measured[number].most_tokens)
        plan = self.section(0, number)
        return plan.batch(plan.largest) + self.sections[number].start

    def sizes(self, epoch: int) -> list[int]:
        """Number of batches of each section."""
        if len(self.sections) == 1:  # it must be planned anyway
            return [len(self.section(epoch, 0))]
        return [measured.batches for measured in self._measured]

    @cached_property
    def _measured(self) -> list[_Measured]:
        return [_Measured(*measure_batches(self.lengths(section), self.tokens)) for section in self.sections]

    def section(self, epoch: int, number: int) -> BatchPlan:
        """The plan of one section. Its examples are counted from the beginning of the section."""
        plan = self._kept.get((epoch, number))
        if plan is None:
            # Replaced and never changed: the thread that makes batches ahead of time reads it at the same time.
            self._kept = dict([kept for kept in self._kept.items() if kept[0][0] == epoch][: _KEPT - 1])
            numbers = (epoch,) if len(self.sections) == 1 else (epoch, number)
            plan = plan_batches(self.lengths(self.sections[number]), self.tokens, self.seed, *numbers)
            self._kept = {**self._kept, (epoch, number): plan}
        return plan


class EpochPlan:
    """The batches of one epoch by their numbers, each as the numbers of its examples."""

    def __init__(self, corpus: CorpusPlan, epoch: int) -> None:
        self.corpus, self.epoch = corpus, epoch
        count = len(corpus.sections)
        order = np.argsort(bit_stream(corpus.seed, "sections", epoch).random_raw(count), kind="stable")
        self._order = [int(number) for number in order]
        self._sizes = corpus.sizes(epoch)
        self._ends = np.cumsum([self._sizes[number] for number in self._order])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, number: int) -> Indices:
        """The examples of that batch."""
        if not 0 <= number < len(self):
            raise IndexError(number)
        place = int(np.searchsorted(self._ends, number, side="right"))
        section = self._order[place]
        plan = self.corpus.section(self.epoch, section)
        return plan[number - int(self._ends[place]) + len(plan)] + self.corpus.sections[section].start

    def digest(self) -> str:
        """A fingerprint of the plan. For several sections it is made of what they follow from."""
        if len(self.corpus.sections) == 1:
            return self.corpus.section(self.epoch, 0).digest()
        settings = [self.corpus.seed, self.epoch, self.corpus.tokens, self.corpus.sections[0].stop]
        text = json.dumps([*settings, self._order, self._sizes])
        return sha256(text.encode()).hexdigest()
