"""Batches as the model wants them: padded arrays of ids, made in the background while another is learned from."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from jumok.data.buckets import BatchPlan
from jumok.data.store import Indices
from jumok.tokenizer import BOS, EOS, PAD

Ids = npt.NDArray[np.int64]


class _Rows:
    """What every batch can do: a dataclass of arrays, one row an example, `lines` [B] say where each stands."""

    lines: Ids

    def halves(self) -> tuple[Self, Self] | None:
        """The batch in two parts, or None if it is a single example."""
        middle = len(self.lines) // 2
        if middle == 0:
            return None
        return self._rows(slice(None, middle)), self._rows(slice(middle, None))

    def describe(self) -> str:
        """Which examples these are, by their lines in the corpus."""
        shown = ", ".join(str(line) for line in self.lines[:8])
        return f"lines {shown}{', …' if len(self.lines) > 8 else ''} of the corpus"

    def _rows(self, rows: slice) -> Self:
        return type(self)(*(getattr(self, field.name)[rows] for field in fields(self)))  # type: ignore[arg-type]


@dataclass(frozen=True)
class Batch(_Rows):
    """Sentence pairs. Rows end with padding."""

    source: Ids  # [B, S] ends with </s>
    target_in: Ids  # [B, T] begins with <s>
    target_out: Ids  # [B, T] the same one token later: ends with </s>
    lines: Ids  # [B] where each pair stands in the corpus

    @property
    def tokens(self) -> int:
        """How many target tokens are to be predicted."""
        return int(np.count_nonzero(self.target_out != PAD))


@dataclass(frozen=True)
class TextBatch(_Rows):
    """Texts, each token of which is to be predicted."""

    target_in: Ids  # [B, T] begins with <s>
    target_out: Ids  # [B, T] the same one token later: ends with </s>
    lines: Ids

    @property
    def tokens(self) -> int:
        """How many tokens are to be predicted."""
        return int(np.count_nonzero(self.target_out != PAD))


@dataclass(frozen=True)
class LabelledBatch(_Rows):
    """Texts and what they are."""

    text: Ids  # [B, S] ends with </s>
    labels: Ids  # [B]
    lines: Ids

    @property
    def tokens(self) -> int:
        """How many answers are to be given: one a text."""
        return len(self.labels)


def make_batch(source: Ids, source_lengths: Ids, target: Ids, target_lengths: Ids, lines: Ids) -> Batch:
    """A batch from the ids of all its sentences one after another, and their lengths."""
    return Batch(_pad(source, source_lengths), *_begun_and_ended(target, target_lengths), lines)


def make_text_batch(text: Ids, lengths: Ids, lines: Ids) -> TextBatch:
    """The same of texts alone."""
    return TextBatch(*_begun_and_ended(text, lengths), lines)


def make_labelled_batch(text: Ids, lengths: Ids, labels: Ids, lines: Ids) -> LabelledBatch:
    """The same of texts with the numbers of their classes."""
    return LabelledBatch(_pad(text, lengths), labels, lines)


def _begun_and_ended(flat: Ids, lengths: Ids) -> tuple[Ids, Ids]:
    """Rows that begin with <s>, and the same one token later: what each position is to predict."""
    ended = _pad(flat, lengths)
    begun = np.roll(ended, 1, axis=1)
    begun[:, 0] = BOS
    begun[begun == EOS] = PAD  # what stood at the end of the shorter ones
    return begun, ended


def _pad(flat: Ids, lengths: Ids) -> Ids:
    """Rows of ids, each followed by </s> and then by padding up to the longest."""
    rows = np.full((len(lengths), int(lengths.max()) + 1), PAD, np.int64)
    rows[np.arange(rows.shape[1]) < lengths[:, None]] = flat
    rows[np.arange(len(lengths)), lengths] = EOS
    return rows


_END = object()


def load_batches(
    plan: BatchPlan, collate: Callable[[int, Indices], Any], numbers: Sequence[int], prefetch: int = 4
) -> Iterator[Any]:
    """Batches of a plan by their numbers, each made by `collate(number, examples)` in a background thread."""
    ready: queue.Queue[Any] = queue.Queue(prefetch)
    abandoned = threading.Event()

    def put(item: Any) -> bool:
        while not abandoned.is_set():
            try:
                ready.put(item, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for number in numbers:
                if not put(collate(number, plan[number])):
                    return
            put(_END)
        except BaseException as error:
            put(error)

    worker = threading.Thread(target=work, name="batches", daemon=True)
    worker.start()
    try:
        while (item := ready.get()) is not _END:
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        abandoned.set()
        worker.join()
