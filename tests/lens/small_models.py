"""Small models with random weights, as loaded ones: they need not be good to be looked into."""

from pathlib import Path
from typing import Any

import torch
from small_translator import small_config

from jumok.engines.classifier.text import TextClassifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.engines.image_classifier.pictures import PictureClassifier
from jumok.engines.image_classifier.torch import TorchImageClassifier
from jumok.engines.image_tokens import ImageTokenizer, TorchImageTokens
from jumok.engines.language_model.text import TextLanguageModel
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.painter.text import TextPainter
from jumok.engines.painter.torch import TorchPainter
from jumok.engines.translator.text import TextTranslator
from jumok.engines.translator.torch import TorchTranslator
from jumok.model.classifier import Classifier
from jumok.model.config.classifier import ClassifierConfig
from jumok.model.config.image_classifier import ImageClassifierConfig
from jumok.model.config.image_tokens import ImageTokensConfig
from jumok.model.config.language_model import LanguageModelConfig
from jumok.model.config.painter import PainterConfig
from jumok.model.image_classifier import ImageClassifier
from jumok.model.image_tokens import ImageTokens
from jumok.model.language_model import LanguageModel
from jumok.model.painter import Painter
from jumok.model.translator import Translator
from jumok.pictures import PictureEncoder, PictureShape
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


def make_classifier(tokenizer: Tokenizer, directory: Path, **changes: object) -> TextClassifier:
    config = ClassifierConfig.from_dict(
        {"vocabulary": tokenizer.size, "encoder_layers": 2, "classes": 3, "window": 8, **SIZES, **changes}
    )
    card = {"classes": {"bad": 1, "good": 1, "so-so": 1}}
    return TextClassifier(TorchClassifier(random_model(Classifier, config)), tokenizer, card, directory)


def make_language_model(tokenizer: Tokenizer, directory: Path, **changes: object) -> TextLanguageModel:
    config = LanguageModelConfig.from_dict({"vocabulary": tokenizer.size, "decoder_layers": 2, **SIZES, **changes})
    return TextLanguageModel(TorchLanguageModel(random_model(LanguageModel, config)), tokenizer, {}, directory)


def make_image_classifier(directory: Path, **changes: object) -> PictureClassifier:
    """Of grey pictures of 10 × 12 pixels: 3 × 3 patches, of which the last row sees beyond the picture."""
    config = ImageClassifierConfig.from_dict(
        {"encoder_layers": 2, "classes": 3, "height": 10, "width": 12, "channels": 1, "patch": 4, **SIZES, **changes}
    )
    card = {"classes": {"circle": 1, "cross": 1, "star": 1}, "metrics": {"temperature": 0.8}}
    encoder = PictureEncoder(PictureShape(10, 12, 1), (0.4,), (0.3,))
    return PictureClassifier(TorchImageClassifier(random_model(ImageClassifier, config)), encoder, card, directory)


def make_painter(tokenizer: Tokenizer, directory: Path, **changes: object) -> TextPainter:
    """Of pictures of 8 × 12 pixels in colour: 2 × 3 image tokens."""
    picture = {"height": 8, "width": 12, "channels": 3, "patch": 4, "codes": 12, "code_width": 8}
    layers = {"encoder_layers": 1, "decoder_layers": 2}
    config = PainterConfig.from_dict({"vocabulary": tokenizer.size, **layers, **SIZES, **picture, **changes})
    card = {"words": ["cat", "dog", "bird"]}
    return TextPainter(TorchPainter(random_model(Painter, config)), tokenizer, card, directory)


def make_image_tokens(directory: Path) -> ImageTokenizer:
    """Of grey pictures of 4 × 8 pixels: 1 × 2 image tokens."""
    sizes = {"height": 4, "width": 8, "channels": 1, "patch": 4, "codes": 12, "code_width": 8}
    config = ImageTokensConfig.from_dict({"vocabulary": 256, **sizes})
    encoder = PictureEncoder(PictureShape(4, 8, 1), (0.5,), (0.5,))
    return ImageTokenizer(TorchImageTokens(random_model(ImageTokens, config)), encoder, {}, directory)
