"""The two grey boxes of Figure 1 and what they are made of. Axes: B batch, S source, T target, D d_model."""

from collections.abc import Iterable
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor, nn

from jumok.errors import require_at_least, require_choice
from jumok.model.attention import MultiHeadAttention
from jumok.model.cache import KeyValues
from jumok.model.config.base import ACTIVATIONS, NORMS
from jumok.model.dropout import Dropout

LAYER_NORM_EPSILON = 1e-6


class FeedForward(nn.Module):
    """max(0, x W₁ + b₁) W₂ + b₂, the same at every position: a convolution of width 1."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu") -> None:
        super().__init__()
        require_choice("activation", activation, ACTIVATIONS)
        require_at_least(1, d_model=d_model, d_ff=d_ff)
        self.widen = nn.Linear(d_model, d_ff)
        self.activation = nn.ReLU() if activation == "relu" else nn.GELU()
        self.narrow = nn.Linear(d_ff, d_model)
        for linear in (self.widen, self.narrow):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        result: Tensor = self.narrow(self.activation(self.widen(x)))
        return result


class AddNorm(nn.Module):
    """Add & Norm around one sublayer. Post-norm, the paper's: LayerNorm(x + Sublayer(x)).
    Pre-norm: x + Sublayer(LayerNorm(x)). In two halves: `y = sublayer(add_norm.before(x))`, `x = add_norm(x, y)`."""

    def __init__(self, d_model: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        require_choice("norm", norm, NORMS)
        self.pre = norm == "pre"
        self.norm = nn.LayerNorm(d_model, eps=LAYER_NORM_EPSILON)
        self.dropout = Dropout(dropout)

    def before(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The input of the sublayer."""
        seen: Tensor = self.norm(x) if self.pre else x
        return seen

    def forward(self, x: Float[Tensor, "B T D"], y: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """The residual connection: the input plus the output of the sublayer."""
        total = x + self.dropout(y)
        above: Tensor = total if self.pre else self.norm(total)
        return above


Sublayers = list[tuple[str, nn.Module, AddNorm | None]]  # name, module, and the Add & Norm around it, if there is one


def numbered_sublayers(layers: Iterable[Any]) -> Sublayers:
    """The sublayers of a stack: those of its layers, with the number of the layer in front of their names."""
    return [(f"{depth}.{name}", *rest) for depth, layer in enumerate(layers) for name, *rest in layer.sublayers()]


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        attention_bias: bool = False,
        activation: str = "relu",
        norm: str = "post",
    ) -> None:
        super().__init__()
        attention: dict[str, Any] = {"d_k": d_k, "d_v": d_v, "bias": attention_bias, "dropout": attention_dropout}
        self.attention = MultiHeadAttention(d_model, heads, **attention)
        self.add_norm_1 = AddNorm(d_model, norm=norm, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.add_norm_2 = AddNorm(d_model, norm=norm, dropout=dropout)

    def forward(
        self,
        x: Float[Tensor, "B S D"],
        mask: Bool[Tensor, "..."] | None = None,
        rotation: Float[Tensor, "2 S K"] | None = None,
    ) -> Float[Tensor, "B S D"]:
        attended, _ = self.attention.extend(self.add_norm_1.before(x), None, mask, rotation)
        x = self.add_norm_1(x, attended)

        thought = self.feed_forward(self.add_norm_2.before(x))
        result: Tensor = self.add_norm_2(x, thought)
        return result

    def sublayers(self) -> Sublayers:
        """The sublayers in the order in which they run."""
        return [("self", self.attention, self.add_norm_1), ("feed_forward", self.feed_forward, self.add_norm_2)]


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output (with `cross`; not in language models), feed-forward."""

    def __init__(
        self,
        d_model: int,
        heads: int,
        d_ff: int,
        *,
        cross: bool = True,
        d_memory: int | None = None,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.1,
        attention_dropout: float = 0.0,
        attention_bias: bool = False,
        activation: str = "relu",
        norm: str = "post",
    ) -> None:
        super().__init__()
        attention: dict[str, Any] = {"d_k": d_k, "d_v": d_v, "bias": attention_bias, "dropout": attention_dropout}
        self.self_attention = MultiHeadAttention(d_model, heads, **attention)
        self.add_norm_1 = AddNorm(d_model, norm=norm, dropout=dropout)
        self.cross = cross
        if cross:
            self.cross_attention = MultiHeadAttention(d_model, heads, d_memory=d_memory or d_model, **attention)
            self.add_norm_2 = AddNorm(d_model, norm=norm, dropout=dropout)
        self.feed_forward = FeedForward(d_model, d_ff, activation)
        self.add_norm_3 = AddNorm(d_model, norm=norm, dropout=dropout)

    def forward(
        self,
        x: Float[Tensor, "N T D"],
        *,
        look_ahead: Bool[Tensor, "..."] | None = None,
        rotation: Float[Tensor, "2 T K"] | None = None,
        past: KeyValues | None = None,
        memory: KeyValues | None = None,
        memory_mask: Bool[Tensor, "..."] | None = None,
    ) -> tuple[Float[Tensor, "N T D"], KeyValues]:
        """The output for `x`, and the past extended by `x`. `memory` is `cross_attention.remember(encoder output)`."""
        attended, present = self.self_attention.extend(self.add_norm_1.before(x), past, look_ahead, rotation)
        x = self.add_norm_1(x, attended)

        if self.cross:
            assert memory is not None  # Decoder.forward checks it
            looked_up = self.cross_attention.look_up(self.add_norm_2.before(x), memory, memory_mask)
            x = self.add_norm_2(x, looked_up)

        thought = self.feed_forward(self.add_norm_3.before(x))
        return self.add_norm_3(x, thought), present

    def sublayers(self) -> Sublayers:
        """The sublayers in the order in which they run."""
        attention: Sublayers = [("self", self.self_attention, self.add_norm_1)]
        if self.cross:
            attention.append(("cross", self.cross_attention, self.add_norm_2))
        return [*attention, ("feed_forward", self.feed_forward, self.add_norm_3)]
