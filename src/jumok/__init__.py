"""Jumok: the Transformer of "Attention Is All You Need" as software. Importing it is quick and imports no torch."""

from typing import TYPE_CHECKING, Any

from jumok.errors import JumokError, MissingExtraError
from jumok.tasks import resolve

if TYPE_CHECKING:
    from jumok.engines.loading import load
    from jumok.engines.options import DecodingOptions, Sampling
    from jumok.recipes.labelled import train_classifier
    from jumok.recipes.language_model import train_language_model
    from jumok.recipes.language_model import train_language_model as train_lm
    from jumok.recipes.painter import train_painter
    from jumok.recipes.translator import train_translator

__version__ = "0.1.0"
__all__ = [
    "DecodingOptions",
    "JumokError",
    "Sampling",
    "__version__",
    "load",
    "train_classifier",
    "train_language_model",
    "train_lm",
    "train_painter",
    "train_translator",
]

# Imported on first use: everything here needs more than the standard library.
_REFERENCES = {
    "DecodingOptions": "jumok.engines.options:DecodingOptions",
    "Sampling": "jumok.engines.options:Sampling",
    "load": "jumok.engines.loading:load",
    "train_classifier": "jumok.recipes.labelled:train_classifier",
    "train_language_model": "jumok.recipes.language_model:train_language_model",
    "train_lm": "jumok.recipes.language_model:train_language_model",  # as the command `jumok train lm` is called
    "train_painter": "jumok.recipes.painter:train_painter",
    "train_translator": "jumok.recipes.translator:train_translator",
}


def __getattr__(name: str) -> Any:
    if name not in _REFERENCES:
        raise AttributeError(f"module 'jumok' has no attribute {name!r}")
    try:
        value = resolve(_REFERENCES[name])
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "jaxtyping", "sacrebleu"):
            raise
        raise MissingExtraError(error.name, "train", f"jumok.{name}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
