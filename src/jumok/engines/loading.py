"""A model directory → something that takes and gives texts. PyTorch is imported only when a model needs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jumok.bundle import Bundle, load_bundle
from jumok.engines.classifier.text import ClassifierEngine, TextClassifier
from jumok.engines.engine import Matrix, TokenEngine
from jumok.engines.language_model.text import LanguageEngine, TextGenerator
from jumok.engines.translator.text import TextTranslator
from jumok.errors import BundleError, ConfigError, MissingExtraError, did_you_mean
from jumok.model.config import config_from_dict
from jumok.tokenizer import Tokenizer

ENGINES = ("torch", "ctranslate2")
# What a model of each task is used with.
COMMANDS = {"translator": "jumok translate", "classifier": "jumok classify", "language_model": "jumok generate"}


def load(path: str | Path, engine: str = "auto") -> Any:
    """What is in a model directory, or in the run directory of a training.

    A `TextTranslator`, a `TextClassifier` or a `TextGenerator`, by the task of the model.
    """
    _require_engine(engine)
    bundle = load_bundle(Path(path))
    task = bundle.config.get("task")
    tokenizer = _tokenizer(bundle)
    if task == "classifier":
        return _classifier(bundle, tokenizer, engine)
    if task == "language_model":
        return _generator(bundle, tokenizer, engine)
    return TextTranslator(_token_engine(bundle, tokenizer, engine), tokenizer, bundle.card)


def load_translator(path: str | Path, engine: str = "auto", *, fast: bool = False) -> TextTranslator:
    """The translator in a directory; another model is an error that says what to use it with.

    `fast` weighs only the pieces on a shortlist (CTranslate2 only) and may end a beam search sooner: quicker, but
    neighbours may influence the output.
    """
    _require_engine(engine)
    bundle = _bundle_of(path, "translator")
    tokenizer = _tokenizer(bundle)
    chosen = "ctranslate2" if fast and engine == "auto" else engine
    return TextTranslator(_token_engine(bundle, tokenizer, chosen, fast=fast), tokenizer, bundle.card)


def load_classifier(path: str | Path, engine: str = "auto") -> TextClassifier:
    """The classifier in a directory."""
    _require_engine(engine)
    bundle = _bundle_of(path, "classifier")
    return _classifier(bundle, _tokenizer(bundle), engine)


def load_generator(path: str | Path, engine: str = "auto") -> TextGenerator:
    """The language model in a directory."""
    _require_engine(engine)
    bundle = _bundle_of(path, "language_model")
    return _generator(bundle, _tokenizer(bundle), engine)


def load_encoder(path: str | Path) -> Callable[[Sequence[str]], Matrix]:
    """What turns sentences into vectors [B, D] of length 1: the encoder of the translator or classifier in a directory.

    That of a translator runs in PyTorch: CTranslate2 does not give it away.
    """
    bundle = load_bundle(Path(path))
    task, tokenizer = bundle.config.get("task"), _tokenizer(bundle)
    if task == "language_model":
        raise BundleError(f"{path}: has no encoder. Sentence vectors need a translator or a classifier.")
    if task == "classifier":
        engine = _classifier_engine(bundle, "auto")
        return lambda texts: engine.vectors(tokenizer.encode(texts))
    try:
        from jumok.engines.translator.torch import TorchEngine
        from jumok.engines.vectors import sentence_vectors
    except ModuleNotFoundError as error:
        raise _explained(error, bundle) from error
    model = TorchEngine.from_bundle(bundle).model
    return lambda texts: sentence_vectors(model, tokenizer.encode(texts))


def _require_engine(engine: str) -> None:
    if engine not in ("auto", *ENGINES):
        raise ConfigError(f'Unknown engine "{engine}".{did_you_mean(engine, ("auto", *ENGINES))}')


def _bundle_of(path: str | Path, wanted: str) -> Bundle:
    bundle = load_bundle(Path(path))
    task = bundle.config.get("task", "translator")
    if task in COMMANDS and task != wanted:
        name, asked = task.replace("_", " "), wanted.replace("_", " ")
        raise BundleError(f"{bundle.path}: is a {name}, not a {asked}. Use: {COMMANDS[task]} -m {path}")
    return bundle


def _tokenizer(bundle: Bundle) -> Tokenizer:
    tokenizer = Tokenizer.from_bytes(bundle.encoder_bytes, origin=str(bundle.path / "tokenizer.model"))
    if tokenizer.size != bundle.config.get("vocabulary"):
        raise BundleError(
            f"{bundle.path}: its tokenizer has {tokenizer.size} pieces, its model {bundle.config.get('vocabulary')}: "
            "they were not trained together. Copy the whole model directory again, or train it again."
        )
    return tokenizer


def _exported(bundle: Bundle, engine: str) -> Path | None:
    """The CTranslate2 model to use: where the model was exported, unless PyTorch is asked for."""
    if engine == "torch":
        return None
    from jumok.engines.translator.ctranslate2 import exported_model

    directory = exported_model(bundle)
    if directory is None and engine == "ctranslate2":
        raise BundleError(
            f"{bundle.path}: is not exported to CTranslate2, or was trained on since. "
            f"First: jumok export -m {bundle.path} --to ctranslate2"
        )
    return directory


def _token_engine(bundle: Bundle, tokenizer: Tokenizer, engine: str, *, fast: bool = False) -> TokenEngine:
    if engine == "torch" and fast:
        raise ConfigError("--fast is for CTranslate2; leave out --engine torch.")
    directory = _exported(bundle, engine)
    if directory is None:
        return _torch_engine(bundle)
    from jumok.engines.conversion import longest_text
    from jumok.engines.translator.ctranslate2 import Ctranslate2Engine, fast_patience

    longest, patience = longest_text(config_from_dict(bundle.config)), fast_patience(directory) if fast else None
    return Ctranslate2Engine(directory, tokenizer, lambda: _torch_engine(bundle), longest=longest, fast=patience)


def _torch_engine(bundle: Bundle) -> TokenEngine:
    try:
        from jumok.engines.translator.torch import TorchEngine
    except ModuleNotFoundError as error:
        raise _explained(error, bundle) from error
    return TorchEngine.from_bundle(bundle)


def _classifier(bundle: Bundle, tokenizer: Tokenizer, engine: str) -> TextClassifier:
    return TextClassifier(_classifier_engine(bundle, engine), tokenizer, bundle.card, bundle.path)


def _classifier_engine(bundle: Bundle, engine: str) -> ClassifierEngine:
    directory = _exported(bundle, engine)
    if directory is None:
        return _torch_classifier_engine(bundle)
    from jumok.engines.classifier.ctranslate2 import Ctranslate2Classifier

    return Ctranslate2Classifier(directory, bundle, lambda: _torch_classifier_engine(bundle))


def _torch_classifier_engine(bundle: Bundle) -> ClassifierEngine:
    try:
        from jumok.engines.classifier.torch import TorchClassifier
    except ModuleNotFoundError as error:
        raise _explained(error, bundle) from error
    return TorchClassifier.from_bundle(bundle)


def _generator(bundle: Bundle, tokenizer: Tokenizer, engine: str) -> TextGenerator:
    return TextGenerator(_language_engine(bundle, tokenizer, engine), tokenizer, bundle.card, bundle.path)


def _language_engine(bundle: Bundle, tokenizer: Tokenizer, engine: str) -> LanguageEngine:
    directory = _exported(bundle, engine)
    if directory is None:
        return _torch_language_engine(bundle)
    from jumok.engines.conversion import longest_text
    from jumok.engines.language_model.ctranslate2 import Ctranslate2LanguageModel

    longest = longest_text(config_from_dict(bundle.config))
    return Ctranslate2LanguageModel(directory, tokenizer, lambda: _torch_language_engine(bundle), longest=longest)


def _torch_language_engine(bundle: Bundle) -> LanguageEngine:
    try:
        from jumok.engines.language_model.torch import TorchLanguageModel
    except ModuleNotFoundError as error:
        raise _explained(error, bundle) from error
    return TorchLanguageModel.from_bundle(bundle)


def _explained(error: ModuleNotFoundError, bundle: Bundle) -> Exception:
    if error.name in ("torch", "jaxtyping"):
        return MissingExtraError(error.name, "train", f"Running {bundle.path} with PyTorch")
    return error
