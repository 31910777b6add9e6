"""All of Figure 1. Axes: B sentences, N target rows (a multiple of B), S source, T target, D d_model, V vocabulary."""

from dataclasses import dataclass
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from jumok.errors import ShapeError
from jumok.model.cache import DecoderCache
from jumok.model.config.base import ModelConfig, require_config
from jumok.model.config.translator import TranslatorConfig
from jumok.model.embeddings import Embedder
from jumok.model.masks import PAD, look_ahead_mask, none_if_open, padding_mask
from jumok.model.stacks import Decoder, Encoder
from jumok.model.summary import count_parameters


@dataclass(frozen=True)
class Memory:
    """The output of the encoder, which the decoder attends to."""

    states: Float[Tensor, "B S D"]
    mask: Bool[Tensor, "B 1 1 S"] | None  # None: no padding


class Translator(nn.Module):
    """Source and target ids in, logits of the next target tokens out. Source ends with </s>, target begins with <s>."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, TranslatorConfig)
        self.embed = make_embedder(config)
        self.encoder = Encoder(config.encoder_layers, **stack_options(config))
        self.decoder = Decoder(config.decoder_layers, **stack_options(config))

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Encode the source once, for any number of decoding steps."""
        mask = none_if_open(padding_mask(source))
        return Memory(self.encoder(self.embed(source), mask), mask)

    def decode(
        self, target: Int[Tensor, "N T"], context: Memory | DecoderCache
    ) -> tuple[Float[Tensor, "N T D"], DecoderCache]:
        """The states after T more target tokens, and the extended cache.
        `context` is the encoder's memory at the start of a text, the returned cache after that. N may be a multiple of
        the sentences in it: several hypotheses for each, next to each other. Padding is only at the end of a row."""
        cache = context if isinstance(context, DecoderCache) else self.decoder.remember(context.states, context.mask)
        return run_decoder(self.embed, self.decoder, target, cache)

    def logits(self, states: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """The logits of every token of the vocabulary as the next one."""
        return self.embed.tokens.logits(states)

    def states(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """Teacher forcing up to the last Linear, for a loss that computes its own logits."""
        return self.decode(target, self.encode(source))[0]

    def extra_repr(self) -> str:
        return f"{count_parameters(self):,} parameters"

    def forward(self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Teacher forcing: position t holds the logits of token t + 1, given the true tokens up to t."""
        return self.logits(self.states(source, target))


def make_embedder(config: ModelConfig) -> Embedder:
    """The embedder that a config describes."""
    names = ("vocabulary", "d_model", "positions", "max_length", "dropout")
    return Embedder(**{name: getattr(config, name) for name in names})


def stack_options(config: ModelConfig) -> dict[str, Any]:
    """The keyword arguments of a stack: layers do not know configs."""
    sizes, choices = ("d_model", "heads", "d_ff", "d_k", "d_v"), ("attention_bias", "activation", "norm")
    return {name: getattr(config, name) for name in (*sizes, *choices, "dropout", "attention_dropout")}


def run_decoder(
    embed: Embedder, decoder: Decoder, target: Int[Tensor, "N T"], cache: DecoderCache
) -> tuple[Float[Tensor, "N T D"], DecoderCache]:
    """Embed T tokens at their positions and run the causal decoder on them."""
    rows = cache.past[0].keys.shape[0] if cache.past[0] is not None else target.shape[0]
    if target.shape[0] != rows:
        raise ShapeError(
            f"{target.shape[0]} rows of tokens cannot continue a cache of {rows} rows. "
            "Use a row for each, or choose rows with cache.reorder first."
        )
    if bool(((target[:, 1:] != PAD) & (target[:, :-1] == PAD)).any()):
        raise ShapeError("A target has padding before a real token. Padding may be only at the end of a row.")
    look_ahead = none_if_open(look_ahead_mask(target, cache.length))
    states, longer = decoder(embed(target, cache.length), cache, look_ahead)
    return states, longer
