"""A prepared corpus as the trainer wants it: batches whose order depends on (seed, epoch) alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jumok.data.batch import Batch, collate, load_batches, make_batch
from jumok.data.buckets import BatchPlan, plan_batches
from jumok.data.parallel import ParallelCorpus
from jumok.data.store import Indices
from jumok.seeds import derive_seed


class TranslationEpochs:
    """The training pairs as the trainer wants them: batches whose order depends on (seed, epoch) alone."""

    def __init__(self, corpus: ParallelCorpus, *, tokens: int, seed: int, sampling: float = 0.0) -> None:
        self.corpus, self.tokens, self.seed, self.sampling = corpus, tokens, seed, sampling
        self._plans: dict[int, BatchPlan] = {}

    def size(self, epoch: int) -> int:
        """How many batches the epoch has."""
        return len(self._plan(epoch))

    def digest(self, epoch: int) -> str:
        """A fingerprint of the data and its order."""
        return f"{self.corpus.facts['fingerprint']}:{self._plan(epoch).digest()}"

    def batches(self, epoch: int, start: int) -> Iterator[Batch]:
        """The batches of that epoch from `start` on, made in the background."""
        return load_batches(self._plan(epoch), lambda number, indices: self._collate(epoch, number, indices), start)

    def largest(self) -> Batch:
        """The batch with the most cells: of those with the most padded tokens, any."""
        plan = self._plan(0)
        lengths = np.maximum(self.corpus.train.lengths("source"), self.corpus.train.lengths("target"))
        cells = [int(lengths[plan[number]].max() + 1) * len(plan[number]) for number in range(len(plan))]
        return collate(self.corpus.train, plan[int(np.argmax(cells))])

    def _plan(self, epoch: int) -> BatchPlan:
        if epoch not in self._plans:
            store = self.corpus.train
            lengths = (store.lengths("source") + 1, store.lengths("target") + 1)  # with </s>
            self._plans = {epoch: plan_batches(lengths, self.tokens, self.seed, epoch)}
        return self._plans[epoch]

    def _collate(self, epoch: int, number: int, indices: Indices) -> Batch:
        if not self.sampling:
            return collate(self.corpus.train, indices)
        seed = derive_seed(self.seed, "subwords", epoch, number)
        source = self._sampled("source", indices, seed)
        target = self._sampled("target", indices, seed + 1)
        return make_batch(*source, *target, self.corpus.train.gather("line", indices)[0])

    def _sampled(self, column: str, indices: Indices, seed: int) -> tuple[Indices, Indices]:
        """The sentences cut into other subwords than last time."""
        ids = [self.corpus.train.example(column, int(index)) for index in indices]
        texts = self.corpus.tokenizer.decode(ids)
        sampled = self.corpus.tokenizer.encode_sampled(texts, self.sampling, seed)
        return np.array([number for row in sampled for number in row], np.int64), np.array(
            [len(row) for row in sampled]
        )
