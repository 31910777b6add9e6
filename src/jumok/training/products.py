"""Matrix products in bfloat16 on a CPU, about twice as fast as in float32 where the CPU has instructions for them.

Autocast would convert everything between the products too, and lose more time than they save. Here only the factors of
a product are rounded, right before it; its result, and all that is done with it, is float32. Axes: N rows, I in, O out.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

ROWS = 64  # a factor's number of rows is a multiple of it
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


def as_factor(rows: Float[Tensor, "N I"], dtype: torch.dtype) -> Float[Tensor, "M I"]:
    """The rows in the number format of a product. If they are converted on a CPU, rows of zeros are added up to a
    multiple of 64: a program is compiled for every new shape, and batches have hundreds of them."""
    if rows.dtype == dtype or rows.device.type != "cpu":
        return rows.to(dtype)
    count = len(rows)
    result = rows.new_empty(-(-count // ROWS) * ROWS, rows.shape[1], dtype=dtype)
    result[:count] = rows
    result[count:] = 0
    return result


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
        rows, factor = as_factor(x.flatten(0, -2), torch.bfloat16), weight.bfloat16()
        ctx.save_for_backward(rows, factor)
        return _first_rows(rows @ factor.t(), x.shape)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None]:
        rows, factor = ctx.saved_tensors
        rounded = as_factor(gradient.flatten(0, -2), torch.bfloat16)
        for_x, for_weight = ctx.needs_input_grad
        return (
            _first_rows(rounded @ factor, gradient.shape) if for_x else None,
            (rounded.t() @ rows).float() if for_weight else None,
        )


def _first_rows(product: Float[Tensor, "M O"], shape: torch.Size) -> Float[Tensor, "... O"]:
    """Without the rows that were added, in float32, shaped like an input of this shape."""
    return product[: shape[:-1].numel()].float().view(*shape[:-1], product.shape[1])
