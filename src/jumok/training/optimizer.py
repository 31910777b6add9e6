"""PyTorch's optimizers, without what makes the start of a training slow."""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor


def _plain(method: Callable[..., Any]) -> Any:
    """A method of PyTorch's optimizers without its wrapper, which imports PyTorch's compiler: that takes longer than
    the first hundred steps of a small model."""
    return getattr(method, "__wrapped__", method)


class WithoutCompiler:
    """For optimizers, to be named before their base: they need no compiler."""

    add_param_group = _plain(torch.optim.Optimizer.add_param_group)
    zero_grad = _plain(torch.optim.Optimizer.zero_grad)
    state_dict = _plain(torch.optim.Optimizer.state_dict)
    load_state_dict = _plain(torch.optim.Optimizer.load_state_dict)


class Adam(WithoutCompiler, torch.optim.Adam):
    """PyTorch's Adam: one kernel for all weights, on the CPU and on every kind of card. The schedule sets its rate.
    If `found_inf` is set, a number on the device, an update is made only where it is 0."""

    found_inf: Tensor

    def __init__(self, parameters: Iterable[Tensor], betas: tuple[float, float], epsilon: float) -> None:
        super().__init__(parameters, lr=0.0, betas=betas, eps=epsilon, fused=True)

    step = torch.no_grad()(_plain(torch.optim.Adam.step))


class LBFGS(WithoutCompiler, torch.optim.LBFGS):
    """PyTorch's L-BFGS."""
