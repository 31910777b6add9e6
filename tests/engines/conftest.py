"""A translator that has really learned something, in a second or two, and an engine that only echoes."""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from echo_engine import EchoEngine
from every_task import write_models
from safetensors.torch import load_file, save_file
from small_translator import make_pair, small_config, train_small_translator

from jumok.engines.translator.text import TextTranslator
from jumok.engines.translator.torch import TorchTranslator
from jumok.model.translator import Translator
from jumok.tokenizer import Tokenizer


@pytest.fixture(autouse=True)
def _quick(quick_trainings: None) -> None:
    """The model's own tests check shapes; a search takes thousands of steps, and checking them would take most time."""


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    rng = Random(1)
    capitals = ["Z"] * 5  # a vocabulary without any would be taken for one of small letters alone
    return Tokenizer.train([*(side for _ in range(300) for side in make_pair(rng)), *capitals], 400)


@pytest.fixture(scope="session")
def pairs() -> list[tuple[str, str]]:
    """Sentences and what they mean."""
    rng = Random(2)
    return [make_pair(rng) for _ in range(24)]


@pytest.fixture(scope="session")
def trained(tokenizer: Tokenizer, build_once: Callable[..., Path]) -> Translator:
    """A model that translates the language of `make_pair`, in evaluation mode."""

    def build(directory: Path) -> None:
        save_file(train_small_translator(tokenizer).state_dict(), directory / "weights.safetensors")

    model = Translator(small_config(tokenizer.size))
    model.load_state_dict(load_file(build_once("small-translator", build) / "weights.safetensors"))
    return model.eval()


@pytest.fixture
def translator(trained: Translator, tokenizer: Tokenizer) -> TextTranslator:
    return TextTranslator(TorchTranslator(trained), tokenizer)


@pytest.fixture
def echo() -> EchoEngine:
    return EchoEngine()


@pytest.fixture
def echoing(echo: EchoEngine, tokenizer: Tokenizer) -> TextTranslator:
    return TextTranslator(echo, tokenizer)


@pytest.fixture(scope="session")
def models(build_once: Callable[..., Path]) -> Path:
    """A directory with a model of each task, which nobody changes."""
    return build_once("models", write_models)
