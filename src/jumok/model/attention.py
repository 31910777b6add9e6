"""Attention, sections 3.2.1 and 3.2.2 of the paper. Axes: B batch, H heads, T queries, S keys, D d_model, Dq width of
the query input, K width of a query and a key in a head, Dv width of a value."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from jumok.errors import ConfigError, ShapeError, require_at_least
from jumok.model.cache import KeyValues
from jumok.model.dropout import Dropout
from jumok.model.masks import check_mask
from jumok.model.positions import rotate

SHORT = 64  # tokens


def attention_scores(
    q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"], beta: float | None = None
) -> Float[Tensor, "*B T S"]:
    """β · q kᵀ: how well each query fits each key. β is 1/√K unless given."""
    return torch.matmul(q, k.transpose(-2, -1)) * (q.shape[-1] ** -0.5 if beta is None else beta)


def attention_weights(
    q: Float[Tensor, "*B T K"],
    k: Float[Tensor, "*B S K"],
    mask: Bool[Tensor, "..."] | None = None,
    beta: float | None = None,
    hard: bool = False,
) -> Float[Tensor, "*B T S"]:
    """softmax(β · q kᵀ): the share of its attention each query gives to each key. Every row sums to 1.

    `beta`, the inverse temperature, is 1/√K unless given; towards 0 all keys count alike, towards ∞ only the best one.
    `hard` is that limit: one-hot, the first of equals. Masked keys get exactly 0; a row with no key left is all zeros.
    """
    if beta is not None and not math.isfinite(beta):
        raise ConfigError(f"beta={beta} is not finite. For the limit of a large one, use hard=True.")
    scores = attention_scores(q, k, beta)
    if mask is not None:
        check_mask(mask, scores.shape[-mask.ndim :])
    return masked_softmax(scores, mask, hard)


def masked_softmax(
    scores: Float[Tensor, "*B T S"], mask: Bool[Tensor, "..."] | None = None, hard: bool = False
) -> Float[Tensor, "*B T S"]:
    """Weights from scores, in whose memory they may be written; see `attention_weights`."""
    sighted = None
    if mask is not None:
        some = mask.any(-1, keepdim=True)
        # A row of nothing but -∞ would be NaN, so these rows are unmasked here and zeroed at the end.
        if some.device.type != "cpu" or not bool(some.all()):  # a card is not asked: the host would have to wait
            mask, sighted = mask | ~some, some
        scores = scores.masked_fill_(~mask, -math.inf)
    if hard and scores.shape[-1] > 0:
        weights = nn.functional.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)
    else:
        weights = scores.softmax(-1)
    return weights if sighted is None else weights.masked_fill(~sighted, 0.0)


class Attend(nn.Module):
    """Attention(Q, K, V) = softmax(Q Kᵀ / √d_k) V, without parameters: the module to hook to look inside."""

    is_dot_product = True  # weights follow from q, k and mask by `attention_weights`

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)

    def forward(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B H S K"],
        v: Float[Tensor, "B H S Dv"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B H T Dv"]:
        if mask is not None:
            check_mask(mask, torch.Size((*q.shape[:-1], k.shape[-2])))
        if self._in_plain_steps(q, k):
            return torch.matmul(self.dropout(attention_weights(q, k, mask)), v)
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    def weights(
        self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B H T S"]:
        """The weights of the values in the output, which the fast way never forms."""
        return attention_weights(q, k, mask)

    def _in_plain_steps(self, q: Tensor, k: Tensor) -> bool:
        """While training: faster for short sentences of changing shapes, and needed for attention dropout."""
        short = q.device.type == "cpu" and q.shape[-2] * k.shape[-2] <= SHORT * SHORT
        return self.training and (short or self.dropout.rate > 0)


class MultiHeadAttention(nn.Module):
    """H attentions side by side: split, attend, concatenate, and W^O.

    Without `d_memory` it is self-attention: queries, keys and values come from one input through one tall matrix. With
    it, queries come from `x` and keys and values from a memory of width `d_memory`, or of two widths `(keys, values)`
    when these have different sources. `x` is `d_query` wide, by default `d_model`, as the output always is.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        d_query: int | None = None,
        d_memory: int | tuple[int, int] | None = None,
        bias: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        d_query = d_model if d_query is None else d_query
        require_at_least(1, d_model=d_model, heads=heads, d_query=d_query)
        if d_model % heads and (d_k is None or d_v is None):
            raise ConfigError(
                f"d_model={d_model} cannot be split into {heads} heads. Use a multiple of {heads}, or set d_k and d_v."
            )
        self.heads = heads
        self.d_k = d_k if d_k is not None else d_model // heads
        self.d_v = d_v if d_v is not None else d_model // heads
        require_at_least(1, d_k=self.d_k, d_v=self.d_v)
        q_width, k_width, v_width = heads * self.d_k, heads * self.d_k, heads * self.d_v
        if d_memory is None:
            self.query_key_value = _packed(d_query, (q_width, k_width, v_width), bias)
        else:
            self.query = _packed(d_query, (q_width,), bias)
            if isinstance(d_memory, int):
                self.key_value = _packed(d_memory, (k_width, v_width), bias)
            else:
                self.key = _packed(d_memory[0], (k_width,), bias)
                self.value = _packed(d_memory[1], (v_width,), bias)
        self.d_memory = d_memory
        self.attend = Attend(dropout)
        self.output = _packed(v_width, (d_model,), bias)

    def forward(
        self,
        x: Float[Tensor, "B T Dq"],
        memory: Float[Tensor, "B S _"] | tuple[Tensor, Tensor] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B T D"]:
        """Self-attention of `x`, or attention of `x` to `memory`."""
        if (memory is None) != (self.d_memory is None) or isinstance(memory, tuple) != isinstance(self.d_memory, tuple):
            raise ShapeError(
                f"Attention built with d_memory={self.d_memory} needs that for memory: "
                "None for self-attention, a tensor for one width, a pair (keys, values) for two."
            )
        if memory is None:
            return self.extend(x, None, mask)[0]
        return self.look_up(x, self.remember(memory), mask)

    def extend(
        self,
        x: Float[Tensor, "B T Dq"],
        past: KeyValues | None,
        mask: Bool[Tensor, "..."] | None,
        rotation: Float[Tensor, "2 T K"] | None = None,
    ) -> tuple[Float[Tensor, "B T D"], KeyValues]:
        """Self-attention of `x` with a past; returns the output, and the past extended by `x`. The `rotation` of the
        positions of `x`, if there is one, turns its queries and keys."""
        q, k, v = self.query_key_value(x).split(self._widths(), dim=-1)
        queries, keys, values = self._split(q, self.d_k), self._split(k, self.d_k), self._split(v, self.d_v)
        if rotation is not None:
            queries, keys = rotate(queries, rotation), rotate(keys, rotation)
        present = KeyValues(keys, values) if past is None else past.append(keys, values)
        return self._mix(queries, present, mask), present

    def remember(self, memory: Float[Tensor, "B S _"] | tuple[Tensor, Tensor]) -> KeyValues:
        """The keys and values of a memory, computed once for any number of queries."""
        if isinstance(self.d_memory, tuple):
            k, v = self.key(memory[0]), self.value(memory[1])
        else:
            k, v = self.key_value(memory).split(self._widths()[1:], dim=-1)
        return KeyValues(self._split(k, self.d_k), self._split(v, self.d_v))

    def look_up(
        self, x: Float[Tensor, "N T Dq"], memory: KeyValues, mask: Bool[Tensor, "..."] | None
    ) -> Float[Tensor, "N T D"]:
        """Attention of `x` to a memory. N may be a multiple of its rows: several hypotheses for each sentence, which do
        not see each other and so are simply more queries on the same keys."""
        rows, sentences = x.shape[0], memory.keys.shape[0]
        if rows % sentences if sentences else rows:
            raise ShapeError(
                f"{rows} rows cannot be shared among {sentences} sentences. Use a multiple of {sentences}."
            )
        together = x.reshape(sentences, rows // max(sentences, 1) * x.shape[1], x.shape[2])
        mixed = self._mix(self._split(self.query(together), self.d_k), memory, mask)
        return mixed.view(rows, x.shape[1], mixed.shape[2])

    def _mix(self, q: Tensor, memory: KeyValues, mask: Tensor | None) -> Tensor:
        mixed = self.attend(q, memory.keys, memory.values, mask)
        merged: Tensor = self.output(mixed.transpose(1, 2).flatten(2))
        return merged

    def _split(self, x: Float[Tensor, "B T HK"], width: int) -> Float[Tensor, "B H T K"]:
        return x.view(x.shape[0], x.shape[1], self.heads, width).transpose(1, 2)

    def _widths(self) -> list[int]:
        return [self.heads * self.d_k, self.heads * self.d_k, self.heads * self.d_v]

    def packed(self) -> list[tuple[nn.Linear, tuple[int, ...]]]:
        """Every projection, and the heights of the matrices that are stacked in it."""
        q_width, k_width, v_width = self._widths()
        output = (self.output, (self.output.out_features,))
        if self.d_memory is None:
            return [(self.query_key_value, (q_width, k_width, v_width)), output]
        if isinstance(self.d_memory, int):
            return [(self.query, (q_width,)), (self.key_value, (k_width, v_width)), output]
        return [(self.query, (q_width,)), (self.key, (k_width,)), (self.value, (v_width,)), output]

    def extra_repr(self) -> str:
        return f"heads={self.heads}, d_k={self.d_k}, d_v={self.d_v}"


def _packed(d_in: int, widths: tuple[int, ...], bias: bool) -> nn.Linear:
    """Several projections of one input stacked in one tall matrix, each initialised as if it stood alone (Glorot)."""
    linear = nn.Linear(d_in, sum(widths), bias=bias)
    for block in torch.split(linear.weight.detach(), list(widths)):
        limit = math.sqrt(6 / (d_in + block.shape[0]))
        block.uniform_(-limit, limit)
    if bias:
        nn.init.zeros_(linear.bias)
    return linear
