"""Masks. True = may be attended to, everywhere in this package. Axes: B batch, T queries, S keys; the axis of heads has
length 1. A row that may attend to nothing gets weights of exactly zero, never NaN (see attention.py)."""

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from jumok.errors import ShapeError

PAD = 0  # the id of <pad>


def padding_mask(ids: Int[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"]:
    """Every query may attend to every key that is a real token."""
    return (ids != PAD)[:, None, None, :]


def causal_mask(length: int, past: int = 0, device: torch.device | None = None) -> Bool[Tensor, "1 1 T past_T"]:
    """Query t, which stands at position past + t, may attend to every position up to its own, itself included."""
    if length < 0 or past < 0:
        raise ShapeError(f"A mask needs lengths of at least 0, got length={length} and past={past}.")
    everything = torch.ones(length, past + length, dtype=torch.bool, device=device)
    return everything.tril(past)[None, None]


def look_ahead_mask(ids: Int[Tensor, "B T"], past: int = 0) -> Bool[Tensor, "B 1 T past_T"]:
    """The causal mask that also hides padding among `ids`; positions before them, `past` in number, are real."""
    real = torch.nn.functional.pad(padding_mask(ids), (past, 0), value=True)
    return real & causal_mask(ids.shape[1], past, ids.device)


def none_if_open(mask: Bool[Tensor, "..."]) -> Bool[Tensor, "..."] | None:
    """None for a mask that hides nothing, so that attention can skip it. A card is not asked: that takes longer."""
    return None if mask.device.type == "cpu" and bool(mask.all()) else mask


def check_mask(mask: Tensor, scores: torch.Size) -> None:
    """Raise unless `mask` broadcasts to scores of that shape: [batch, heads, queries, keys] in a model."""
    fits = mask.ndim == len(scores) and all(size in (1, want) for size, want in zip(mask.shape, scores, strict=True))
    if not fits:
        raise ShapeError(
            f"A mask of shape {list(mask.shape)} does not fit scores of shape {list(scores)}: batch, heads, queries, "
            "keys. Each axis must have that length or 1."
        )
    if mask.dtype != torch.bool:
        raise ShapeError(f"A mask must be boolean (True = may be attended to), not {mask.dtype}.")
