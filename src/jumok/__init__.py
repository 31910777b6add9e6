"""Jumok: the Transformer of "Attention Is All You Need" as software. Importing it is quick and imports no torch."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from jumok.errors import JumokError, MissingExtraError

if TYPE_CHECKING:
    from jumok.engines.loading import load
    from jumok.recipes import train_classifier, train_lm, train_translator

__version__ = "0.1.0"
__all__ = ["JumokError", "__version__", "load", "train_classifier", "train_lm", "train_translator"]

# What needs more than the standard library is imported when it is first asked for.
_HOMES = {"load": "jumok.engines.loading"} | dict.fromkeys(
    ("train_classifier", "train_lm", "train_translator"), "jumok.recipes"
)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'jumok' has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "jaxtyping", "sacrebleu"):
            raise
        raise MissingExtraError(error.name, "train", f"jumok.{name}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
