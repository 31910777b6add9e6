"""The config of a painter."""

from __future__ import annotations

from dataclasses import dataclass

from jumok.model.config.base import ModelConfig
from jumok.model.config.image_tokens import PictureFields


@dataclass(frozen=True, kw_only=True)
class PainterConfig(PictureFields, ModelConfig):
    """A translator from captions to image tokens, and the codebook that turns these into pictures."""

    task: str = "painter"
    encoder_layers: int = 6
    decoder_layers: int = 6
