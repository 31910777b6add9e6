"""What if a part of the model were different? Changes for the time of a `with` block; after it nothing has changed."""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from jumok.errors import ConfigError, did_you_mean, require_choice
from jumok.lens.tracing import CHANGES, torch_engine
from jumok.model.attention import Attend, attention_weights
from jumok.model.devices import widest_float
from jumok.model.positions import NoPositions, Rotations
from jumok.model.recording import attentions
from jumok.seeds import bit_stream

WAYS = ("zero", "uniform", "mean")
Heads = Mapping[tuple[str, int], str]  # (attention, head) → how it is switched off
Means = Mapping[str, Tensor]  # attention → [H, Dv], the mean output of each head over some texts


@contextmanager
def changed(
    model: Any,
    *,
    heads: Heads | None = None,
    means: Means | None = None,
    beta: float | None = None,
    hard: bool = False,
    attention: str | None = None,
    positions: str | int | None = None,
    seed: int = 0,
) -> Iterator[None]:
    """Run a loaded model, or its PyTorch model, with changes inside the `with` block.

    `heads={("decoder.1.cross", 0): "zero"}` switches heads off: their output is zero, attends to all keys alike
    ("uniform"), or is its mean over some texts ("mean", with `means=mean_outputs(…)`). `beta=` replaces 1/√d_k in every
    softmax, `hard=True` attends to the best key only; both in one `attention="encoder.0.self"` only, if it is named.
    `positions="removed"`, "shuffled" (by `seed`), or a number by which all are shifted.
    """
    network: Any = model if isinstance(model, nn.Module) else torch_engine(model).model
    known = attentions(network)
    for name in [*([attention] if attention else []), *(name for name, _ in heads or {})]:
        if name not in known:
            raise ConfigError(f'The model has no attention "{name}".{did_you_mean(name, list(known))}')
    described: dict[str, Any] = {"heads": [[*where, way] for where, way in (heads or {}).items()]}
    described |= {"beta": {}, "hard": [], "positions": positions}
    hooks: list[Any] = []
    for name, module in known.items():
        own = {head: way for (where, head), way in (heads or {}).items() if where == name}
        _check_heads(name, own, module.heads, means)
        sharpened = attention in (None, name)
        if not module.attend.is_dot_product and (
            "uniform" in own.values() or (sharpened and (hard or beta is not None))
        ):
            raise ConfigError(f'{name} is additive attention: it has neither `beta=`, `hard=` nor "uniform" heads.')
        if sharpened and hard:
            described["hard"].append(name)
        elif sharpened and beta is not None:
            described["beta"][name] = beta
        before = _other_queries(own, beta if sharpened else None)
        after = _other_output(own, (means or {}).get(name), hard and sharpened)
        hooks += [(module.attend.register_forward_pre_hook, before), (module.attend.register_forward_hook, after)]
    if positions is not None:
        if isinstance(network.embed.positions, NoPositions):
            raise ConfigError("This model has no positional encoding that could be changed. Leave out `positions=`.")
        hooks.append((network.embed.positions.register_forward_hook, _other_positions(positions, seed)))
        # A decoder that writes pictures has positions of its own, which stay as they are.
        stacks = ["encoder"] if hasattr(network, "positions") else ["encoder", "decoder"]
        turning = [getattr(getattr(network, stack, None), "rotations", None) for stack in stacks]
        hooks += [(module.register_forward_hook, _other_rotations(positions, seed)) for module in turning if module]
    with ExitStack() as stack:
        for register, hook in hooks:
            stack.callback(register(hook).remove)
        stack.callback(CHANGES.reset, CHANGES.set(described))
        yield


@contextmanager
def mean_outputs(model: Any) -> Iterator[dict[str, Tensor]]:
    """A dictionary that is filled, at the end of the `with` block, with the mean output [H, Dv] of every head over all
    positions that the model computed inside it."""
    network = model if isinstance(model, nn.Module) else torch_engine(model).model
    sums: dict[str, Tensor] = {}
    counts: dict[str, int] = {}
    found: dict[str, Tensor] = {}

    def add(name: str) -> Callable[..., None]:
        def listen(_module: nn.Module, _inputs: Any, output: Tensor) -> None:
            sums[name] = sums.get(name, 0) + output.sum((0, 2), dtype=widest_float(output.device))
            counts[name] = counts.get(name, 0) + output.shape[0] * output.shape[2]

        return listen

    handles = [module.attend.register_forward_hook(add(name)) for name, module in attentions(network).items()]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
        found.update({name: (total / counts[name]).float() for name, total in sums.items()})


def _check_heads(name: str, own: Mapping[int, str], count: int, means: Means | None) -> None:
    for head, way in own.items():
        require_choice("heads", way, WAYS)
        if not 0 <= head < count:
            raise ConfigError(f"{name} has no head {head}; its {count} heads are counted from 0.")
        if way == "mean" and name not in (means or {}):
            raise ConfigError('Switching a head to its "mean" needs `means=`, from `mean_outputs`.')


def _other_queries(own: Mapping[int, str], beta: float | None) -> Any:
    """A hook that changes the queries of `Attend`: times β√d_k for another β, zero for uniform attention. The
    weights of the changed model then follow from its recorded queries and keys as always."""
    if beta is not None and not math.isfinite(beta):
        raise ConfigError(f"beta={beta} is not finite. For the limit of a large one, use hard=True.")
    uniform = [head for head, way in own.items() if way == "uniform"]

    def change(_module: Attend, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
        if beta is None and not uniform:
            return None
        q = inputs[0] * (1.0 if beta is None else beta * inputs[0].shape[-1] ** 0.5)
        for head in uniform:
            q[:, head] = 0.0
        return (q, *inputs[1:])

    return change


def _other_output(own: Mapping[int, str], mean: Tensor | None, hard: bool) -> Any:
    """A hook that changes the output of `Attend`: hard attention, and heads that are zero or their mean."""
    fixed = {head: way for head, way in own.items() if way != "uniform"}

    def change(_module: Attend, inputs: tuple[Any, ...], output: Tensor) -> Tensor | None:
        if not hard and not fixed:
            return None
        q, k, v, mask = (*inputs, None)[:4]
        result = torch.matmul(attention_weights(q, k, mask, hard=True), v) if hard else output.clone()
        for head, way in fixed.items():
            result[:, head] = 0.0 if way == "zero" else mean[head, None].to(result)  # type: ignore[index]
        return result

    return change


def _other_positions(positions: str | int, seed: int) -> Any:
    """A forward hook of the positional encoding that adds other positions."""
    if isinstance(positions, str):
        require_choice("positions", positions, ("removed", "shuffled"))
    elif not isinstance(positions, int) or positions < 0:
        raise ConfigError(f"Positions can be shifted by a whole number from 0, not by positions={positions}.")

    def change(module: nn.Module, inputs: tuple[Any, ...], _output: Tensor) -> Tensor:
        x: Tensor = inputs[0]
        start = inputs[1] if len(inputs) > 1 else 0
        if positions == "removed":
            return x
        if isinstance(positions, int):
            shifted: Tensor = module.forward(x, start + positions)
            return shifted
        order = _shuffled(start, x.shape[1], seed)
        table: Tensor = module.forward(x.new_zeros(1, len(order.all), x.shape[2]), 0)[0]
        return x + table[order.chosen.to(x.device)]

    return change


def _other_rotations(positions: str | int, seed: int) -> Any:
    """A forward hook of `Rotations` for the same change."""

    def change(module: Rotations, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        like, length, start = (*inputs, 0)[:3]
        if positions == "removed":
            unturned: Tensor = torch.stack((torch.ones_like(output[0]), torch.zeros_like(output[1])))
            return unturned
        if isinstance(positions, int):
            return module.forward(like, length, start + positions)
        order = _shuffled(start, length, seed)
        return module.forward(like, len(order.all))[:, order.chosen.to(output.device)]

    return change


class _Order(NamedTuple):
    all: Int[Tensor, " L"]  # every position up to a limit, shuffled
    chosen: Int[Tensor, " T"]  # those that stand at some positions


def _shuffled(start: int, length: int, seed: int) -> _Order:
    """The positions that stand, shuffled, where `length` positions from `start` on did. The order of the first n is the
    same for every n up to a limit, so that decoding steps agree."""
    limit = max(64, 1 << (start + length - 1).bit_length())
    order = torch.from_numpy(np.random.Generator(bit_stream(seed, "positions", limit)).permutation(limit))
    return _Order(order, order[start : start + length])
