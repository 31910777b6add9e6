"""A classifier's encoder as a CTranslate2 specification."""

from typing import Any

from jumok.engines.conversion import Weights, fill_encoder, layer_options
from jumok.model.config.classifier import ClassifierConfig


def make_spec(config: ClassifierConfig, weights: Weights, tokens: list[str]) -> Any:
    """The specification of the encoder alone: CTranslate2 knows neither the n-gram scores nor the windows."""
    from ctranslate2.specs import transformer_spec

    encoder = transformer_spec.TransformerEncoderSpec(config.encoder_layers, config.heads, **layer_options(config))
    fill_encoder(encoder, config, weights)
    spec = transformer_spec.TransformerEncoderModelSpec(encoder)
    spec.register_vocabulary(tokens)
    return spec
