"""All of Figure 1. Axes: B sentences, N target rows (a multiple of B), S source, T target, D d_model, V vocabulary."""

from collections.abc import Callable
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from jumok.model.cache import DecoderCache
from jumok.model.config.base import BaseConfig, ModelConfig, require_config
from jumok.model.config.translator import TranslatorConfig
from jumok.model.embeddings import Embedder
from jumok.model.encoder_decoder import EncoderDecoder, Memory, require_rows
from jumok.model.masks import look_ahead_mask, none_if_open, padding_mask
from jumok.model.stacks import Decoder, Encoder


class Translator(EncoderDecoder):
    """The Transformer: source and target ids in, logits of the next target tokens out."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, TranslatorConfig)
        self.embed = make_embedder(config)
        self.encoder: Encoder = Encoder(config.encoder_layers, **stack_options(config))
        self.decoder: Decoder = Decoder(config.decoder_layers, **stack_options(config))

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Encode the source once, for any number of decoding steps."""
        mask = none_if_open(padding_mask(source))
        return Memory(self.encoder(self.embed(source), mask), mask)

    def remember(self, memory: Memory) -> DecoderCache:
        """A cache with nothing decoded yet, and the keys and values of the memory for every layer."""
        return self.decoder.remember(memory.states, memory.mask)

    def decode(
        self, target: Int[Tensor, "N T"], context: Memory | DecoderCache
    ) -> tuple[Float[Tensor, "N T D"], DecoderCache]:
        """The states after T more target tokens, and the extended cache; see `EncoderDecoder`."""
        cache = context if isinstance(context, DecoderCache) else self.remember(context)
        return run_decoder(self.embed, self.decoder, target, cache)


def make_embedder(config: ModelConfig) -> Embedder:
    """The embedder that a config describes."""
    names = ("vocabulary", "d_model", "positions", "max_length", "dropout")
    return Embedder(**{name: getattr(config, name) for name in names})


def stack_options(config: ModelConfig) -> dict[str, Any]:
    """The keyword arguments of a stack: layers do not know configs."""
    sizes, choices = ("d_model", "heads", "d_ff", "d_k", "d_v"), ("attention_bias", "activation", "norm", "rotary")
    return {name: getattr(config, name) for name in (*sizes, *choices, "dropout", "attention_dropout")}


def run_decoder(
    embed: Callable[[Tensor, int], Tensor], decoder: Decoder, target: Int[Tensor, "N T"], cache: DecoderCache
) -> tuple[Float[Tensor, "N T D"], DecoderCache]:
    """Embed T tokens at their positions and run the causal decoder on them."""
    require_rows(target, cache.past[0].keys.shape[0] if cache.past[0] is not None else target.shape[0])
    look_ahead = none_if_open(look_ahead_mask(target, cache.length))
    states, longer = decoder(embed(target, cache.length), cache, look_ahead)
    return states, longer
