"""Muon: matrices get updates with singular values of about 1, everything else what Adam gives."""

import copy

import pytest
import torch
from torch import Tensor, nn

from jumok.model.attention import MultiHeadAttention
from jumok.model.layers import DecoderLayer
from jumok.model.matrices import hidden_matrices
from jumok.training.checkpoint import flatten_optimizer, restore_optimizer
from jumok.training.distributed import ProcessGroup
from jumok.training.muon import MOMENTUM, SCALE, Muon, orthogonalise

BETAS, EPSILON, RATE = (0.9, 0.98), 1e-9, 0.01


def optimizer_of(model: nn.Module, group: ProcessGroup | None = None, every: int = 1) -> Muon:
    matrices = hidden_matrices(model)
    others = [weight for weight in model.parameters() if weight not in matrices]
    options = {} if group is None else {"group": group}
    optimizer = Muon(matrices, others, betas=BETAS, eps=EPSILON, every=every, **options)
    for each in optimizer.param_groups:
        each["lr"] = RATE
    return optimizer


def with_gradients(model: nn.Module, seed: int = 1) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    for weight in model.parameters():
        weight.grad = torch.randn(weight.shape, generator=generator)
    return model


def layer(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return DecoderLayer(16, 2, 32, cross=True, norm="pre", activation="relu", dropout=0.0)


def nearest_orthogonal(matrix: Tensor) -> Tensor:
    """U Vᵀ of the singular value decomposition U S Vᵀ."""
    left, _, right = torch.linalg.svd(matrix, full_matrices=False)
    return left @ right


@pytest.mark.parametrize("shape", [(1, 1), (8, 8), (8, 40), (40, 8), (128, 512)])
def test_singular_values_come_close_to_1_and_singular_vectors_stay(shape: tuple[int, int]) -> None:
    torch.manual_seed(1)
    left, _, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    values = torch.linspace(0.02, 1, min(shape))
    values = values.clamp(min=0.041 * float(values.norm(4)))
    result = orthogonalise((left @ torch.diag(values) @ right)[None])[0]
    found = left.mT @ result @ right.mT  # diagonal, if the singular vectors are the same
    assert found.diagonal().min() >= 0.71
    assert found.diagonal().max() <= 1.29
    assert (found - torch.diag(found.diagonal())).abs().max() < 1e-4


def test_a_matrix_of_zeros_has_an_update_of_zeros() -> None:
    assert orthogonalise(torch.zeros(1, 4, 6)).abs().max() == 0


def test_queries_keys_and_values_are_matrices_of_their_own() -> None:
    attention = MultiHeadAttention(16, 2)
    with_gradients(attention)
    before = attention.query_key_value.weight.detach().clone()
    gradient = attention.query_key_value.weight.grad
    assert gradient is not None
    optimizer_of(attention).step()
    moved = (before - attention.query_key_value.weight.detach()) / RATE
    for block, direction in zip(moved.split(16), gradient.split(16), strict=True):
        expected = SCALE * 4 * orthogonalise((direction * (1 + MOMENTUM))[None])[0]
        assert torch.allclose(block, expected, atol=1e-5)
        # Far from what the three as one matrix would get: its singular values are about 1 in each block.
        similarity = nn.functional.cosine_similarity(block.flatten(), nearest_orthogonal(direction).flatten(), 0)
        assert similarity > 0.95


def test_tall_matrices_are_updated_as_their_transposes_are() -> None:
    tall, wide = nn.Conv2d(2, 64, 1, bias=False), nn.Conv2d(64, 2, 1, bias=False)
    wide.weight.data = tall.weight.data.transpose(0, 1).clone()
    gradient = torch.randn(64, 2, 1, 1)
    tall.weight.grad, wide.weight.grad = gradient, gradient.transpose(0, 1).contiguous()
    optimizer_of(tall).step()
    optimizer_of(wide).step()
    assert torch.equal(tall.weight.data.transpose(0, 1), wide.weight.data)


def test_what_is_no_matrix_between_states_is_updated_exactly_as_by_adam() -> None:
    one, two = layer(), layer()
    muon = optimizer_of(one)
    matrices = hidden_matrices(two)
    others = [weight for weight in two.parameters() if weight not in matrices]
    adam = torch.optim.Adam(others, lr=RATE, betas=BETAS, eps=EPSILON, fused=True)
    for seed in range(3):
        with_gradients(one, seed)
        with_gradients(two, seed)
        muon.step()
        adam.step()
    named = dict(one.named_parameters())
    same = [name for name, weight in two.named_parameters() if torch.equal(weight, named[name])]
    assert same == [name for name, weight in two.named_parameters() if weight not in matrices]
    assert {name.split(".")[-1] for name in same} == {"weight", "bias"}  # of norms, and of the feed-forward


@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_restored_optimizer_goes_on_with_the_same_bits(every: int) -> None:
    model = layer()
    optimizer = optimizer_of(model, every=every)
    with_gradients(model, 1)
    optimizer.step()
    tensors, state = flatten_optimizer(optimizer)
    resumed = copy.deepcopy(model)
    other = optimizer_of(resumed, every=every)
    restore_optimizer(other, {name: tensor.clone() for name, tensor in tensors.items()}, state)
    for each, its in ((model, optimizer), (resumed, other)):
        with_gradients(each, 2)
        its.step()
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), resumed.parameters(), strict=True))
    assert any(not torch.equal(a, b) for a, b in zip(model.parameters(), layer().parameters(), strict=True))


def test_with_every_2_a_matrix_is_updated_in_every_second_step_by_twice_as_much_and_each_step_updates_half() -> None:
    usual, alternating = layer(), layer()
    optimizers = optimizer_of(usual), optimizer_of(alternating, every=2)
    sizes, moved_in = [], []
    for seed in range(4):
        before = [[weight.detach().clone() for weight in hidden_matrices(model)] for model in (usual, alternating)]
        for model, optimizer in zip((usual, alternating), optimizers, strict=True):
            with_gradients(model, seed)
            optimizer.step()
        after = [list(hidden_matrices(model)) for model in (usual, alternating)]
        steps, doubled = (
            [new.detach() - old for old, new in zip(*both, strict=True)] for both in zip(before, after, strict=True)
        )
        moved_in.append([bool(step.abs().max() > 0) for step in doubled])
        sizes.append(sum(step.numel() for step, moved in zip(doubled, moved_in[-1], strict=True) if moved))
        for step, twice, moved in zip(steps, doubled, moved_in[-1], strict=True):
            assert torch.allclose(twice, 2 * step, atol=1e-6) or not moved
    assert moved_in[0] == moved_in[2] == [not moved for moved in moved_in[1]] == [not moved for moved in moved_in[3]]
    assert 0.6 < sizes[0] / sizes[1] < 1.6


def test_with_more_turns_than_matrices_some_steps_update_none_of_them() -> None:
    model = layer()
    matrices = list(hidden_matrices(model))
    optimizer = optimizer_of(model, every=len(matrices) + 2)
    moved = [0] * len(matrices)
    for seed in range(len(matrices) + 2):
        before = [weight.detach().clone() for weight in matrices]
        with_gradients(model, seed)
        optimizer.step()
        for number, (old, new) in enumerate(zip(before, matrices, strict=True)):
            moved[number] += not torch.equal(old, new)
    assert moved == [1] * len(matrices)


@pytest.mark.parametrize("every", [1, 2])
@pytest.mark.parametrize("overflows", [0.0, 1.0])
def test_a_step_whose_gradients_are_not_finite_changes_nothing(overflows: float, every: int) -> None:
    model = with_gradients(layer())
    optimizer = optimizer_of(model, every=every)
    optimizer.step()
    before = copy.deepcopy([[*model.parameters()], [*optimizer.state.values()]])
    with_gradients(model, 2)
    if overflows:
        for weight in model.parameters():
            assert weight.grad is not None
            weight.grad.fill_(torch.nan)
    optimizer.found_inf = torch.tensor(overflows)
    optimizer.step()
    assert all(bool(weight.isfinite().all()) for weight in model.parameters())
    unchanged = [torch.equal(old, new) for old, new in zip(before[0], model.parameters(), strict=True)]
    assert all(unchanged) if overflows else any(unchanged) == (every > 1)
    assert overflows or not all(unchanged)
    momentum = [
        (old["momentum"], new["momentum"])
        for old, new in zip(before[1], optimizer.state.values(), strict=True)
        if "momentum" in old
    ]
    assert all(torch.equal(old, new) == bool(overflows) for old, new in momentum)


def test_a_skipped_step_and_none_give_the_same_next_step() -> None:
    plain, skipping = layer(), layer()
    one, two = optimizer_of(plain), optimizer_of(skipping)
    two.found_inf = torch.tensor(0.0)
    for seed in range(2):
        with_gradients(plain, seed)
        one.step()
        with_gradients(skipping, seed)
        two.step()
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(plain.parameters(), skipping.parameters(), strict=True))


class _Half(ProcessGroup):
    """One of two processes that computes only its half of the rows, and knows what the other would send."""

    size = 2
    computed = 0

    def compute_shared(self, compute, rows: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
        self.computed += len(rows[: -(-len(rows) // 2)])
        return torch.cat([compute(rows[: -(-len(rows) // 2)]), compute(rows[-(-len(rows) // 2) :])])


def test_shares_of_the_matrices_together_are_the_whole_update() -> None:
    alone, shared = with_gradients(layer()), with_gradients(layer())
    group = _Half()
    optimizer_of(alone).step()
    optimizer_of(shared, group).step()
    assert 0 < group.computed < sum(len(heights) for heights in hidden_matrices(shared).values())
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(alone.parameters(), shared.parameters(), strict=True))
