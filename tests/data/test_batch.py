from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.batch import Batch, load_batches, make_batch, make_labelled_batch, make_text_batch
from jumok.data.buckets import BatchPlan, plan_batches
from jumok.data.store import TokenStore
from jumok.tokenizer import BOS, EOS, PAD

sentence = st.lists(st.integers(4, 500), max_size=7)


def batch_of(pairs: list[tuple[list[int], list[int]]]) -> Batch:
    def side(number: int) -> tuple[Any, Any]:
        rows = [pair[number] for pair in pairs]
        return np.array([i for row in rows for i in row], np.int64), np.array([len(row) for row in rows])

    return make_batch(*side(0), *side(1), np.arange(1, len(pairs) + 1))


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=8))
def test_rows_hold_the_sentences_and_nothing_but_padding_after_them(pairs: list[tuple[list[int], list[int]]]) -> None:
    batch = batch_of(pairs)
    wide = [max(len(pair[side]) for pair in pairs) + 1 for side in (0, 1)]
    for row, (source, target) in enumerate(pairs):
        assert batch.source[row].tolist() == [*source, EOS] + [PAD] * (wide[0] - len(source) - 1)
        assert batch.target_in[row].tolist() == [BOS, *target] + [PAD] * (wide[1] - len(target) - 1)
        assert batch.target_out[row].tolist() == [*target, EOS] + [PAD] * (wide[1] - len(target) - 1)
    assert batch.tokens == sum(len(target) + 1 for _, target in pairs)
    assert {array.dtype for array in (batch.source, batch.target_in, batch.target_out)} == {np.dtype(np.int64)}


@given(st.lists(st.tuples(sentence, sentence), min_size=1, max_size=8))
def test_halves_are_the_whole(pairs: list[tuple[list[int], list[int]]]) -> None:
    batch = batch_of(pairs)
    halves = batch.halves()
    if len(pairs) == 1:
        assert halves is None
        return
    assert halves is not None
    for name in ("source", "target_in", "target_out", "lines"):
        assert (np.concatenate([getattr(half, name) for half in halves]) == getattr(batch, name)).all()
    assert sum(half.tokens for half in halves) == batch.tokens


def test_a_batch_names_its_lines() -> None:
    assert batch_of([([5], [6])] * 3).describe() == "lines 1, 2, 3 of the corpus"
    assert batch_of([([5], [6])] * 9).describe() == "lines 1, 2, 3, 4, 5, 6, 7, 8, … of the corpus"


def test_examples_come_out_of_the_store(tmp_path: Path) -> None:
    examples = [([5, 6], [7], [10]), ([8], [9, 10, 11], [12]), ([4], [4], [13])]
    store = TokenStore.build(tmp_path / "s", examples, columns=("source", "target", "line"), fingerprint="a")
    indices = np.array([1, 0])
    lines = store.gather("line", indices)[0]
    batch = make_batch(*store.gather("source", indices), *store.gather("target", indices), lines)
    assert batch.source.tolist() == [[8, EOS, PAD], [5, 6, EOS]]
    assert batch.target_in.tolist() == [[BOS, 9, 10, 11], [BOS, 7, PAD, PAD]]
    assert batch.target_out.tolist() == [[9, 10, 11, EOS], [7, EOS, PAD, PAD]]
    assert batch.lines.tolist() == [12, 10]


def test_texts_alone_and_with_labels() -> None:
    flat, lengths, lines = np.array([5, 6, 7]), np.array([1, 2]), np.array([3, 9])
    texts = make_text_batch(flat, lengths, lines)
    assert texts.target_in.tolist() == [[BOS, 5, PAD], [BOS, 6, 7]]
    assert texts.target_out.tolist() == [[5, EOS, PAD], [6, 7, EOS]]
    assert texts.tokens == 5
    labelled = make_labelled_batch(flat, lengths, np.array([1, 0]), lines)
    assert labelled.text.tolist() == [[5, EOS, PAD], [6, 7, EOS]]
    assert labelled.tokens == 2
    first, second = labelled.halves() or pytest.fail("two rows can be halved")
    assert (first.labels.tolist(), second.labels.tolist(), second.lines.tolist()) == ([1], [0], [9])


@pytest.fixture
def plan() -> BatchPlan:
    lengths = np.random.default_rng(0).integers(1, 20, 200)
    return plan_batches((lengths, lengths), 64, 0, 0)


def background_threads() -> int:
    return sum(thread.name.startswith("batches") for thread in threading.enumerate())


@pytest.mark.parametrize("start", [0, 3])
@pytest.mark.parametrize("prefetch", [1, 4])
def test_the_background_keeps_the_order(plan: BatchPlan, start: int, prefetch: int) -> None:
    made = list(
        load_batches(plan, lambda number, indices: (number, indices.tolist()), range(start, len(plan)), prefetch)
    )
    assert made == [(number, plan[number].tolist()) for number in range(start, len(plan))]
    assert background_threads() == 0


def test_asking_for_none_gives_nothing(plan: BatchPlan) -> None:
    assert list(load_batches(plan, lambda number, _: number, [])) == []


def test_an_error_in_the_background_reaches_whoever_waits(plan: BatchPlan) -> None:
    def failing(number: int, _: Any) -> int:
        if number == 2:
            raise ValueError("batch 2 is unreadable")
        return number

    batches = load_batches(plan, failing, range(len(plan)))
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(ValueError, match="batch 2 is unreadable"):
        next(batches)
    assert background_threads() == 0


def test_leaving_early_ends_the_thread_and_it_never_runs_far_ahead(plan: BatchPlan) -> None:
    asked: list[int] = []
    batches = load_batches(plan, lambda number, _: asked.append(number) or number, range(len(plan)), prefetch=2)
    assert next(batches) == 0
    time.sleep(0.05)
    batches.close()  # type: ignore[attr-defined]
    assert background_threads() == 0
    assert len(asked) <= 4  # one taken, two waiting, one in hand
    assert len(plan) > 4
