"""A language model's weights as a CTranslate2 specification."""

from typing import Any

from jumok.engines.conversion import Weights, fill_decoder, layer_options
from jumok.model.config.language_model import LanguageModelConfig


def make_spec(config: LanguageModelConfig, weights: Weights, tokens: list[str]) -> Any:
    """The specification of a decoder-only model."""
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        config.decoder_layers, config.heads, **layer_options(config)
    )
    fill_decoder(spec.decoder, config, weights, cross=False)
    spec.register_vocabulary(tokens)
    return spec
