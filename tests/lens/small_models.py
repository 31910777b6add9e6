"""Small models with random weights, as loaded ones: they need not be good to be looked into."""

from pathlib import Path
from typing import Any

import torch
from small_translator import small_config

from jumok.engines.translator.text import TextTranslator
from jumok.engines.translator.torch import TorchTranslator
from jumok.model.translator import Translator
from jumok.tokenizer import Tokenizer

FROZEN = Path(__file__).parent.parent / "frozen" / "format-1" / "model"  # a translator that has learned something
SIZES = {"d_model": 16, "heads": 2, "d_ff": 24, "dropout": 0.2}


def random_model(kind: Any, config: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = kind(config)
        for parameter in model.parameters():  # norms and biases start as ones and zeros
            if parameter.requires_grad:
                parameter.data += 0.1 * torch.randn_like(parameter)
    return model.eval().requires_grad_(False)


def make_translator(tokenizer: Tokenizer, **changes: object) -> TextTranslator:
    sizes = {"encoder_layers": 2, "decoder_layers": 3, **SIZES, **changes}
    return TextTranslator(TorchTranslator(random_model(Translator, small_config(tokenizer.size, **sizes))), tokenizer)
