"""What every translator's network has, whatever it is made of: an encoder, and a decoder that continues from a cache.
Axes: B sentences, N target rows (a multiple of B), S source, T target, D d_model, V vocabulary."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from jumok.errors import ShapeError
from jumok.model.devices import device_of, to_device
from jumok.model.embeddings import Embedder
from jumok.model.masks import PAD
from jumok.model.summary import count_parameters


@dataclass(frozen=True)
class Memory:
    """The output of the encoder, which the decoder continues from."""

    states: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B 1 1 S"] | None  # None: no padding


class EncoderDecoder(nn.Module, ABC):
    """Source and target ids in, logits of the next target tokens out. Source ends with </s>, target begins with <s>."""

    config: Any
    embed: Embedder
    encoder: nn.Module
    decoder: nn.Module

    @abstractmethod
    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Encode the source once, for any number of decoding steps."""

    @abstractmethod
    def remember(self, memory: Any) -> Any:
        """The cache before the first target token, from what `encode` returned: a `jumok.search.step.Cache`."""

    @abstractmethod
    def decode(self, target: Int[Tensor, "N T"], context: Any) -> tuple[Float[Tensor, "N T D"], Any]:
        """The states after T more target tokens, and the extended cache.
        `context` is the encoder's memory at the start of a text, the returned cache after that. N may be a multiple of
        the sentences in it: several hypotheses for each, next to each other. Padding is only at the end of a row."""

    def logits(self, states: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """The logits of every token of the vocabulary as the next one."""
        return self.embed.tokens.logits(states)

    def states(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Teacher forcing up to the last Linear, for a loss that computes its own logits. Ids may still be on the CPU
        when the model is on a card."""
        device = device_of(self)
        return self.decode(to_device(target, device), self.encode(to_device(source, device)))[0]

    def extra_repr(self) -> str:
        return f"{count_parameters(self):,} parameters"

    def forward(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Teacher forcing: position t holds the logits of token t + 1, given the true tokens up to t."""
        return self.logits(self.states(source, target))


def require_rows(target: Int[Tensor, "N T"], rows: int) -> None:
    """Raise unless the target can continue a cache of so many rows, with padding only at the end of its rows."""
    if target.shape[0] != rows:
        raise ShapeError(
            f"{target.shape[0]} rows of tokens cannot continue a cache of {rows} rows. "
            "Use a row for each, or choose rows with cache.reorder first."
        )
    # A card is not asked: the host would wait for it in every step.
    if target.device.type == "cpu" and bool(((target[:, 1:] != PAD) & (target[:, :-1] == PAD)).any()):
        raise ShapeError("A target has padding before a real token. Padding may be only at the end of a row.")
