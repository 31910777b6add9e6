"""A tokenizer and a model of each task."""

from pathlib import Path
from random import Random

import pytest
from small_models import make_classifier, make_language_model, make_translator
from small_translator import make_pair

from jumok.engines.classifier.text import TextClassifier
from jumok.engines.language_model.text import TextLanguageModel
from jumok.engines.translator.text import TextTranslator
from jumok.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def _quick(without_shape_checks: None) -> None:
    """Shapes are checked by the model's own tests."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    rng = Random(1)
    return Tokenizer.train([side for _ in range(300) for side in make_pair(rng)], 400)


@pytest.fixture(params=["post", "pre", "rotary"])
def translator(request: pytest.FixtureRequest, tokenizer: Tokenizer) -> TextTranslator:
    rotary = request.param == "rotary"
    return make_translator(tokenizer, norm="pre" if rotary else request.param, rotary=rotary)


@pytest.fixture
def classifier(tokenizer: Tokenizer, tmp_path: Path) -> TextClassifier:
    return make_classifier(tokenizer, tmp_path)


@pytest.fixture
def language_model(tokenizer: Tokenizer, tmp_path: Path) -> TextLanguageModel:
    return make_language_model(tokenizer, tmp_path)
