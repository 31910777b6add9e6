"""Muon (Jordan et al. 2024): the update of a matrix is its momentum with all singular values made about 1.

A gradient of a matrix has few large singular values, so plain steps move the weights in few directions only. Muon moves
them in all directions alike, and learns more from each batch. It is for matrices between states; embeddings, norms,
biases and class scores are updated by Adam, with the same learning rate.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam

from jumok.model.matrices import Heights
from jumok.training.distributed import SINGLE_PROCESS, ProcessGroup
from jumok.training.optimizer import WithoutCompiler

MOMENTUM = 0.95
SCALE = 0.2  # of the update: its elements are about as large as those of Adam's (Liu et al. 2025)
# x ↦ ax + bx³ + cx⁵ twice brings every singular value from 0.04..1 to 0.71..1.29. Each is the polynomial with the
# smallest largest error on what the one before leaves (the idea of Amsel et al. 2025, "The Polar Express").
POLYNOMIALS = ((7.044122, -19.493643, 14.169002), (2.700368, -2.009055, 0.456161))
_TINY = 1e-7  # a matrix of zeros stays so


def orthogonalise(matrices: Tensor, product: torch.dtype = torch.float32) -> Tensor:
    """[N, R, C] → [N, R, C]: the same singular vectors, singular values of about 1: 0.71 to 1.29, but for those below
    0.04 (Σσ⁴)^¼. R ≤ C is faster. `product` is the number format of the products."""
    result: Tensor = (matrices / (torch.linalg.matrix_norm(matrices, keepdim=True) + _TINY)).to(product)
    squares = result @ result.mT
    # No singular value exceeds (Σσ⁴)^¼, the root of the norm of X Xᵀ. That is much closer to the largest one than the
    # norm of X is, (Σσ²)^½, so that the small ones begin closer to 1, and two polynomials do what three did.
    bound = (torch.linalg.matrix_norm(squares.float(), keepdim=True) + _TINY).to(product)
    first, second = POLYNOMIALS
    result = _evaluate(first, result * bound.rsqrt(), squares / bound)
    return _evaluate(second, result, result @ result.mT).to(matrices.dtype)


def _evaluate(polynomial: tuple[float, float, float], matrices: Tensor, squares: Tensor) -> Tensor:
    """a X + b X Xᵀ X + c (X Xᵀ)² X of each matrix X, whose X Xᵀ is in `squares`."""
    a, b, c = polynomial
    return torch.baddbmm(matrices, torch.baddbmm(squares, squares, squares, beta=b, alpha=c), matrices, beta=a)


def _balanced_groups(sizes: Sequence[int], count: int) -> list[int]:
    """The number of the group, from 0 to `count` - 1, of each of these sizes. All groups have about the same sum."""
    order = sorted(range(len(sizes)), key=lambda number: -sizes[number])
    return [order.index(number) % count for number in range(len(sizes))]


class Muon(WithoutCompiler, torch.optim.Optimizer):
    """Muon for `matrices` (see `hidden_matrices`), Adam for the `others`. With `every` N above 1, each matrix is
    updated in every N-th step only, by N times as much: each step orthogonalises about one N-th of them, others than
    the step before. Each process of a group orthogonalises its share of them, with products in the number format
    `product`. If `found_inf` is set and not 0, a step changes no weight and no moment, as with PyTorch's Adam."""

    found_inf: Tensor | None = None

    def __init__(
        self,
        matrices: Mapping[Tensor, Heights],
        others: Sequence[Tensor],
        *,
        betas: tuple[float, float],
        eps: float,
        every: int = 1,
        group: ProcessGroup = SINGLE_PROCESS,
        product: torch.dtype = torch.float32,
    ) -> None:
        self._heights, self._group = list(matrices.values()), group
        self._every, self._turns = every, _balanced_groups([weight.numel() for weight in matrices], every)
        self._orthogonalise = partial(orthogonalise, product=product)
        by_adam = {"params": list(others), "betas": betas, "eps": eps, "fused": True}
        super().__init__([by_adam, {"params": list(matrices), "momentum": MOMENTUM}], {"lr": 0.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Update all weights that have a gradient."""
        assert closure is None, "nothing here computes the loss again"
        by_adam, by_muon = self.param_groups
        self._adam_step(by_adam)
        self._muon_step(by_muon)

    def _adam_step(self, group: dict[str, Any]) -> None:
        weights = [weight for weight in group["params"] if weight.grad is not None]
        for weight in weights:
            if not self.state[weight]:
                moments = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
                self.state[weight] = {"step": torch.zeros((), device=weight.device), **moments}
        states = [self.state[weight] for weight in weights]
        adam(
            weights,
            [weight.grad for weight in weights],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            fused=True,
            found_inf=self.found_inf,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=0.0,
            eps=group["eps"],
            maximize=False,
        )

    def _muon_step(self, group: dict[str, Any]) -> None:
        matrices = zip(group["params"], self._heights, self._turns, strict=True)
        learning = [(weight, heights, turn) for weight, heights, turn in matrices if weight.grad is not None]
        directions = self._directions([weight for weight, _, _ in learning], group["momentum"])
        due = [
            (weight, heights, direction)
            for (weight, heights, turn), direction in zip(learning, directions, strict=True)
            if self._take_turn(weight, turn)
        ]
        if not due:  # there are fewer matrices than turns
            return
        whole = self._group.full_tensors([direction for _, _, direction in due])
        blocks = [
            block
            for (_, heights, _), direction in zip(due, whole, strict=True)
            for block in torch.split(direction.flatten(1), list(heights))
        ]
        updates = iter(self._orthogonalise_all(blocks))
        joined = (torch.cat([next(updates) for _ in heights]).view(weight.shape) for weight, heights, _ in due)
        weights = [weight for weight, _, _ in due]
        own = [self._group.local_part(update, weight) for update, weight in zip(joined, weights, strict=True)]
        if self.found_inf is not None:
            torch._foreach_mul_(own, 1 - self.found_inf)
        torch._foreach_add_(weights, own, alpha=-group["lr"] * self._every)

    def _take_turn(self, weight: Tensor, turn: int) -> bool:
        """Count a step of the matrix. Whether it is one in which it is updated."""
        if self._every == 1:
            return True
        steps = self.state[weight]["step"] = self.state[weight].get("step", 0) + 1
        return bool(steps % self._every == turn)

    def _directions(self, weights: Sequence[Tensor], momentum: float) -> Sequence[Tensor]:
        """The gradients with Nesterov momentum. If the step is skipped, zeros, and the momenta stay as they are."""
        for weight in weights:
            if not self.state[weight]:
                self.state[weight]["momentum"] = torch.zeros_like(weight)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        momenta = [self.state[weight]["momentum"] for weight in weights]
        decay: float | Tensor = momentum
        if (skipped := self.found_inf) is not None:
            gradients = [torch.where(skipped > 0, 0.0, gradient) for gradient in gradients]
            decay = torch.where(skipped > 0, 1.0, momentum)
        torch._foreach_mul_(momenta, decay)
        torch._foreach_add_(momenta, gradients)
        return torch._foreach_add(gradients, momenta, alpha=momentum)

    def _orthogonalise_all(self, blocks: Sequence[Tensor]) -> list[Tensor]:
        """The updates of matrices of any shapes: all of one shape at once, this process its share of them."""
        updates: list[Tensor] = list(blocks)
        shapes = {tuple(sorted(block.shape)) for block in blocks}
        for shape in sorted(shapes):
            alike = [number for number, block in enumerate(blocks) if tuple(sorted(block.shape)) == shape]
            tall = [blocks[number].shape[0] > blocks[number].shape[1] for number in alike]
            flat = torch.stack([blocks[n].mT if turned else blocks[n] for n, turned in zip(alike, tall, strict=True)])
            result = self._group.compute_shared(self._orthogonalise, flat) * (SCALE * max(shape) ** 0.5)
            for number, turned, update in zip(alike, tall, result, strict=True):
                updates[number] = update.mT if turned else update
        return updates
