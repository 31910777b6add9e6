import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from jumok.errors import ConfigError
from jumok.training import objective
from jumok.training.objective import smoothed_cross_entropy


def problem(rows: int, vocabulary: int, seed: int, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    """States and weights of width 8, double precision, and answers of which about a third are padding."""
    draw = torch.Generator().manual_seed(seed)
    states = torch.randn(rows, 8, generator=draw, dtype=torch.float64) * scale
    weight = torch.randn(vocabulary, 8, generator=draw, dtype=torch.float64)
    answers = torch.randint(1, vocabulary, (rows,), generator=draw)
    answers[torch.rand(rows, generator=draw) < 0.3] = 0
    return states.requires_grad_(), weight.requires_grad_(), answers


def usual_way(states: Tensor, weight: Tensor, answers: Tensor, smoothing: float) -> Tensor:
    logits = states @ weight.t()
    return functional.cross_entropy(logits, answers, ignore_index=0, label_smoothing=smoothing, reduction="sum")


@given(
    rows=st.integers(1, 30),
    vocabulary=st.integers(2, 40),
    smoothing=st.sampled_from([0.0, 0.1, 0.5]),
    block=st.integers(1, 200),
    seed=st.integers(0, 10**6),
)
def test_loss_and_gradients_equal_the_usual_way(
    rows: int, vocabulary: int, smoothing: float, block: int, seed: int
) -> None:
    states, weight, answers = problem(rows, vocabulary, seed)
    expected = usual_way(states, weight, answers, smoothing)
    expected_gradients = torch.autograd.grad(expected * 0.25, (states, weight))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(objective, "BLOCK_NUMBERS", block)
        loss = smoothed_cross_entropy(states, weight, answers, smoothing)
        gradients = torch.autograd.grad(loss * 0.25, (states, weight))
    torch.testing.assert_close(loss, expected, rtol=1e-9, atol=1e-9)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_single_precision_stays_close() -> None:
    states, weight, answers = problem(500, 1000, seed=1)
    exact = usual_way(states, weight, answers, 0.1)
    loss = smoothed_cross_entropy(states.float(), weight.float(), answers, 0.1)
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(exact.item(), rel=1e-6)


def test_a_sum_of_many_blocks_loses_no_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    states, weight, answers = problem(30_000, 4, seed=6)
    exact = usual_way(states, weight, answers, 0.1)
    monkeypatch.setattr(objective, "BLOCK_NUMBERS", 4 * 10)
    loss = smoothed_cross_entropy(states.float(), weight.float(), answers, 0.1)
    assert loss.item() == pytest.approx(exact.item(), rel=1.5e-7)  # float32 itself has a relative error of 6e-8


def test_an_answer_thought_impossible_has_a_finite_and_exact_loss() -> None:
    states, weight, answers = problem(20, 30, seed=2, scale=100.0)
    exact = usual_way(states, weight, answers, 0.1)
    loss = smoothed_cross_entropy(states.float(), weight.float(), answers, 0.1)
    assert exact.item() > 1000  # some answers have probabilities far below the smallest float32
    assert loss.item() == pytest.approx(exact.item(), rel=1e-5)


def test_padding_has_no_influence_at_all() -> None:
    states, weight, answers = problem(40, 30, seed=3)
    real = answers != 0
    padded = smoothed_cross_entropy(states, weight, answers, 0.1)
    alone = smoothed_cross_entropy(states[real], weight, answers[real], 0.1)
    assert torch.equal(padded, alone)
    (gradient,) = torch.autograd.grad(padded, states)
    assert torch.equal(gradient[~real], torch.zeros_like(gradient[~real]))


def test_only_padding_is_a_loss_of_zero() -> None:
    states, weight, answers = problem(5, 10, seed=4)
    loss = smoothed_cross_entropy(states, weight, torch.zeros_like(answers), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert weight.grad.abs().sum().item() == 0


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_smoothing_outside_its_range_is_refused(smoothing: float) -> None:
    with pytest.raises(ConfigError, match=str(smoothing)):
        smoothed_cross_entropy(*problem(2, 5, seed=5), smoothing)
