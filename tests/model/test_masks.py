"""Masks, against a rule written as a loop: query t at position past + t sees a key iff it is real and not later."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import ShapeError
from jumok.model.masks import PAD, causal_mask, check_mask, look_ahead_mask, none_if_open, padding_mask


@given(st.integers(1, 4), st.integers(0, 5), st.integers(0, 4), st.integers(0, 2**32))
def test_look_ahead_contains_padding_and_the_past(batch: int, length: int, past: int, seed: int) -> None:
    torch.manual_seed(seed)
    ids = torch.randint(0, 3, (batch, length))
    mask = look_ahead_mask(ids, past)
    assert mask.shape == (batch, 1, length, past + length)
    assert mask.dtype == torch.bool
    for row in range(batch):
        for query in range(length):
            for key in range(past + length):
                real = key < past or int(ids[row, key - past]) != PAD
                assert bool(mask[row, 0, query, key]) == (real and key <= past + query)


def test_nothing_is_past_unless_it_is_said() -> None:
    assert look_ahead_mask(torch.tensor([[5, 6]])).tolist() == [[[[True, False], [True, True]]]]
    assert causal_mask(2).tolist() == [[[[True, False], [True, True]]]]


def test_padding_mask_is_true_for_real_tokens() -> None:
    assert padding_mask(torch.tensor([[5, PAD, 7], [PAD, PAD, PAD]])).tolist() == [
        [[[True, False, True]]],
        [[[False] * 3]],
    ]


@given(st.integers(0, 6), st.integers(0, 6))
def test_every_position_sees_itself_and_nothing_later(length: int, past: int) -> None:
    mask = causal_mask(length, past)[0, 0]
    assert mask.shape == (length, past + length)
    assert [int(row.sum()) for row in mask] == [past + query + 1 for query in range(length)]
    assert all(bool(row[: past + query + 1].all()) for query, row in enumerate(mask))


def test_a_mask_that_hides_nothing_is_none() -> None:
    assert none_if_open(torch.ones(2, 1, 1, 3, dtype=torch.bool)) is None
    hiding = torch.tensor([True, False])[None, None, None]
    assert none_if_open(hiding) is hiding


@pytest.mark.parametrize(("length", "past"), [(-1, 0), (3, -2)])
def test_negative_lengths(length: int, past: int) -> None:
    with pytest.raises(ShapeError, match=rf"at least 0.*length={length}.*past={past}"):
        causal_mask(length, past)
    if length >= 0:
        with pytest.raises(ShapeError, match=f"past={past}"):
            look_ahead_mask(torch.ones(2, length, dtype=torch.long), past)


@given(st.tuples(*(st.integers(1, 3),) * 4), st.lists(st.integers(1, 3), min_size=1, max_size=5))
def test_a_mask_fits_exactly_when_it_can_be_spread_over_the_scores(
    scores: tuple[int, int, int, int], shape: list[int]
) -> None:
    mask = torch.ones(shape, dtype=torch.bool)
    fits = len(shape) == 4 and all(size in (1, want) for size, want in zip(shape, scores, strict=True))
    if fits:
        check_mask(mask, torch.Size(scores))
        assert mask.expand(scores).shape == scores
    else:
        with pytest.raises(ShapeError, match="does not fit"):
            check_mask(mask, torch.Size(scores))
