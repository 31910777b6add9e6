"""The loss: cross-entropy with label smoothing over real positions, in one pass over the vocabulary-wide logits.

Making logits [N, V] for the whole batch and reading them three times is half of the training time of a small model.
Here a block of rows is made, used for loss and gradients, and forgotten. Axes: N positions, D d_model, V vocabulary.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable

from jumok.errors import ConfigError
from jumok.model.devices import to_device, widest_float
from jumok.training.candidates import Candidates, CandidateSampler
from jumok.training.products import as_factor, product_dtype

BLOCK_NUMBERS = 2**23  # logits made at a time, 32 MB: larger products are faster, smaller blocks need less memory
_SAFE_PROBABILITY = 1e-30  # below it the logarithm of a float32 probability loses digits


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Σ over rows of -Σ_v q(v) log softmax(states · weightᵀ)(v), where q is 1 - ε on the target and ε/V everywhere.
    The smoothing never touches the big matrix: Σ_v logit(v) is states · Σ_v weight(v), and its gradients are that
    vector and the sum of the states. With `candidates`, whose logits alone are made, the normaliser is an estimate."""

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        targets: Tensor,
        smoothing: float,
        product: torch.dtype,
        candidates: Candidates | None,
    ) -> Tensor:
        sure, spread = 1 - smoothing, smoothing / len(weight)
        weight_sum, wide = weight.sum(0), widest_float(states.device)
        compared = weight if candidates is None else weight.index_select(0, candidates.tokens)
        rows = max(1, BLOCK_NUMBERS // len(compared))
        states_gradient = torch.empty_like(states)
        weight_gradient = torch.zeros_like(compared)
        blocks = states.new_empty(2, min(rows, len(states)), len(compared))
        loss = states.new_zeros((), dtype=wide)
        factor = compared.to(product)
        for start in range(0, len(states), rows):
            part, target = states[start : start + rows], targets[start : start + rows]
            rounded = as_factor(part, product)
            logits = _multiply(rounded, factor.t(), out=blocks[0, : len(part)])
            if candidates is not None:
                logits += candidates.log_weights
            gradient = torch.softmax(logits, -1, out=blocks[1, : len(part)])  # but for the target, taken out below
            target_logit, normaliser = _target_logit_and_normaliser(logits, gradient, target)
            loss += (normaliser - sure * target_logit - spread * (part @ weight_sum)).sum(dtype=wide)
            gradient[torch.arange(len(part), device=part.device), target] -= sure
            narrow = as_factor(gradient, product)
            _multiply(narrow, factor, out=states_gradient[start : start + rows])
            _add_product(weight_gradient, narrow.t(), rounded)
        if candidates is not None:
            weight_gradient = torch.zeros_like(weight).index_copy_(0, candidates.tokens, weight_gradient)
        states_gradient -= spread * weight_sum
        weight_gradient -= spread * states.sum(0)
        ctx.save_for_backward(states_gradient, weight_gradient)
        return loss.to(states.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        states_gradient, weight_gradient = ctx.saved_tensors
        return states_gradient * gradient, weight_gradient * gradient, None, None, None, None


def _multiply(left: Tensor, right: Tensor, *, out: Tensor) -> Tensor:
    """The matrix product, in the number format of its factors, written into `out`, which may have fewer rows."""
    return torch.mm(left, right, out=out) if left.dtype == out.dtype else out.copy_((left @ right)[: len(out)])


def _add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    total.addmm_(left, right) if left.dtype == total.dtype else total.add_(left @ right)


def _target_logit_and_normaliser(logits: Tensor, probabilities: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The target's logit and log Σ exp of each row."""
    target_logit = logits.gather(1, targets[:, None])[:, 0]
    if logits.device.type != "cpu":  # to ask whether there are unlikely ones would take longer
        return target_logit, logits.logsumexp(-1)
    target_probability = probabilities.gather(1, targets[:, None])[:, 0]
    normaliser = target_logit - target_probability.log()
    unlikely = target_probability < _SAFE_PROBABILITY
    if bool(unlikely.any()):
        normaliser[unlikely] = logits[unlikely].logsumexp(-1)
    return target_logit, normaliser


def smoothed_cross_entropy(
    states: Float[Tensor, "N D"],
    weight: Float[Tensor, "V D"],
    targets: Int[Tensor, " N"],
    smoothing: float,
    pad: int = 0,
    sampler: CandidateSampler | None = None,
) -> Float[Tensor, ""]:
    """The sum of the loss over all rows whose target is not `pad`. Divide by their number for the mean. With a
    `sampler` the normaliser is estimated from the candidates that it draws.
    Targets may be on the CPU and the states on a card: which rows are padding is then known without asking it. With a
    `sampler` they must be."""
    if not 0 <= smoothing < 1:
        raise ConfigError(f"label smoothing {smoothing} must be at least 0 and below 1.")
    real = (targets != pad).nonzero()[:, 0]
    if len(real) < len(targets):
        states, targets = states.index_select(0, to_device(real, states.device)), targets[real]
    candidates = None
    if sampler is not None:
        drawn = sampler.draw(targets)
        targets, candidates = drawn.positions, Candidates(*(to_device(part, states.device) for part in drawn))
    targets = to_device(targets, states.device)
    product = product_dtype(weight)
    with torch.autocast(states.device.type, enabled=False):  # all sums are made in the format of the weights
        loss: Tensor = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
            states.to(weight.dtype), weight, targets, smoothing, product, candidates
        )
    return loss
