"""A painter: the encoder and decoder of a translator, from a caption to image tokens.
Axes: B captions, N pictures (a multiple of B), S tokens of a caption, T image tokens, D d_model, V codes and special
tokens."""

from jaxtyping import Float, Int
from torch import Tensor

from jumok.model.cache import DecoderCache
from jumok.model.config.base import BaseConfig, require_config
from jumok.model.config.painter import PainterConfig
from jumok.model.dropout import Dropout
from jumok.model.embeddings import TokenEmbedding
from jumok.model.encoder_decoder import EncoderDecoder, Memory
from jumok.model.image_tokens import PictureTokenizer
from jumok.model.masks import none_if_open, padding_mask
from jumok.model.positions import GridPositions
from jumok.model.stacks import Decoder, Encoder
from jumok.model.translator import make_embedder, run_decoder, stack_options

FIRST_CODE = 4  # code c is the image token 4 + c, after <pad>, <unk>, <s> and </s>


class Painter(EncoderDecoder):
    """Captions, which end with </s>, and image tokens, which begin with <s>, in; logits of the next image tokens out.
    `pictures`, which turns image tokens into pixels, is trained before and does not change."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, PainterConfig)
        self.embed = make_embedder(config)
        self.encoder: Encoder = Encoder(config.encoder_layers, **stack_options(config))
        self.decoder: Decoder = Decoder(config.decoder_layers, **stack_options(config))
        self.tokens = TokenEmbedding(FIRST_CODE + config.codes, config.d_model)
        self.positions = GridPositions(*config.grid, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.pictures = PictureTokenizer(**config.picture_options()).requires_grad_(False)

    def encode(self, source: Int[Tensor, "B S"]) -> Memory:
        """Encode the captions once, for any number of pictures."""
        mask = none_if_open(padding_mask(source))
        return Memory(self.encoder(self.embed(source), mask), mask)

    def remember(self, memory: Memory) -> DecoderCache:
        """A cache with nothing decoded yet, and the keys and values of the memory for every layer."""
        return self.decoder.remember(memory.states, memory.mask)

    def embed_target(self, ids: Int[Tensor, "N T"], start: int = 0) -> Float[Tensor, "N T D"]:
        """Image tokens as vectors. Each is given the place of the token that follows it: the one to be predicted."""
        embedded: Tensor = self.dropout(self.positions(self.tokens(ids), start))
        return embedded

    def decode(
        self, target: Int[Tensor, "N T"], context: Memory | DecoderCache
    ) -> tuple[Float[Tensor, "N T D"], DecoderCache]:
        """The states after T more image tokens, and the extended cache; see `EncoderDecoder`."""
        cache = context if isinstance(context, DecoderCache) else self.remember(context)
        return run_decoder(self.embed_target, self.decoder, target, cache)

    def logits(self, states: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """The logits of every image token as the next one."""
        return self.tokens.logits(states)
