"""best_candidates against a stable sort of everything."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.search.ranking import BLOCK, best_candidates


def by_sorting(log_probs, totals, count):
    sums = (log_probs + totals[:, :, None]).flatten(1)
    found = torch.sort(sums, dim=1, descending=True, stable=True)
    return found.values[:, :count], found.indices[:, :count]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**31),
    sentences=st.integers(1, 4),
    rows=st.integers(1, 5),
    vocabulary=st.sampled_from([1, 3, 50, BLOCK * 30, BLOCK * 30 + 1, BLOCK * 31 - 1]),
    count=st.integers(1, 12),
    levels=st.sampled_from([2, 40, 10**6]),
    impossible=st.booleans(),
)
def test_same_as_sorting_everything(seed, sentences, rows, vocabulary, count, levels, impossible):
    generator = torch.Generator().manual_seed(seed)
    log_probs = -torch.randint(0, levels, (sentences, rows, vocabulary), generator=generator).float() / 8
    totals = -torch.randint(0, levels, (sentences, rows), generator=generator).float() / 8
    if impossible:
        log_probs[:, :, ::2] = -torch.inf
        totals[:, 1:] = -torch.inf
    values, places = best_candidates(log_probs, totals, count)
    expected_values, expected_places = by_sorting(log_probs, totals, count)
    assert values.equal(expected_values)
    possible = values > -torch.inf
    assert places[possible].equal(expected_places[possible])
    assert ((places >= 0) & (places < rows * vocabulary)).all()


@pytest.mark.parametrize("vocabulary", [8000, 7993])
def test_real_sizes_use_no_slow_path(vocabulary, monkeypatch):
    log_probs = torch.randn(8, 5, vocabulary, generator=torch.Generator().manual_seed(1)).log_softmax(2)
    log_probs[:, :, -1] = torch.linspace(-0.4, 0.0, 40).view(8, 5)  # the last block, short or not, is among the best
    totals = torch.linspace(-9, -1, 40).view(8, 5)
    expected = by_sorting(log_probs, totals, 10)
    monkeypatch.setattr(torch, "sort", None)
    monkeypatch.setattr("jumok.search.ranking._search_all", None)
    with torch.device("meta"):  # tensors made without naming their device could not meet the others
        values, places = best_candidates(log_probs, totals, 10)
    assert values.equal(expected[0])
    assert places.equal(expected[1])


@pytest.mark.parametrize("vocabulary", [300, BLOCK * 30])
def test_equal_ones_below_the_best_are_ordered_too(vocabulary):
    log_probs = torch.full((1, 2, vocabulary), -3.0)
    log_probs[0, 1, 7] = -0.5
    log_probs[0, :, 5::2] = torch.where(log_probs[0, :, 5::2] == -3.0, -1.0, log_probs[0, :, 5::2])
    totals = torch.zeros(1, 2)
    values, places = best_candidates(log_probs, totals, 5)
    expected_values, expected_places = by_sorting(log_probs, totals, 5)
    assert values.equal(expected_values)
    assert places.equal(expected_places)
