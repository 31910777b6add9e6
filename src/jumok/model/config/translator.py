"""The config of a translator."""

from __future__ import annotations

from dataclasses import dataclass

from jumok.model.config.base import ModelConfig


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig(ModelConfig):
    """An encoder and a decoder."""

    task: str = "translator"
    encoder_layers: int = 6
    decoder_layers: int = 6
