"""N× of Figure 1: stacks of layers, and the final norm of pre-norm stacks."""

from collections.abc import Iterable, Mapping
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from jumok.errors import ShapeError, require_at_least, require_choice
from jumok.model.cache import DecoderCache
from jumok.model.config.base import NORMS
from jumok.model.layers import LAYER_NORM_EPSILON, DecoderLayer, EncoderLayer, Sublayers, numbered_sublayers
from jumok.model.positions import Rotations


def _final_norm(d_model: int, norm: str) -> nn.Module:
    require_choice("norm", norm, NORMS)
    # Post-norm layers end in a LayerNorm already; a pre-norm stack would end in a bare sum.
    return nn.LayerNorm(d_model, eps=LAYER_NORM_EPSILON) if norm == "pre" else nn.Identity()


def _make_rotations(rotary: bool, d_model: int, heads: int, options: Mapping[str, Any]) -> Rotations | None:
    """What turns queries and keys in all layers but the first, which sees the positions that are added to its input.
    (With rotations in the first layer, CTranslate2 would leave these positions out.)"""
    return Rotations(options.get("d_k") or d_model // heads) if rotary else None


class Encoder(nn.Module):
    """`layers` encoder layers; `rotary`: with rotated queries and keys. Other arguments: those of `EncoderLayer`."""

    def __init__(
        self,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        *,
        norm: str = "post",
        rotary: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        require_at_least(0, layers=layers)
        self.layers = nn.ModuleList(EncoderLayer(d_model, heads, d_ff, norm=norm, **options) for _ in range(layers))
        self.norm = _final_norm(d_model, norm)
        self.rotations = _make_rotations(rotary, d_model, heads, options)

    def forward(self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "..."] | None = None) -> Float[Tensor, "B S D"]:
        rotation = None if self.rotations is None else self.rotations(x, x.shape[1])
        for depth, layer in enumerate(self.layers):
            x = layer(x, mask, rotation if depth else None)
        result: Tensor = self.norm(x)
        return result

    def sublayers(self) -> Sublayers:
        """The sublayers of all layers in the order in which they run, such as "0.self"."""
        return numbered_sublayers(self.layers)


class Decoder(nn.Module):
    """`layers` decoder layers; `rotary`: with rotated queries and keys. Other arguments: those of `DecoderLayer`."""

    def __init__(
        self,
        layers: int,
        d_model: int,
        heads: int,
        d_ff: int,
        *,
        cross: bool = True,
        norm: str = "post",
        rotary: bool = False,
        **options: Any,
    ) -> None:
        super().__init__()
        require_at_least(0, layers=layers)
        self.cross = cross
        self.layers = nn.ModuleList(
            DecoderLayer(d_model, heads, d_ff, cross=cross, norm=norm, **options) for _ in range(layers)
        )
        self.norm = _final_norm(d_model, norm)
        self.rotations = _make_rotations(rotary, d_model, heads, options)

    def remember(
        self, memory: Float[Tensor, "B S D"] | None = None, mask: Bool[Tensor, "B 1 1 S"] | None = None
    ) -> DecoderCache:
        """A cache with nothing decoded yet, and the memory's keys and values computed for every layer."""
        nothing_decoded = (None,) * len(self.layers)
        if memory is None:
            return DecoderCache(nothing_decoded)
        layers: Iterable[Any] = self.layers
        remembered = tuple(layer.cross_attention.remember(memory) for layer in layers)
        return DecoderCache(nothing_decoded, remembered, mask)

    def forward(
        self, x: Float[Tensor, "N T D"], cache: DecoderCache, look_ahead: Bool[Tensor, "..."] | None = None
    ) -> tuple[Float[Tensor, "N T D"], DecoderCache]:
        """The states of the T new positions, and the cache extended by them."""
        memories = len(self.layers) if self.cross else 0
        if (len(cache.past), len(cache.memory)) != (len(self.layers), memories):
            raise ShapeError(
                f"A cache of {len(cache.past)} layers and {len(cache.memory)} memories does not fit a decoder of "
                f"{len(self.layers)} and {memories}. Make it with this decoder's own `remember`."
            )
        past = []
        rotation = None if self.rotations is None else self.rotations(x, x.shape[1], cache.length)
        for depth, layer in enumerate(self.layers):
            x, present = layer(
                x,
                look_ahead=look_ahead,
                rotation=rotation if depth else None,
                past=cache.past[depth],
                memory=cache.memory[depth] if cache.memory else None,
                memory_mask=cache.memory_mask,
            )
            past.append(present)
        return self.norm(x), DecoderCache(tuple(past), cache.memory, cache.memory_mask)

    def sublayers(self) -> Sublayers:
        """The sublayers of all layers in the order in which they run, such as "0.self"."""
        return numbered_sublayers(self.layers)
