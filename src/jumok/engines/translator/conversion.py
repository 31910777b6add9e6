"""A translator's weights as a CTranslate2 specification."""

from typing import Any

from jumok.engines.conversion import Weights, fill_decoder, fill_encoder, layer_options
from jumok.model.config.translator import TranslatorConfig


def make_spec(config: TranslatorConfig, weights: Weights, tokens: list[str]) -> Any:
    """The specification of a sequence-to-sequence model with a shared vocabulary of `tokens`."""
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerSpec.from_config(
        (config.encoder_layers, config.decoder_layers),
        config.heads,
        alignment_layer=max(0, config.decoder_layers - 2),
        alignment_heads=config.heads,
        **layer_options(config),
    )
    fill_encoder(spec.encoder, config, weights)
    fill_decoder(spec.decoder, config, weights, cross=True)
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.add_source_eos = True
    return spec
