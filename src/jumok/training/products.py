"""Matrix products in bfloat16 on a CPU, about twice as fast as in float32 where the CPU has instructions for them.

Autocast would convert everything between the products too, and lose more time than they save. Here only the factors of
a product are rounded, right before it; its result, and all that is done with it, is float32. Axes: I in, O out.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_dtype: ContextVar[torch.dtype | None] = ContextVar("dtype of products", default=None)


@contextmanager
def products_in(dtype: torch.dtype) -> Iterator[None]:
    """Context in which `product_dtype` is `dtype`."""
    before = _dtype.set(dtype)
    try:
        yield
    finally:
        _dtype.reset(before)


def product_dtype(tensor: Tensor) -> torch.dtype:
    """The number format in which products of the tensor are computed now: that of `products_in` or autocast, if one of
    them is in effect, else its own."""
    kind = tensor.device.type
    return torch.get_autocast_dtype(kind) if torch.is_autocast_enabled(kind) else _dtype.get() or tensor.dtype


def has_fast_bfloat16() -> bool:
    """Whether this CPU has instructions for products in bfloat16, and PyTorch may use instructions of that kind."""
    capabilities: Mapping[str, Any] = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    native = capabilities.get("avx512_bf16", False) or capabilities.get("amx_bf16", False)
    return native and torch.backends.cpu.get_cpu_capability() == "AVX512"


def use_bfloat16_products(model: nn.Module) -> None:
    """Let the linear layers of a model compute in bfloat16 while it is trained. Its weights stay as they are."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Bfloat16Linear


class Bfloat16Linear(nn.Linear):
    """x Wᵀ + b; while training, with both factors of the product rounded, and those of its gradients."""

    def forward(self, x: Float[Tensor, "... I"]) -> Float[Tensor, "... O"]:
        if not self.training and self.weight.dtype == x.dtype:  # sharded weights are sent in bfloat16
            return super().forward(x)
        product: Tensor = _RoundedProduct.apply(x, self.weight)  # type: ignore[no-untyped-call]
        return product if self.bias is None else product + self.bias


class _RoundedProduct(torch.autograd.Function):
    """x Wᵀ."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        rows, factor = x.flatten(0, -2).bfloat16(), weight.bfloat16()
        ctx.save_for_backward(rows, factor)
        return (rows @ factor.t()).float().view(*x.shape[:-1], len(weight))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        rows, factor = ctx.saved_tensors
        rounded = gradient.flatten(0, -2).bfloat16()
        for_x, for_weight = ctx.needs_input_grad
        return (
            (rounded @ factor).float().view(*gradient.shape[:-1], rows.shape[1]) if for_x else None,
            (rounded.t() @ rows).float() if for_weight else None,
        )
