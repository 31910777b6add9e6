"""A corpus that is planned in sections: every example once an epoch, in an order that depends on seed and epoch."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data import sections
from jumok.data.buckets import BatchPlan, Lengths, measure_batches, plan_batches
from jumok.data.sections import CorpusPlan
from jumok.seeds import bit_stream

COUNT, SIZE, TOKENS = 1_000, 300, 128


def sentence_lengths(count: int) -> tuple[Lengths, Lengths]:
    draw = np.random.default_rng(0)
    source = (3 + draw.poisson(11, count)).astype(np.int32)
    return source, np.maximum(2, source + draw.integers(-3, 6, count)).astype(np.int32)


@pytest.fixture
def four_sections(monkeypatch: pytest.MonkeyPatch) -> CorpusPlan:
    monkeypatch.setattr(sections, "SECTION_EXAMPLES", SIZE)
    return plan_of(sentence_lengths(COUNT))


def plan_of(lengths: tuple[Lengths, ...], seed: int = 1) -> CorpusPlan:
    return CorpusPlan(lambda some: tuple(column[some] for column in lengths), len(lengths[0]), tokens=TOKENS, seed=seed)


def batches_of(corpus: CorpusPlan, epoch: int) -> list[list[int]]:
    plan = corpus.epoch(epoch)
    return [plan[number].tolist() for number in range(len(plan))]


def test_one_section_is_planned_as_a_corpus_always_was() -> None:
    lengths = sentence_lengths(COUNT)
    corpus, expected = plan_of(lengths), plan_batches(lengths, TOKENS, 1, 3)
    assert batches_of(corpus, 3) == [expected[number].tolist() for number in range(len(expected))]
    assert corpus.epoch(3).digest() == expected.digest()


def test_every_epoch_has_every_example_once_and_sections_stay_together(four_sections: CorpusPlan) -> None:
    orders = set()
    for epoch in range(6):
        batches = batches_of(four_sections, epoch)
        assert sorted(index for batch in batches for index in batch) == list(range(COUNT))
        owners = [{index // SIZE for index in batch} for batch in batches]
        assert all(len(owner) == 1 for owner in owners)
        order = tuple(dict.fromkeys(owner.pop() for owner in owners))
        assert len(order) == 4
        orders.add(order)
    assert len(orders) > 1
    assert (
        batches_of(four_sections, 2) == batches_of(plan_of(sentence_lengths(COUNT)), 2) != batches_of(four_sections, 3)
    )


def test_the_digest_follows_seed_epoch_and_budget(four_sections: CorpusPlan) -> None:
    other = CorpusPlan(four_sections.lengths, COUNT, tokens=TOKENS + 1, seed=1)
    plans = [
        four_sections.epoch(0),
        four_sections.epoch(1),
        plan_of(sentence_lengths(COUNT), 2).epoch(0),
        other.epoch(0),
    ]
    assert len({plan.digest() for plan in plans}) == 4
    assert plans[0].digest() == plan_of(sentence_lengths(COUNT)).epoch(0).digest()


def test_any_batch_can_be_asked_for_while_few_sections_are_kept(
    four_sections: CorpusPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state is checked with the first batch of the epoch again and again."""
    made: list[int] = []

    def counted(*arguments: object) -> BatchPlan:
        made.append(1)
        return plan_batches(*arguments)  # type: ignore[arg-type]

    expected = batches_of(four_sections, 1)
    monkeypatch.setattr(sections, "plan_batches", counted)
    plan = plan_of(sentence_lengths(COUNT)).epoch(1)
    for number in range(0, len(plan), 3):
        assert plan[number].tolist() == expected[number]
        assert plan[0].tolist() == expected[0]
    assert len(made) == 4
    with pytest.raises(IndexError):
        plan[len(plan)]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=80), st.integers(1, 200))
def test_what_is_measured_is_what_is_planned(pairs: list[tuple[int, int]], tokens: int) -> None:
    table = np.array(pairs, np.int32).reshape(-1, 2)
    lengths = (table[:, 0], table[:, 1])
    count, most = measure_batches(lengths, tokens)
    plan = plan_batches(lengths, tokens, 5, 6)
    padded = [len(plan[n]) * int(table[plan[n]].max()) for n in range(len(plan))]
    assert (count, most) == (len(plan), max(padded, default=0))
    if len(plan):
        assert len(plan.batch(plan.largest)) * int(table[plan.batch(plan.largest)].max()) == most
    # The order that every version has: sorted by several keys, the most important one last.
    direction = np.where(lengths[1] % 2 == 0, 1, -1)
    random = bit_stream(5, "batches", 6).random_raw(len(table))
    assert plan.examples.tolist() == np.lexsort([random, lengths[0] * direction, lengths[1]]).tolist()


def test_the_largest_batch_of_all_sections_is_found(four_sections: CorpusPlan) -> None:
    lengths = np.maximum.reduce(sentence_lengths(COUNT))
    sizes = [len(batch) * int(lengths[batch].max()) for batch in batches_of(four_sections, 0)]
    largest = four_sections.largest()
    assert len(largest) * int(lengths[largest].max()) == max(sizes)
