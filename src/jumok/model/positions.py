"""Positional encodings: the paper's sinusoids for any length, a learned table up to a maximum length, rows and columns
of a picture, or none. And rotations of queries and keys, which tell attention how far apart two tokens are."""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from jumok.errors import ConfigError, ShapeError, require_at_least, require_choice
from jumok.model.config.base import POSITIONS


def sinusoids(length: int, d_model: int, start: int = 0, base: float = 10000.0) -> Float[Tensor, "T D"]:
    """PE(pos, 2i) = sin(pos / base^(2i/D)), PE(pos, 2i+1) = cos of the same, for pos = start … start + length - 1.
    In float64, rounded once: in float32 the angle would be wrong in the fourth digit at position 10,000."""
    _check_span(start, length)
    if d_model < 2 or d_model % 2:
        raise ConfigError(f"Sinusoids come in pairs of sine and cosine, so their width must be even and not {d_model}.")
    position = torch.arange(start, start + length, dtype=torch.float64)[:, None]
    frequency = base ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
    angle = position * frequency
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


def rotations(length: int, width: int, start: int = 0) -> Float[Tensor, "2 T K"]:
    """Cosines and signed sines for `rotate`: position pos turns the numbers i and i + K/2 by pos / 10000^(2i/K)."""
    pairs = sinusoids(length, width, start).view(length, width // 2, 2)
    sines, cosines = pairs.unbind(-1)
    return torch.stack((torch.cat((cosines, cosines), -1), torch.cat((-sines, sines), -1)))


def rotate(x: Float[Tensor, "B H T K"], rotation: Float[Tensor, "2 T K"]) -> Float[Tensor, "B H T K"]:
    """Queries or keys, turned by their positions (RoPE, Su et al. 2021): the dot product of a rotated query and a
    rotated key depends on how far apart they stand, not on where."""
    rotated: Tensor = _Rotate.apply(x, rotation)  # type: ignore[no-untyped-call]
    return rotated


class _Rotate(torch.autograd.Function):
    """Heads [B, H, T, K] are usually a view of [B, T, …], which a product would have to copy. Written anew in their own
    order they cost no more than that copy; by single differentiable operations it would be half as much again."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rotation: Tensor) -> Tensor:
        ctx.save_for_backward(rotation)
        return _turned(x, rotation, 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (rotation,) = ctx.saved_tensors
        return _turned(gradient, rotation, -1.0), None


def _turned(x: Tensor, rotation: Tensor, direction: float) -> Tensor:
    half = x.shape[-1] // 2
    cosines, sines = rotation.to(x.dtype)
    turned = x.new_empty(x.shape)
    torch.mul(x, cosines, out=turned)
    turned[..., :half].addcmul_(x[..., half:], sines[:, :half], value=direction)
    turned[..., half:].addcmul_(x[..., :half], sines[:, half:], value=direction)
    return turned


def _check_span(start: int, length: int) -> None:
    if length < 0 or start < 0:
        raise ShapeError(f"Positions need a length and a start of at least 0, got length={length} and start={start}.")


class SinusoidalPositions(nn.Module):
    """Adds sinusoids. Its table is not a parameter, is not saved, and grows with the longest text."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.d_model = d_model
        # Not a buffer: a buffer would keep the rounding of every type the model was ever converted to.
        self.table = sinusoids(64, d_model)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        _check_span(start, x.shape[1])
        end = start + x.shape[1]
        if end > len(self.table) or self.table.dtype != x.dtype or self.table.device != x.device:
            length = len(self.table) if end <= len(self.table) else max(end, 2 * len(self.table))
            self.table = sinusoids(length, self.d_model).to(x)
        return x + self.table[start:end]

    def extra_repr(self) -> str:
        return f"d_model={self.d_model}, any length"


class Rotations(nn.Module):
    """The rotations of some positions. Its table is not a parameter, is not saved, and grows with the longest text."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.table = rotations(64, width)

    def forward(self, like: Tensor, length: int, start: int = 0) -> Float[Tensor, "2 T K"]:
        """Those of `length` positions from `start` on, of the number format and on the device of `like`."""
        _check_span(start, length)
        table = self.table  # another thread may exchange it
        end, known = start + length, table.shape[1]
        if end > known or table.dtype != like.dtype or table.device != like.device:
            with torch.inference_mode(False):  # tensors of inference mode could not be trained with
                table = rotations(known if end <= known else max(end, 2 * known), self.width).to(like)
            self.table = table
        return table[:, start:end]

    def extra_repr(self) -> str:
        return f"width={self.width}, any length"


class LearnedPositions(nn.Module):
    """Adds a trained vector for each position up to `max_length`."""

    def __init__(self, max_length: int, d_model: int) -> None:
        super().__init__()
        require_at_least(1, max_length=max_length, d_model=d_model)
        self.weight = nn.Parameter(torch.randn(max_length, d_model) * d_model**-0.5)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        _check_span(start, x.shape[1])
        end, longest = start + x.shape[1], len(self.weight)
        if end > longest:
            raise ShapeError(
                f"A text of {end} tokens does not fit learned positions, which end at {longest}. "
                "Split the text, or train with a larger max_length or positions=sinusoidal."
            )
        return x + self.weight[start:end]

    def extra_repr(self) -> str:
        return f"max_length={self.weight.shape[0]}, d_model={self.weight.shape[1]}"


class GridPositions(nn.Module):
    """Adds the trained vector of a row and that of a column: position t of a picture is read line by line."""

    def __init__(self, rows: int, columns: int, d_model: int) -> None:
        super().__init__()
        require_at_least(1, rows=rows, columns=columns, d_model=d_model)
        # Together as strong as sinusoids: weaker ones are hardly seen beside the vectors of tokens in the beginning.
        self.rows = nn.Parameter(torch.randn(rows, d_model) / 2)
        self.columns = nn.Parameter(torch.randn(columns, d_model) / 2)

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        _check_span(start, x.shape[1])
        end, longest = start + x.shape[1], len(self.rows) * len(self.columns)
        if end > longest:
            raise ShapeError(f"{end} image tokens do not fit a picture of {longest}.")
        table = (self.rows[:, None] + self.columns).flatten(0, 1)
        return x + table[start:end]

    def extra_repr(self) -> str:
        return f"rows={self.rows.shape[0]}, columns={self.columns.shape[0]}, d_model={self.rows.shape[1]}"


class NoPositions(nn.Module):
    """Adds nothing: for a network that knows the order because it reads one token after another."""

    def forward(self, x: Float[Tensor, "B T D"], start: int = 0) -> Float[Tensor, "B T D"]:
        del start
        return x


def make_positions(kind: str, d_model: int, max_length: int) -> nn.Module:
    """The positional encoding that a config names, or "none"."""
    if kind == "none":
        return NoPositions()
    require_choice("positions", kind, POSITIONS)
    return LearnedPositions(max_length, d_model) if kind == "learned" else SinusoidalPositions(d_model)
