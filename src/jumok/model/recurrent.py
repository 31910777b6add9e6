"""What came before the Transformer: networks that read a sentence token by token, with and without attention.

    none       the decoder knows the source by one vector, the last state of the encoder (Cho et al., Sutskever et al.,
               2014)
    additive   vᵀ tanh(W s + U h) weighs the encoder's state h for the decoder's state s (Bahdanau et al., 2014)
    dot        sᵀ h does (Luong et al., 2015), scaled as in the Transformer

The decoder's state looks up its context after the recurrence, as Luong et al. have it: so the recurrence over a whole
target is one call, and only reading, not attention, goes token by token.

Axes: B sentences, N target rows (a multiple of B), S source, T target, D d_model, H heads (one), K width of a key."""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from jumok.errors import ShapeError
from jumok.model.attention import Attend, MultiHeadAttention, masked_softmax
from jumok.model.cache import KeyValues
from jumok.model.config.base import BaseConfig, require_config
from jumok.model.config.recurrent import RecurrentConfig
from jumok.model.devices import device_of, to_device
from jumok.model.dropout import Dropout
from jumok.model.embeddings import Embedder
from jumok.model.encoder_decoder import EncoderDecoder, Memory, require_rows
from jumok.model.layers import Sublayers
from jumok.model.masks import check_mask, none_if_open, padding_mask
from jumok.model.recurrent_layer import Lengths, RecurrentLayer, State

_STATES = {"gru": 1, "lstm": 2}  # tensors in a state


@dataclass(frozen=True)
class RecurrentMemory(Memory):
    """What the encoder has read."""

    last: Float[Tensor, "B D"]  # the last states of both directions, side by side: the sentence as one vector


@dataclass(frozen=True)
class RecurrentCache:
    """The state of a decoder. Its own state has a row for every hypothesis, the source one for every sentence."""

    last: Float[Tensor, "B D"]
    states: tuple[State, ...] | None = None  # one a layer; None before the first token
    memory: KeyValues | None = None  # None: without attention
    memory_mask: Bool[Tensor, "B 1 1 S"] | None = None  # None: no padding

    def reorder(self, rows: Int[Tensor, " N"], sentences: Int[Tensor, " M"] | None = None) -> "RecurrentCache":
        """Hypothesis n of the result continues hypothesis `rows[n]`; `sentences` stay, when others have ended."""
        states = self.states and tuple(tuple(part[rows] for part in state) for state in self.states)
        if sentences is None:
            return replace(self, states=states)
        mask = None if self.memory_mask is None else self.memory_mask[sentences]
        memory = self.memory and self.memory.reorder(sentences)
        return replace(self, last=self.last[sentences], states=states, memory=memory, memory_mask=mask)


class AdditiveAttend(Attend):
    """softmax(vᵀ tanh(q + k)) V: the queries and keys are W s and U h, made by the projections in front of it."""

    is_dot_product = False

    def __init__(self, d_k: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.empty(d_k).uniform_(-(d_k**-0.5), d_k**-0.5))

    def weights(
        self, q: Float[Tensor, "B H T K"], k: Float[Tensor, "B H S K"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B H T S"]:
        """The weights of the values in the output; masked keys get exactly 0."""
        scores = torch.tanh(q[..., :, None, :] + k[..., None, :, :]) @ self.vector
        return masked_softmax(scores, mask)

    def forward(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B H S K"],
        v: Float[Tensor, "B H S Dv"],
        mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B H T Dv"]:
        if mask is not None:
            check_mask(mask, torch.Size((*q.shape[:-1], k.shape[-2])))
        return torch.matmul(self.weights(q, k, mask), v)


class RecurrentEncoder(nn.Module):
    """Reads the source in both directions, each of half the width."""

    def __init__(self, layers: int, d_model: int, **options: Any) -> None:
        super().__init__()
        self.layers = nn.ModuleList(RecurrentLayer(d_model, directions=2, **options) for _ in range(layers))

    def forward(
        self, x: Float[Tensor, "B S D"], lengths: Lengths | None
    ) -> tuple[Float[Tensor, "B S D"], Float[Tensor, "B D"]]:
        """The states at each token, and the last ones of both directions side by side."""
        last = x[:, 0]
        for layer in self.layers:
            x, (last, *_) = layer(x, lengths)
        return x, last

    def sublayers(self) -> Sublayers:
        """There is no attention to look into."""
        return []


class RecurrentDecoder(nn.Module):
    """Continues from the encoder's last state. Each output is made of the decoder's state and a context: what attention
    looks up for it in the source, or without attention always the encoder's last state."""

    def __init__(self, layers: int, d_model: int, *, cell: str, dropout: float, attention: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(RecurrentLayer(d_model, cell=cell, dropout=dropout) for _ in range(layers))
        self.begin = nn.Linear(d_model, layers * _STATES[cell] * d_model)  # the first state of every layer
        self.shape = layers, _STATES[cell], d_model
        self.cross_attention = None if attention == "none" else MultiHeadAttention(d_model, 1, d_memory=d_model)
        if self.cross_attention is not None and attention == "additive":
            self.cross_attention.attend = AdditiveAttend(d_model)
        self.combine = nn.Linear(2 * d_model, d_model)
        self.dropout = Dropout(dropout)

    def first_states(self, last: Float[Tensor, "B D"], rows: int) -> tuple[State, ...]:
        """The states before the first token, for so many rows: a multiple of the sentences."""
        states = torch.tanh(self.begin(last)).view(len(last), *self.shape)
        states = states.repeat_interleave(rows // max(len(last), 1), 0)
        return tuple(tuple(part.contiguous() for part in layer.unbind(1)) for layer in states.unbind(1))

    def forward(
        self, x: Float[Tensor, "N T D"], lengths: Lengths | None, cache: RecurrentCache
    ) -> tuple[Float[Tensor, "N T D"], RecurrentCache]:
        """The states of the T new tokens, and the cache after them."""
        before = cache.states if cache.states is not None else self.first_states(cache.last, len(x))
        after = []
        for layer, state in zip(self.layers, before, strict=True):
            x, state = layer(x, lengths, state)
            after.append(state)
        if self.cross_attention is None or cache.memory is None:
            context = cache.last.repeat_interleave(len(x) // max(len(cache.last), 1), 0)[:, None].expand_as(x)
        else:
            context = self.cross_attention.look_up(x, cache.memory, cache.memory_mask)
        states: Tensor = self.dropout(torch.tanh(self.combine(torch.cat((x, context), -1))))
        return states, replace(cache, states=tuple(after))

    def sublayers(self) -> Sublayers:
        """The attention, if there is one: it stands behind all layers."""
        return [] if self.cross_attention is None else [("0.cross", self.cross_attention, None)]


class RecurrentTranslator(EncoderDecoder):
    """The recurrent encoder–decoder: source and target ids in, logits of the next target tokens out."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, RecurrentConfig)
        options: dict[str, Any] = {"cell": config.cell, "dropout": config.dropout}
        self.embed = Embedder(config.vocabulary, config.d_model, positions="none", dropout=config.dropout)
        self.encoder: RecurrentEncoder = RecurrentEncoder(config.encoder_layers, config.d_model, **options)
        self.decoder: RecurrentDecoder = RecurrentDecoder(
            config.decoder_layers, config.d_model, attention=config.attention, **options
        )

    def encode(self, source: Int[Tensor, "B S"]) -> RecurrentMemory:
        """Read the source once, for any number of decoding steps."""
        return self._encode(source, Lengths.of(source, source.device))

    def _encode(self, source: Int[Tensor, "B S"], lengths: Lengths | None) -> RecurrentMemory:
        require_rows(source, len(source))
        mask = none_if_open(padding_mask(source))
        states, last = self.encoder(self.embed(source), lengths)
        return RecurrentMemory(states, mask, last)

    def remember(self, memory: RecurrentMemory) -> RecurrentCache:
        """A cache with nothing decoded yet, and the keys and values of the source, if there is attention."""
        attention = self.decoder.cross_attention
        keys = None if attention is None else attention.remember(memory.states)
        return RecurrentCache(memory.last, None, keys, memory.mask)

    def decode(
        self, target: Int[Tensor, "N T"], context: RecurrentMemory | RecurrentCache
    ) -> tuple[Float[Tensor, "N T D"], RecurrentCache]:
        """The states after T more target tokens, and the extended cache; see `EncoderDecoder`."""
        # One token has no padding behind it, and a card need not be asked.
        return self._decode(target, Lengths.of(target, target.device) if target.shape[1] > 1 else None, context)

    def _decode(
        self, target: Int[Tensor, "N T"], lengths: Lengths | None, context: RecurrentMemory | RecurrentCache
    ) -> tuple[Float[Tensor, "N T D"], RecurrentCache]:
        cache = context if isinstance(context, RecurrentCache) else self.remember(context)
        rows, sentences = len(target), len(cache.last)
        if rows % sentences if sentences else rows:
            raise ShapeError(
                f"{rows} rows cannot be shared among {sentences} sentences. Use a multiple of {sentences}."
            )
        require_rows(target, rows if cache.states is None else len(cache.states[0][0]))
        states, longer = self.decoder(self.embed(target), lengths, cache)
        return states, longer

    def states(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Teacher forcing up to the last Linear. Ids on the CPU tell their lengths without waiting for a card."""
        device = device_of(self)
        memory = self._encode(to_device(source, device), Lengths.of(source, device))
        return self._decode(to_device(target, device), Lengths.of(target, device), memory)[0]
