"""A tokenizer and a model of each task."""

from random import Random
from typing import Any

import pytest
from small_models import SIZES, make_translator, random_model
from small_translator import make_pair

from jumok.engines.classifier.text import TextClassifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.engines.language_model.text import TextLanguageModel
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.translator.text import TextTranslator
from jumok.model.classifier import Classifier
from jumok.model.config.classifier import ClassifierConfig
from jumok.model.config.language_model import LanguageModelConfig
from jumok.model.language_model import LanguageModel
from jumok.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def _quick(without_shape_checks: None) -> None:
    """Shapes are checked by the model's own tests."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    rng = Random(1)
    return Tokenizer.train([side for _ in range(300) for side in make_pair(rng)], 400)


@pytest.fixture(params=["post", "pre"])
def translator(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> TextTranslator:
    return make_translator(tokenizer, norm=request.param)


@pytest.fixture
def classifier(tokenizer: Tokenizer, tmp_path: Any) -> TextClassifier:
    config = ClassifierConfig.from_dict(
        {"vocabulary": tokenizer.size, "encoder_layers": 2, "classes": 3, "window": 8, **SIZES}
    )
    card = {"classes": {"bad": 1, "good": 1, "so-so": 1}}
    return TextClassifier(TorchClassifier(random_model(Classifier, config)), tokenizer, card, tmp_path)


@pytest.fixture
def language_model(tokenizer: Tokenizer, tmp_path: Any) -> TextLanguageModel:
    config = LanguageModelConfig.from_dict({"vocabulary": tokenizer.size, "decoder_layers": 2, **SIZES})
    return TextLanguageModel(TorchLanguageModel(random_model(LanguageModel, config)), tokenizer, {}, tmp_path)
