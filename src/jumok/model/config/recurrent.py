"""The config of a recurrent translator: what came before the Transformer."""

from __future__ import annotations

from dataclasses import dataclass

from jumok.errors import ConfigError
from jumok.model.config.base import BaseConfig

CELLS = ("gru", "lstm")
ATTENTIONS = ("none", "additive", "dot")


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(BaseConfig):
    """An encoder that reads the source in both directions, and a decoder; both of recurrent layers."""

    task: str = "translator"
    architecture: str = "recurrent"
    d_model: int = 256  # D: width of embeddings and of the state of a layer
    encoder_layers: int = 2
    decoder_layers: int = 2
    cell: str = "gru"  # gru | lstm
    attention: str = "additive"  # none: all that the decoder knows of the source is one vector | additive | dot

    choices = {"cell": CELLS, "attention": ATTENTIONS}  # noqa: RUF012 (ClassVar above)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d_model % 2:
            raise ConfigError(
                f"d_model={self.d_model} is odd, but the encoder splits it between two directions. "
                f"Use {self.d_model + 1}."
            )
