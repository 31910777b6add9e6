"""Adam without PyTorch's compiler is PyTorch's Adam."""

import torch
from torch import Tensor

from jumok.training.optimizer import Adam


def parameters() -> list[Tensor]:
    torch.manual_seed(3)
    return [torch.nn.Parameter(torch.randn(4, 3)), torch.nn.Parameter(torch.randn(5))]


def fill_gradients(weights: list[Tensor], step: int) -> None:
    for number, weight in enumerate(weights):
        weight.grad = torch.full_like(weight, 0.1 * (step + 1) * (-1) ** number)


def test_updates_and_state_are_those_of_pytorch() -> None:
    ours, theirs = parameters(), parameters()
    own = Adam(ours, (0.9, 0.98), 1e-9)
    other = torch.optim.Adam(theirs, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
    for step in range(3):
        for optimizer, weights in ((own, ours), (other, theirs)):
            fill_gradients(weights, step)
            optimizer.param_groups[0]["lr"] = 0.01 / (step + 1)
            optimizer.step()
            optimizer.zero_grad()
    assert all(torch.equal(one, two) for one, two in zip(ours, theirs, strict=True))
    assert all(weight.grad is None for weight in ours)
    states = [optimizer.state_dict() for optimizer in (own, other)]
    assert states[0]["param_groups"] == states[1]["param_groups"]
    for one, two in zip(*(state["state"].values() for state in states), strict=True):
        assert all(torch.equal(one[name], two[name]) for name in ("step", "exp_avg", "exp_avg_sq"))


def test_an_update_that_is_not_finite_is_not_made() -> None:
    weights = parameters()
    before = [weight.clone() for weight in weights]
    optimizer = Adam(weights, (0.9, 0.98), 1e-9)
    optimizer.param_groups[0]["lr"] = 0.01
    optimizer.found_inf = torch.ones(())
    fill_gradients(weights, 0)
    optimizer.step()
    assert all(torch.equal(weight, old) for weight, old in zip(weights, before, strict=True))
    optimizer.found_inf = torch.zeros(())
    optimizer.step()
    assert not any(torch.equal(weight, old) for weight, old in zip(weights, before, strict=True))
