"""Keys and values kept between decoding steps.

A cache is immutable: a longer one is returned. Yet a step does not copy it: the tensors have spare capacity, and
appending writes behind the last position. Only the newest cache may do that; an older one, continued, is copied first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass
class _Room:
    """Tensors with spare capacity, shared by all caches extended from one; the first `used` positions are filled."""

    keys: Tensor
    values: Tensor
    used: int

    @classmethod
    def around(cls, keys: Tensor, values: Tensor, capacity: int) -> _Room:
        batch, heads, used, _ = keys.shape
        room = cls(
            keys.new_empty(batch, heads, capacity, keys.shape[3]),
            values.new_empty(batch, heads, capacity, values.shape[3]),
            used,
        )
        room.keys[:, :, :used] = keys
        room.values[:, :, :used] = values
        return room

    def filled(self) -> KeyValues:
        """The filled positions."""
        return KeyValues(self.keys[:, :, : self.used], self.values[:, :, : self.used], self)

    def takes(self, start: int, end: int) -> bool:
        """Whether these positions are the next free ones. Tensors of inference mode are read-only elsewhere."""
        free = self.used == start and end <= self.keys.shape[2]
        return free and (torch.is_inference_mode_enabled() or not self.keys.is_inference())


@dataclass(frozen=True)
class KeyValues:
    """Keys [B, H, T, K] and values [B, H, T, Dv] of one attention, already projected and split into heads."""

    keys: Float[Tensor, "B H T K"]
    values: Float[Tensor, "B H T Dv"]
    _room: _Room | None = field(default=None, repr=False, compare=False)

    @property
    def length(self) -> int:
        """T, how many positions can be attended to."""
        return self.keys.shape[2]

    def append(self, keys: Float[Tensor, "B H N K"], values: Float[Tensor, "B H N Dv"]) -> KeyValues:
        """The cache with N more positions, in amortized constant time for each."""
        if torch.is_grad_enabled() and (keys.requires_grad or self.keys.requires_grad):
            # Autograd needs new tensors: this is for training through a cache, not for decoding.
            return KeyValues(torch.cat((self.keys, keys), 2), torch.cat((self.values, values), 2))
        start, end = self.length, self.length + keys.shape[2]
        room = self._room
        if room is None or not room.takes(start, end):
            room = _Room.around(self.keys, self.values, max(2 * end, 16))
        room.keys[:, :, start:end] = keys
        room.values[:, :, start:end] = values
        room.used = end
        return room.filled()

    def reorder(self, rows: Int[Tensor, " N"]) -> KeyValues:
        """Row n of the result is row `rows[n]` of this one."""
        capacity = self._room.keys.shape[2] if self._room is not None else self.length
        return _Room.around(self.keys.index_select(0, rows), self.values.index_select(0, rows), capacity).filled()


@dataclass(frozen=True)
class DecoderCache:
    """The state of a decoder: its own past, and the keys and values of the source. `past[l]` has a row for every
    hypothesis (sentence * hypotheses + hypothesis), `memory[l]` one for every sentence, computed once."""

    past: tuple[KeyValues | None, ...]  # one a layer; None before the first token
    memory: tuple[KeyValues, ...] = ()  # one a layer; empty for a language model
    memory_mask: Bool[Tensor, "B 1 1 S"] | None = None  # None: no padding

    @property
    def length(self) -> int:
        """How many tokens have been decoded."""
        return 0 if self.past[0] is None else self.past[0].length

    def reorder(self, rows: Int[Tensor, " N"], sentences: Int[Tensor, " M"] | None = None) -> DecoderCache:
        """Hypothesis n of the result continues hypothesis `rows[n]`; `sentences` stay, when others have ended.
        The keys of the sentences are copied only when some leave: that makes beams cheap."""
        past = tuple(layer and layer.reorder(rows) for layer in self.past)
        if sentences is None:
            return replace(self, past=past)
        mask = None if self.memory_mask is None else self.memory_mask.index_select(0, sentences)
        return DecoderCache(past, tuple(layer.reorder(sentences) for layer in self.memory), mask)
