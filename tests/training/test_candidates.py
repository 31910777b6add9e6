"""Sampled softmax: a loss that compares targets with some tokens of the vocabulary instead of all."""

import pytest
import torch
from torch import Tensor

from jumok.training.candidates import CandidateSampler
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.products import ROWS

VOCABULARY, SMOOTHING = 600, 0.1


def problem() -> tuple[Tensor, Tensor, Tensor]:
    """States, weights in double precision, and targets of which two are padding."""
    torch.manual_seed(1)
    states, weight = torch.randn(12, 8, dtype=torch.float64), torch.randn(VOCABULARY, 8, dtype=torch.float64)
    targets = torch.randint(1, VOCABULARY, (12,))
    targets[:2] = 0
    return states.requires_grad_(), weight.requires_grad_(), targets


def sampler(size: int) -> CandidateSampler:
    return CandidateSampler(torch.arange(VOCABULARY).flip(0), size)  # small ids are frequent


def test_candidates_are_the_targets_the_most_frequent_tokens_and_some_others_that_stand_for_all_others() -> None:
    targets = torch.tensor([500, 3, 500, 410])
    found = sampler(200).draw(targets)
    tokens, weights = found.tokens.tolist(), found.log_weights.exp()
    assert tokens[:102] == [*range(100), 410, 500]
    assert 202 <= len(tokens) == len(set(tokens)) <= 202 + ROWS
    assert len(tokens) % ROWS == 0  # products of few different shapes
    assert torch.equal(found.tokens[found.positions], targets)
    assert torch.equal(weights[:102], torch.ones(102))
    assert torch.allclose(weights[102:], torch.tensor((VOCABULARY - 102) / (len(tokens) - 102)))


def test_every_other_token_is_drawn_sometimes() -> None:
    torch.manual_seed(1)
    drawn = {token for _ in range(100) for token in sampler(100).draw(torch.tensor([500])).tokens.tolist()}
    assert drawn == set(range(VOCABULARY))


def test_with_as_many_candidates_as_tokens_loss_and_gradients_are_exact() -> None:
    states, weight, targets = problem()
    results = []
    for drawn in (None, sampler(2 * VOCABULARY)):
        loss = smoothed_cross_entropy(states, weight, targets, SMOOTHING, sampler=drawn)
        results.append((loss, *torch.autograd.grad(loss, (states, weight))))
    for exact, estimated in zip(*results, strict=True):
        torch.testing.assert_close(exact, estimated)


def test_gradients_are_those_of_the_estimated_loss() -> None:
    states, weight, targets = problem()
    torch.manual_seed(2)
    loss = smoothed_cross_entropy(states, weight, targets, SMOOTHING, sampler=sampler(100))
    gradients = torch.autograd.grad(loss, (states, weight))
    torch.manual_seed(2)
    found = sampler(100).draw(targets[2:])
    scores = states[2:] @ weight.t()
    normaliser = (scores[:, found.tokens] + found.log_weights).logsumexp(1)
    assert len(found.tokens) < VOCABULARY
    wanted = (1 - SMOOTHING) * scores.gather(1, targets[2:, None])[:, 0] + SMOOTHING * scores.mean(1)
    expected = (normaliser - wanted).sum()
    torch.testing.assert_close(loss, expected)
    for ours, theirs in zip(gradients, torch.autograd.grad(expected, (states, weight)), strict=True):
        torch.testing.assert_close(ours, theirs)


def test_the_sum_over_the_vocabulary_is_estimated_without_bias() -> None:
    torch.manual_seed(3)
    scores = torch.randn(VOCABULARY, dtype=torch.float64)
    draws = []
    for _ in range(4_000):
        found = sampler(100).draw(torch.tensor([500]))
        draws.append((scores[found.tokens] + found.log_weights).exp().sum())
    estimates = torch.stack(draws)
    error = estimates.std() / len(draws) ** 0.5
    assert error < 0.01 * scores.exp().sum()
    assert abs(estimates.mean() - scores.exp().sum()) < 5 * error


@pytest.mark.parametrize("size", [2, 5, 30])
def test_the_same_seed_draws_the_same_candidates(size: int) -> None:
    results = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        results.append(sampler(size).draw(torch.tensor([7])).tokens.tolist())
    assert results[0] == results[1] != results[2]
