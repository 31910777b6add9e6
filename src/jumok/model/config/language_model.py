"""The config of a language model."""

from __future__ import annotations

from dataclasses import dataclass

from jumok.model.config.base import ModelConfig


@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(ModelConfig):
    """A decoder that attends to nothing but its own past."""

    task: str = "language_model"
    decoder_layers: int = 6
