"""Patches instead of tokens: the encoder of Figure 1 on pictures (a Vision Transformer), and class scores."""

from jaxtyping import Float
from torch import Tensor, nn

from jumok.model.config.base import BaseConfig, require_config
from jumok.model.config.image_classifier import ImageClassifierConfig
from jumok.model.patches import PatchEmbedder
from jumok.model.stacks import Encoder
from jumok.model.summary import count_parameters
from jumok.model.translator import stack_options


class ImageClassifier(nn.Module):
    """Pictures in, a score for every class out. Their values are standardised: mean 0, deviation 1."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, ImageClassifierConfig)
        self.embed = PatchEmbedder(
            (config.height, config.width, config.channels),
            config.d_model,
            stem=config.stem,
            patch=config.patch,
            overlap=config.overlap,
            positions=config.positions,
            dropout=config.dropout,
        )
        self.encoder = Encoder(config.encoder_layers, **stack_options(config))
        self.head = nn.Linear(config.d_model, config.classes)

    def encode(self, pictures: Float[Tensor, "B H W Ch"]) -> Float[Tensor, "B S D"]:
        """The state of every patch."""
        states: Tensor = self.encoder(self.embed(pictures))
        return states

    def pooled(self, pictures: Float[Tensor, "B H W Ch"]) -> Float[Tensor, "B D"]:
        """The mean of the states of all patches."""
        return self.encode(pictures).mean(1)

    def extra_repr(self) -> str:
        return f"{count_parameters(self):,} parameters"

    def forward(self, pictures: Float[Tensor, "B H W Ch"]) -> Float[Tensor, "B C"]:
        """The class scores; their softmax is the probability."""
        scores: Tensor = self.head(self.pooled(pictures))
        return scores
