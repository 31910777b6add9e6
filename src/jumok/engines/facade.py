"""What the objects that `jumok.load` returns share: how they are opened, show themselves, are pickled, check texts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from inspect import Parameter, signature
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack

from jumok.bundle import Bundle
from jumok.engines.opening import Hardware, open_engine
from jumok.errors import ArgumentError, did_you_mean

# Key in the card, name, format: the first that a card has is shown.
_SCORES = (
    ("bleu", "BLEU", ".1f"),
    ("macro_f1", "macro-F1", ".1%"),
    ("bits_per_byte", "bits/byte", ".3f"),
)


class Facade:
    """A loaded model: `engine` runs it, `card` describes it, `path` is its directory."""

    engines: ClassVar[tuple[str, str | None]]  # "module:name" of both: PyTorch's, and CTranslate2's if there is one
    method: ClassVar[str]  # the one that most people call
    options: ClassVar[type | None] = None  # a dataclass: the options of that method
    engine: Any
    card: dict[str, Any]
    path: Path | None = None
    reload: Callable[[], Any] | None = None  # loads it again, in another process; set by `load`

    def __init__(self, engine: Any, _encoder: Any, card: dict[str, Any], path: Path) -> None:
        self.engine, self.card, self.path = engine, card, path

    @classmethod
    def open(cls, bundle: Bundle, encoder: Any, engine: str = "auto", **hardware: Unpack[Hardware]) -> Self:
        """The model of a bundle."""
        opened = open_engine(bundle, engine, *cls.engines, **hardware, **cls.export_options(encoder))
        return cls(opened, encoder, bundle.card, bundle.path)

    @classmethod
    def export_options(cls, _encoder: Any) -> dict[str, Any]:
        """What CTranslate2's engine needs besides the export and the hardware."""
        return {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model directory and the options of `load` instead of the weights."""
        if self.reload is None:
            raise ArgumentError(f"{self!r} cannot be pickled: it was not made by `jumok.load`.")
        return self.reload, ()

    def __repr__(self) -> str:
        """Such as `<TextTranslator en→ko, 1.8 million parameters, BLEU 33.7, CTranslate2, run/model>`."""
        metrics = self.card.get("metrics", {})
        scores = [f"{name} {metrics[key]:{form}}" for key, name, form in _SCORES if key in metrics]
        size = self.card.get("parameters")
        parts = [
            self._subject(),
            f"{size / 1e6:.1f} million parameters" if isinstance(size, int) else "",
            *scores[:1],
            getattr(self.engine, "name", type(self.engine).__name__),
            str(self.path or ""),
        ]
        return f"<{type(self).__name__} {', '.join(filter(None, parts))}>"

    def _subject(self) -> str:
        """What the model is for: its languages or classes."""
        return "→".join(self.card.get("languages") or ())


def require_load_options(facade: Any, names: Iterable[str]) -> None:
    """Raise an ArgumentError for a name that is not an option of `facade.open`, or is one of the facade's method."""
    parameters = signature(facade.open).parameters.values()
    known = ["engine", "task", *(each.name for each in parameters if each.kind is Parameter.KEYWORD_ONLY)]
    if issubclass(facade, Facade):
        known += Hardware.__annotations__
    for name in names:
        if name in known:
            continue
        if issubclass(facade, Facade) and facade.options is not None:
            close = get_close_matches(name, [field.name for field in fields(facade.options)], n=1)
            if close and not get_close_matches(name, known):
                raise ArgumentError(f'load has no option "{name}". Did you mean "{close[0]}" of {facade.method}?')
        raise ArgumentError(f'Unknown option "{name}".{did_you_mean(name, known)}')


def require_text(name: str, text: object) -> str:
    """The text; an ArgumentError if it is something else."""
    if not isinstance(text, str):
        raise ArgumentError(f"{name} is {_shown(text)}; it must be a text (str).")
    return text


def require_texts(name: str, texts: object, *, alternative: str = "") -> list[str]:
    """The texts as a list; an ArgumentError if they are no collection, or one of them is no text.
    `alternative` is what the caller accepts besides a list, for the message."""
    if isinstance(texts, (str, bytes, Mapping)) or not hasattr(texts, "__iter__"):
        raise ArgumentError(f"{name} is {_shown(texts)}; it must be {alternative}a list of texts (str).")
    found: list[Any] = list(texts)
    for number, text in enumerate(found):
        require_text(f"{name}[{number}]", text)
    return found


def _shown(value: object) -> str:
    shown = repr(value)
    return "None" if value is None else f"{shown if len(shown) <= 40 else shown[:39] + '…'} ({type(value).__name__})"
