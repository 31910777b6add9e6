"""A prepared corpus as batches, epoch by epoch. Their order depends on (seed, epoch) alone."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from jumok.data import batch
from jumok.data.batch import IdArray
from jumok.data.buckets import Lengths
from jumok.data.corpus import Corpus
from jumok.data.sections import CorpusPlan
from jumok.data.store import Indices
from jumok.seeds import bit_stream, derive_seed
from jumok.tokenizer import EOS, UNK, lower_case


class CorpusEpochs(ABC):
    """Batches of a corpus. A subclass names the columns of the store that are sequences, and makes a batch of them."""

    columns: ClassVar[Sequence[str]]
    augmentations: ClassVar[Sequence[str]] = ()  # names of the settings `augment.*` that it takes as arguments

    def __init__(self, corpus: Corpus, *, tokens: int, seed: int, sampling: float = 0.0) -> None:
        self.corpus, self.tokens, self.seed, self.sampling = corpus, tokens, seed, sampling
        self.plan = CorpusPlan(self._lengths, len(corpus.train), tokens=tokens, seed=seed)

    @abstractmethod
    def _make(self, texts: Sequence[tuple[IdArray, IdArray]], indices: Indices) -> Any:
        """A batch of these examples. `texts` has for each column their concatenated ids and their lengths."""

    def size(self, epoch: int) -> int:
        """Number of batches of an epoch."""
        return len(self.plan.epoch(epoch))

    def digest(self, epoch: int) -> str:
        """A fingerprint of the data and its order."""
        return f"{self.corpus.facts['fingerprint']}:{self.plan.epoch(epoch).digest()}"

    def batches(self, epoch: int, numbers: Sequence[int]) -> Iterator[Any]:
        """The batches of an epoch with these numbers, made in a background thread."""
        return batch.load_batches(self.plan.epoch(epoch), partial(self._collate, epoch), numbers)

    def largest(self) -> Any:
        """The batch with the most padded tokens."""
        return self._plain(self.plan.largest())

    def _lengths(self, examples: slice) -> tuple[Lengths, ...]:
        """How many tokens each of some examples counts for in a batch, with </s>, column by column."""
        return tuple(self.corpus.train.lengths(column, examples) + 1 for column in self.columns)

    def _collate(self, epoch: int, number: int, indices: Indices) -> Any:
        return self._make(self._texts(epoch, number, indices), indices)

    def _plain(self, indices: Indices) -> Any:
        return self._make([self.corpus.train.gather(column, indices) for column in self.columns], indices)

    def _texts(self, epoch: int, number: int, indices: Indices) -> list[tuple[IdArray, IdArray]]:
        """For each column, the concatenated ids of the examples of a batch, and their lengths."""
        if not self.sampling:
            return [self.corpus.train.gather(column, indices) for column in self.columns]
        seed = derive_seed(self.seed, "subwords", epoch, number)
        return [self._sampled(column, indices, seed + n) for n, column in enumerate(self.columns)]

    def _sampled(self, column: str, indices: Indices, seed: int) -> tuple[IdArray, IdArray]:
        """Concatenated ids and lengths of the texts, split into subwords at random (subword regularization)."""
        ids = [self.corpus.train.example(column, int(index)) for index in indices]
        texts = self.corpus.tokenizer.decode(ids)
        sampled = self.corpus.tokenizer.encode_sampled(texts, self.sampling, seed)
        lengths = np.array([len(row) for row in sampled])
        return np.array([number for row in sampled for number in row], np.int64), lengths

    def _column(self, name: str, indices: Indices) -> IdArray:
        """The values of a column that has one number an example."""
        return self.corpus.train.gather(name, indices)[0]


class TranslationEpochs(CorpusEpochs):
    """Batches of sentence pairs. Some sources, other ones in every epoch, are in small letters; their targets stay as
    they are. `case` is their share. `token_dropout` is the share of the tokens, other ones in every epoch, that the
    model does not see: <unk> stands for them in the source and in the target so far. It has to predict them all the
    same."""

    columns = ("source", "target")
    augmentations = ("case", "token_dropout")

    def __init__(self, corpus: Corpus, *, case: float = 0.0, token_dropout: float = 0.0, **options: Any) -> None:
        super().__init__(corpus, **options)
        self.case, self.token_dropout = case, token_dropout

    def _collate(self, epoch: int, number: int, indices: Indices) -> batch.Batch:
        made: batch.Batch = super()._collate(epoch, number, indices)
        if not self.token_dropout:
            return made
        bits = bit_stream(self.seed, "token dropout", epoch, number)
        sides = {side: self._hide_some(getattr(made, side), bits) for side in ("source", "target_in")}
        return replace(made, **sides)

    def _hide_some(self, ids: IdArray, bits: np.random.Philox) -> IdArray:
        """<unk> in place of some tokens; <s>, </s> and padding stay."""
        chosen = bits.random_raw(ids.size).reshape(ids.shape) < self.token_dropout * 2**64
        return np.where(chosen & (ids > EOS), UNK, ids)

    def _texts(self, epoch: int, number: int, indices: Indices) -> list[tuple[IdArray, IdArray]]:
        source, target = super()._texts(epoch, number, indices)
        if not self.case:
            return [source, target]
        bits = bit_stream(self.seed, "case", epoch, number).random_raw(len(indices))
        chosen = np.flatnonzero(bits < self.case * 2**64)
        rows = np.split(source[0], np.cumsum(source[1])[:-1])
        tokenizer = self.corpus.tokenizer
        texts = tokenizer.decode([rows[row].tolist() for row in chosen])
        for row, ids in zip(chosen, tokenizer.encode(list(map(lower_case, texts))), strict=True):
            rows[row] = np.array(ids, np.int64)
        return [(np.concatenate(rows), np.array([len(row) for row in rows])), target]

    def _make(self, texts: Sequence[tuple[IdArray, IdArray]], indices: Indices) -> batch.Batch:
        return batch.make_batch(*texts[0], *texts[1], self._column("line", indices))


class TextEpochs(CorpusEpochs):
    """Batches of texts for a language model."""

    columns = ("text",)

    def _make(self, texts: Sequence[tuple[IdArray, IdArray]], indices: Indices) -> batch.TextBatch:
        return batch.make_text_batch(*texts[0], self._column("line", indices))


class LabelledEpochs(CorpusEpochs):
    """Batches of texts with labels."""

    columns = ("text",)

    def _make(self, texts: Sequence[tuple[IdArray, IdArray]], indices: Indices) -> batch.LabelledBatch:
        return batch.make_labelled_batch(*texts[0], self._column("label", indices), self._column("line", indices))
