"""Batches: padded arrays of ids, made in a background thread while the model trains on another."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from jumok.data.store import Indices
from jumok.tokenizer import BOS, EOS, PAD

IdArray = npt.NDArray[np.int64]


class Rows:
    """Base of all batches: a dataclass of arrays with one row an example; `lines` [B] are their lines in the corpus."""

    lines: IdArray

    def halves(self) -> tuple[Self, Self] | None:
        """The batch split in two, or None if it has a single example."""
        middle = len(self.lines) // 2
        return (self._rows(slice(None, middle)), self._rows(slice(middle, None))) if middle else None

    def describe(self) -> str:
        """The lines of its examples in the corpus, for messages."""
        shown = ", ".join(str(line) for line in self.lines[:8])
        return f"lines {shown}{', …' if len(self.lines) > 8 else ''} of the corpus"

    def _rows(self, rows: slice) -> Self:
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))  # type: ignore[arg-type]


class _Predicted(Rows):
    """A batch whose target tokens are to be predicted."""

    target_out: IdArray

    @property
    def tokens(self) -> int:
        """Number of target tokens to predict."""
        return int(np.count_nonzero(self.target_out != PAD))


@dataclass(frozen=True)
class Batch(_Predicted):
    """Sentence pairs. Rows end with padding."""

    source: IdArray  # [B, S] ends with </s>
    target_in: IdArray  # [B, T] begins with <s>
    target_out: IdArray  # [B, T] target_in one token later: ends with </s>
    lines: IdArray  # [B] of each pair in the corpus


@dataclass(frozen=True)
class TextBatch(_Predicted):
    """Texts of which every token is to be predicted."""

    target_in: IdArray  # [B, T] begins with <s>
    target_out: IdArray  # [B, T] target_in one token later: ends with </s>
    lines: IdArray


@dataclass(frozen=True)
class LabelledBatch(Rows):
    """Texts and the numbers of their classes."""

    text: IdArray  # [B, S] ends with </s>
    labels: IdArray  # [B]
    lines: IdArray

    @property
    def tokens(self) -> int:
        """Number of labels to predict: one a text."""
        return len(self.labels)


def make_batch(
    source: IdArray, source_lengths: IdArray, target: IdArray, target_lengths: IdArray, lines: IdArray
) -> Batch:
    """A batch of sentence pairs, from the concatenated ids of each side and their lengths."""
    return Batch(pad_rows(source, source_lengths), *_shifted(target, target_lengths), lines)


def make_text_batch(text: IdArray, lengths: IdArray, lines: IdArray) -> TextBatch:
    """A batch of texts, from their concatenated ids and their lengths."""
    return TextBatch(*_shifted(text, lengths), lines)


def make_labelled_batch(text: IdArray, lengths: IdArray, labels: IdArray, lines: IdArray) -> LabelledBatch:
    """A batch of texts with the numbers of their classes."""
    return LabelledBatch(pad_rows(text, lengths), labels, lines)


def _shifted(flat: IdArray, lengths: IdArray) -> tuple[IdArray, IdArray]:
    """Rows that begin with <s>, and the same one token later: the targets of each position."""
    target_out = pad_rows(flat, lengths)
    target_in = np.roll(target_out, 1, axis=1)
    target_in[:, 0] = BOS
    target_in[target_in == EOS] = PAD  # the end of rows shorter than the longest
    return target_in, target_out


def pad_rows(flat: IdArray, lengths: IdArray) -> IdArray:
    """Rows of ids, each followed by </s> and padded to the longest."""
    rows = np.full((len(lengths), int(lengths.max()) + 1), PAD, np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = flat
    rows[np.arange(len(lengths)), lengths] = EOS
    return rows


class Plan(Protocol):
    """Examples of batches by their numbers."""

    def __getitem__(self, number: int, /) -> Any: ...


def load_batches(
    plan: Plan, collate: Callable[[int, Indices], Any], numbers: Sequence[int], prefetch: int = 4
) -> Iterator[Any]:
    """Batches of a plan by their numbers, each made by `collate(number, examples)` in a background thread."""
    ready: deque[Future[Any]] = deque()
    worker = ThreadPoolExecutor(1, thread_name_prefix="batches")
    try:
        for number in numbers:
            ready.append(worker.submit(collate, number, plan[number]))
            if len(ready) > prefetch:
                yield ready.popleft().result()
        while ready:
            yield ready.popleft().result()
    finally:
        worker.shutdown(cancel_futures=True)
