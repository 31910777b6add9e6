"""Sinusoids against the paper's formula, written a second time in NumPy's float64; learned positions and their end."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import ConfigError, ShapeError
from jumok.model.positions import (
    LearnedPositions,
    Rotations,
    SinusoidalPositions,
    make_positions,
    rotate,
    rotations,
    sinusoids,
)


def by_the_formula(position: int, d_model: int) -> np.ndarray:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)); PE(pos, 2i+1) = cos(pos / 10000^(2i/d))."""
    values = [
        trigonometric(position / np.power(np.float64(10000), 2 * pair / d_model))
        for pair in range(d_model // 2)
        for trigonometric in (np.sin, np.cos)
    ]
    return np.array(values)


@given(st.integers(0, 100_000), st.integers(1, 40).map(lambda half: 2 * half), st.integers(1, 3))
def test_sinusoids_are_the_paper_s(start: int, d_model: int, length: int) -> None:
    table = sinusoids(length, d_model, start)
    assert table.shape == (length, d_model)
    for row in range(length):
        np.testing.assert_allclose(table[row].numpy(), by_the_formula(start + row, d_model), atol=1e-7, rtol=0)


def test_far_positions_are_as_exact_as_near_ones() -> None:
    table = sinusoids(100_001, 8)
    for position in (0, 1, 9_999, 65_536, 100_000):
        np.testing.assert_allclose(table[position].numpy(), by_the_formula(position, 8), atol=1e-7, rtol=0)


def test_the_notebook_s_matrix_of_50_by_128_lies_between_minus_one_and_one() -> None:
    table = sinusoids(50, 128)
    assert table.shape == (50, 128)
    assert float(table.min()) >= -1
    assert float(table.max()) <= 1
    assert table[0].tolist() == [0.0, 1.0] * 64


def test_a_shift_is_a_rotation_that_does_not_depend_on_the_position() -> None:
    """The paper's reason for sinusoids: PE(pos + k) is a linear function of PE(pos)."""
    pairs = sinusoids(40, 16).double().view(40, 8, 2)
    as_complex = torch.complex(pairs[..., 1], pairs[..., 0])  # cos + i sin
    for shift in (1, 5):
        turns = as_complex[shift:] / as_complex[:-shift]
        torch.testing.assert_close(turns, turns[:1].expand_as(turns), atol=1e-6, rtol=0)


def test_the_table_grows_with_the_text_and_is_not_saved() -> None:
    module = SinusoidalPositions(6)
    short = module(torch.zeros(1, 3, 6))
    assert torch.equal(short[0], sinusoids(3, 6))
    for length, start in ((500, 0), (1, 2_000), (2, 10_000), (4, 1)):
        assert torch.equal(module(torch.zeros(2, length, 6), start)[1], sinusoids(length, 6, start))
    assert not module.state_dict()
    assert not list(module.parameters())


def test_growing_does_not_recompute_the_table_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    module, grown = SinusoidalPositions(4), []
    monkeypatch.setattr("jumok.model.positions.sinusoids", lambda *sizes: (grown.append(sizes), sinusoids(*sizes))[1])
    for position in range(600):
        module(torch.zeros(1, 1, 4), position)
    assert len(grown) == 4  # 128, 256, 512, 1024


def test_a_table_grown_for_inference_serves_training_and_other_precisions() -> None:
    module = SinusoidalPositions(4)
    with torch.inference_mode():
        module(torch.zeros(1, 100, 4))
    x = torch.zeros(1, 100, 4, requires_grad=True)
    module(x).sum().backward()
    assert x.grad is not None
    for dtype in (torch.float64, torch.bfloat16):
        assert module(torch.zeros(1, 200, 4, dtype=dtype)).dtype == dtype
        assert module.to(dtype)(torch.zeros(1, 500, 4, dtype=dtype)).dtype == dtype


def test_learned_positions_add_their_rows_and_learn() -> None:
    module = LearnedPositions(5, 4)
    out = module(torch.zeros(2, 3, 4), start=2)
    assert torch.equal(out, module.weight[2:5].expand(2, 3, 4))
    out.sum().backward()
    assert module.weight.grad is not None
    assert module.weight.grad[:, 0].tolist() == [0, 0, 2, 2, 2]


def test_learned_positions_begin_at_the_first_row_and_with_vectors_of_length_about_one() -> None:
    module = LearnedPositions(500, 64)
    assert torch.equal(module(torch.zeros(1, 3, 64))[0], module.weight[:3])
    assert float(module.weight.detach().norm(dim=1).mean()) == pytest.approx(1, abs=0.05)


def test_the_smallest_width_and_no_positions_at_all() -> None:
    assert sinusoids(2, 2)[0].tolist() == [0.0, 1.0]
    x = torch.randn(1, 3, 2)
    assert torch.equal(make_positions("none", 2, 9)(x), x)


def test_make_positions() -> None:
    assert isinstance(make_positions("learned", 4, 9), LearnedPositions)
    assert isinstance(make_positions("sinusoidal", 4, 9), SinusoidalPositions)
    assert "max_length=9, d_model=4" in repr(make_positions("learned", 4, 9))
    assert "any length" in repr(make_positions("sinusoidal", 4, 9))


@pytest.mark.parametrize(("length", "start"), [(6, 0), (1, 5), (3, 3)])
def test_a_text_too_long_for_learned_positions(length: int, start: int) -> None:
    with pytest.raises(ShapeError, match=rf"{length + start} tokens.*end at 5.*max_length.*sinusoidal"):
        LearnedPositions(5, 4)(torch.zeros(1, length, 4), start)


@pytest.mark.parametrize("d_model", [7, 1, 0, -2])
def test_odd_and_empty_widths(d_model: int) -> None:
    with pytest.raises(ConfigError, match=f"even and not {d_model}"):
        sinusoids(3, d_model)
    with pytest.raises(ConfigError, match=f"even and not {d_model}"):
        SinusoidalPositions(d_model)


@pytest.mark.parametrize(("length", "start"), [(-1, 0), (3, -1)])
def test_negative_lengths(length: int, start: int) -> None:
    with pytest.raises(ShapeError, match=rf"at least 0.*length={length}.*start={start}"):
        sinusoids(length, 4, start)


@pytest.mark.parametrize("module", [SinusoidalPositions(4), LearnedPositions(9, 4)], ids=["sinusoidal", "learned"])
def test_negative_start(module: SinusoidalPositions | LearnedPositions) -> None:
    with pytest.raises(ShapeError, match="start=-1"):
        module(torch.zeros(1, 1, 4), -1)


@given(st.integers(0, 3_000), st.integers(1, 20).map(lambda half: 2 * half))
def test_a_rotation_turns_pairs_of_numbers_by_the_angles_of_the_sinusoids(position: int, width: int) -> None:
    x = torch.randn(1, 1, 1, width, dtype=torch.float64)
    first, second = x[0, 0, 0].view(2, width // 2).numpy()
    angles = position / np.power(np.float64(10000), np.arange(0, width, 2) / width)
    turned = (first + 1j * second) * np.exp(1j * angles)
    result = rotate(x, rotations(1, width, position).double())[0, 0, 0].numpy()
    np.testing.assert_allclose(result, np.concatenate([turned.real, turned.imag]), atol=1e-6)


def test_products_of_rotated_queries_and_keys_depend_on_how_far_apart_they_stand() -> None:
    q, k = torch.randn(2, 1, 1, 1, 8, dtype=torch.float64).expand(2, 1, 1, 30, 8)
    turn = rotations(30, 8).double()
    products = (rotate(q, turn) @ rotate(k, turn).mT)[0, 0]
    for distance in (-7, 0, 3):
        along = products.diagonal(distance)
        torch.testing.assert_close(along, along[:1].expand_as(along), atol=1e-6, rtol=0)
    assert products[0].std() > 0.01  # they do depend on that


def test_the_gradient_of_a_rotation_is_that_of_its_formula() -> None:
    x = torch.randn(2, 5, 3, 6, dtype=torch.float64, requires_grad=True)
    turn = rotations(5, 6).double()
    assert torch.autograd.gradcheck(lambda heads: rotate(heads.transpose(1, 2), turn), (x,))


def test_rotations_grow_with_the_text_and_can_be_trained_with_after_inference() -> None:
    module = Rotations(6)
    with torch.inference_mode():
        module(torch.zeros(1), 500)
    for length, start in ((3, 0), (400, 0), (1, 2_000), (4, 1)):
        assert torch.equal(module(torch.zeros(1), length, start), rotations(length, 6, start))
    x = torch.randn(1, 1, 400, 6, requires_grad=True)
    rotate(x, module(x, 400)).sum().backward()
    assert x.grad is not None
    assert module(torch.zeros(1, dtype=torch.float64), 4).dtype == torch.float64
    assert not module.state_dict()
