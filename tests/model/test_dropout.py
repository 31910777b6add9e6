"""Dropout: the statistics of the textbook, from a generator of our own."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from jumok.errors import ConfigError
from jumok.model.dropout import Dropout, keep_mask

MANY = 1_000_000
RATES = [0.01, 0.1, 0.3, 0.5, 0.9]


def kept(rate: float, *shape: int) -> Tensor:
    """True where an element survived."""
    return Dropout(rate)(torch.ones(*shape)) != 0


@pytest.mark.parametrize("rate", RATES)
def test_the_rate_is_met_and_the_mean_stays(rate: float) -> None:
    out = Dropout(rate)(torch.ones(MANY))
    deviation = math.sqrt(rate * (1 - rate) / MANY)  # of a share of that many independent elements
    assert abs(float((out == 0).double().mean()) - rate) < 5 * deviation
    assert abs(float(out.double().mean()) - 1) < 5 * deviation / (1 - rate)
    survivors = out[out != 0].unique()
    assert len(survivors) == 1
    assert math.isclose(float(survivors), 1 / (1 - rate), rel_tol=1 / 65536 / (1 - rate))


@pytest.mark.parametrize("distance", [1, 2, 3, 4, 5, 1000])
def test_elements_do_not_depend_on_each_other(distance: int) -> None:
    """Four elements come from one draw: neither those nor neighbouring draws may know of each other."""
    for rate in (0.1, 0.5):
        signs = (kept(rate, MANY).double() - (1 - rate)) / math.sqrt(rate * (1 - rate))
        correlation = float((signs[:-distance] * signs[distance:]).mean())
        assert abs(correlation) < 5 / math.sqrt(MANY - distance)


def test_every_place_in_a_draw_has_the_same_rate() -> None:
    shares = kept(0.3, MANY // 4, 4).double().mean(0)
    assert float((shares - 0.7).abs().max()) < 5 * math.sqrt(0.21 / (MANY // 4))


def test_two_calls_are_independent() -> None:
    first, second = ((kept(0.5, MANY).double() - 0.5) * 2 for _ in range(2))
    assert abs(float((first * second).mean())) < 5 / math.sqrt(MANY)


def test_hardly_any_two_calls_are_alike() -> None:
    masks = {tuple(kept(0.5, 64).tolist()) for _ in range(300)}
    assert len(masks) == 300


def test_on_another_device_torch_s_own_dropout_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    x, taken = torch.ones(3, device="meta"), []
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda *arguments: taken.append(arguments) or x)
    assert Dropout(0.3)(x) is x
    assert taken == [(x, 0.3)]


def test_the_seed_of_torch_decides_everything() -> None:
    def three_calls(seed: int) -> list[Tensor]:
        torch.manual_seed(seed)
        return [kept(0.5, 100) for _ in range(3)]

    first, again, other = three_calls(1), three_calls(1), three_calls(2)
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    masks = [mask.tolist() for mask in (*first, *other)]
    assert all(masks.count(mask) == 1 for mask in masks)


def test_the_state_of_torch_s_generator_is_the_only_state() -> None:
    dropout, x = Dropout(0.5), torch.ones(100)
    dropout(x)
    state = torch.get_rng_state()
    wanted = dropout(x)
    dropout(x)
    torch.set_rng_state(state)
    assert torch.equal(dropout(x), wanted)
    assert not dropout.state_dict()


@pytest.mark.parametrize("rate", [0.0, 0.5])
def test_evaluation_and_rate_zero_are_the_identity_and_draw_nothing(rate: float) -> None:
    x, dropout = torch.randn(7), Dropout(rate)
    before = torch.get_rng_state()
    assert dropout.eval()(x) is x
    assert (dropout.train()(x) is x) == (rate == 0)
    assert torch.equal(torch.get_rng_state(), before) == (rate == 0)


@given(st.lists(st.integers(0, 5), max_size=4), st.sampled_from(RATES))
def test_any_shape_forward_and_backward_with_one_mask(shape: list[int], rate: float) -> None:
    """Also empty ones, single numbers, and sizes that are no multiple of the four elements of a draw."""
    x = torch.randn(shape, requires_grad=True)
    out = Dropout(rate)(x)
    assert out.shape == x.shape
    (gradient,) = torch.autograd.grad(out.sum(), x)
    mask = out.detach() / x.detach()
    torch.testing.assert_close(gradient, mask)
    assert all(value == 0 or math.isclose(value, 1 / (1 - rate), rel_tol=1e-3) for value in gradient.flatten().tolist())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_every_precision(dtype: torch.dtype) -> None:
    torch.manual_seed(7)
    out = Dropout(0.3)(torch.ones(1001, dtype=dtype))
    torch.manual_seed(7)
    assert out.dtype == dtype
    assert torch.equal(out != 0, Dropout(0.3)(torch.ones(1001)) != 0)
    assert math.isclose(float(out.max()), 1 / 0.7, rel_tol=float(torch.finfo(dtype).eps) + 1e-4)


def test_inputs_that_are_not_contiguous() -> None:
    x = torch.randn(4, 6)
    torch.manual_seed(3)
    mask = keep_mask(torch.empty(6, 4), 0.5)
    torch.manual_seed(3)
    assert torch.equal(Dropout(0.5)(x.T), x.T * mask)


@pytest.mark.parametrize("rate", [0.99999, 0.9999999, 1e-9])
def test_rates_at_the_ends_of_the_range(rate: float) -> None:
    out = Dropout(rate)(torch.ones(1000))
    assert bool(out.isfinite().all())
    assert float((out == 0).float().mean()) == pytest.approx(rate, abs=0.01)


def test_something_stays_however_close_the_rate_is_to_one() -> None:
    assert set(Dropout(0.9999999)(torch.ones(MANY)).unique().tolist()) == {0.0, 65536.0}


@pytest.mark.parametrize("rate", [-0.1, 1.0, 1.5, math.nan, math.inf])
def test_what_is_not_a_rate(rate: float) -> None:
    with pytest.raises(ConfigError, match=rf"dropout={rate}.*at least 0 and below 1"):
        Dropout(rate)


def test_it_shows_its_rate() -> None:
    assert repr(Dropout(0.25)) == "Dropout(0.25)"
