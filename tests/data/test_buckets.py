from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.buckets import plan_batches
from jumok.errors import ConfigError

pairs = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 40)), max_size=80)


def columns(lengths: list[tuple[int, int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    table = np.array(lengths, np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def sentences(count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Lengths as of short sentence pairs: the two sides resemble each other."""
    draw = np.random.default_rng(0)
    source = 3 + draw.poisson(11, count)
    return source, np.maximum(2, source + draw.integers(-3, 6, count))


@given(pairs, st.integers(1, 200), st.integers(0, 5), st.integers(0, 5))
def test_every_example_once_and_no_batch_over_the_budget(
    lengths: list[tuple[int, int]], tokens: int, seed: int, epoch: int
) -> None:
    source, target = columns(lengths)
    plan = plan_batches((source, target), tokens, seed, epoch)
    batches = [plan[number] for number in range(len(plan))]
    assert sorted(int(i) for batch in batches for i in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(source[batch].max(), target[batch].max())
        assert padded <= tokens or len(batch) == 1
        assert len(batch) > 0


@given(pairs, st.integers(1, 200), st.integers(0, 2**40), st.integers(0, 1000))
def test_the_order_depends_on_seed_and_epoch_alone(
    lengths: list[tuple[int, int]], tokens: int, seed: int, epoch: int
) -> None:
    first, again = (plan_batches(columns(lengths), tokens, seed, epoch) for _ in range(2))
    assert first.digest() == again.digest()
    assert all((first[number] == again[number]).all() for number in range(len(first)))


def test_seeds_and_epochs_give_other_orders_and_other_company() -> None:
    lengths = sentences(2_000)
    plans = [plan_batches(lengths, 512, seed, epoch) for seed, epoch in ((1, 0), (1, 1), (2, 0))]
    assert len({plan.digest() for plan in plans}) == 3
    together = [{frozenset(plan[number].tolist()) for number in range(len(plan))} for plan in plans]
    assert len(together[0] & together[1]) < len(plans[0]) / 10
    longest = [int(lengths[1][plans[0][number]].max()) for number in range(len(plans[0]))]
    assert longest != sorted(longest)  # short and long batches are mixed


@pytest.mark.parametrize("tokens", [1024, 4096])
def test_little_of_a_batch_is_padding(tokens: int) -> None:
    lengths = sentences(30_000)
    plan = plan_batches(lengths, tokens, 1, 0)
    padded = sum(len(plan[n]) * sum(int(side[plan[n]].max()) for side in lengths) for n in range(len(plan)))
    assert 1 - sum(int(side.sum()) for side in lengths) / padded <= 0.03


def test_a_batch_number_outside_the_plan_is_an_error() -> None:
    plan = plan_batches(columns([(3, 3), (4, 4)]), 4, 0, 0)
    for number in (-1, len(plan)):
        with pytest.raises(IndexError):
            plan[number]


def test_a_budget_below_one_token_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"batch\.tokens=0"):
        plan_batches(columns([(3, 3)]), 0, 0, 0)


def test_a_large_corpus_is_planned_quickly() -> None:
    lengths = sentences(200_000)
    before = time.process_time()
    plan_batches(lengths, 4096, 1, 0)
    assert time.process_time() - before < 2  # 0.1 s expected; one Python step an example would take longer than this
