"""The right half of Figure 1: a decoder without cross-attention, which continues a text."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from jumok.model.cache import DecoderCache
from jumok.model.config.base import BaseConfig, require_config
from jumok.model.config.language_model import LanguageModelConfig
from jumok.model.stacks import Decoder
from jumok.model.summary import count_parameters
from jumok.model.translator import make_embedder, run_decoder, stack_options


class LanguageModel(nn.Module):
    """Ids in, logits of every next token out. A text begins with <s>."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, LanguageModelConfig)
        self.embed = make_embedder(config)
        self.decoder = Decoder(config.decoder_layers, cross=False, **stack_options(config))

    def decode(
        self, text: Int[Tensor, "B T"], cache: DecoderCache | None = None
    ) -> tuple[Float[Tensor, "B T D"], DecoderCache]:
        """The states after T more tokens, and the extended cache. Padding is only at the end of a row."""
        return run_decoder(self.embed, self.decoder, text, cache or self.decoder.remember())

    def logits(self, states: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """The logits of every token of the vocabulary as the next one."""
        return self.embed.tokens.logits(states)

    def states(self, text: Int[Tensor, "B T"]) -> Float[Tensor, "B T D"]:
        """The state after every token, for a loss that computes its own logits."""
        return self.decode(text)[0]

    def extra_repr(self) -> str:
        return f"{count_parameters(self):,} parameters"

    def forward(self, text: Int[Tensor, "B T"]) -> Float[Tensor, "B T V"]:
        """Teacher forcing: position t holds the logits of token t + 1."""
        return self.logits(self.states(text))
