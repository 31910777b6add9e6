"""Texts in, classes with probabilities out: everything between a text and the token ids of an engine. Needs no torch.
Token ids are the tokenizer's, without `</s>`. Axes: B texts, C classes, D d_model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, overload

from jumok.engines.batching import FloatMatrix, TokenIds
from jumok.engines.facade import Facade, require_text, require_texts
from jumok.errors import BundleError, counted, require_choice
from jumok.metrics.classification import ClassScores, probabilities
from jumok.tokenizer import Tokenizer


@dataclass(frozen=True)
class Classification:
    """The class of a text or a picture."""

    label: str
    probability: float
    probabilities: dict[str, float]  # of every class


def classifications(scores: ClassScores, classes: Sequence[str], temperature: float) -> list[Classification]:
    """The most probable class for each row of scores [B, C], and the probabilities of all classes."""
    results = []
    for row in probabilities(scores, temperature).tolist():
        named = dict(zip(classes, row, strict=True))
        label = max(classes, key=named.__getitem__)
        results.append(Classification(label, named[label], named))
    return results


def require_classes(card: Mapping[str, Any], count: int, path: Path) -> list[str]:
    """The names of the classes in a card; a BundleError if the model has another number of them."""
    classes = list(card.get("classes", {}))
    if len(classes) != count:
        raise BundleError(f"{path}: its card names {counted(len(classes), 'class', 'classes')}, the model has {count}.")
    return classes


class ClassifierEngine(Protocol):
    """Runs a classifier. Results are in the order of the texts; each is independent of the others in the call."""

    @property
    def classes(self) -> int:
        """C, the number of classes."""

    def scores(self, texts: TokenIds) -> ClassScores:
        """Scores [B, C] of the classes, before the softmax."""

    def vectors(self, texts: TokenIds) -> FloatMatrix:
        """A vector [B, D] of length 1 for every text; zeros for a text without any token."""

    def attribution(self, text: Sequence[int], chosen: int | None) -> list[float]:
        """How much each token adds to the score of a class (None: the most probable), less that of the others."""


class TextClassifier(Facade):
    """A classifier for texts. `engine` runs the model, `tokenizer` is the one the model was trained with."""

    task: ClassVar[str] = "classifier"
    engines = (
        "jumok.engines.classifier.torch:TorchClassifier",
        "jumok.engines.classifier.ctranslate2:Ctranslate2Classifier",
    )
    engine: ClassifierEngine

    def __init__(self, engine: ClassifierEngine, tokenizer: Tokenizer, card: dict[str, Any], path: Path) -> None:
        self.engine, self.tokenizer, self.card, self.path = engine, tokenizer, card, path
        self.classes = require_classes(card, engine.classes, path)
        self.temperature = float(card.get("metrics", {}).get("temperature", 1.0))

    def scores(self, texts: Sequence[str]) -> ClassScores:
        """Scores [B, C] before they become probabilities."""
        return self.engine.scores(self.tokenizer.encode(require_texts("texts", texts)))

    def vectors(self, texts: Sequence[str]) -> FloatMatrix:
        """A vector [B, D] of length 1 for every text: the mean of the encoder's states, similar for similar meaning."""
        return self.engine.vectors(self.tokenizer.encode(require_texts("texts", texts)))

    @overload
    def classify(self, texts: str) -> Classification: ...  # type: ignore[overload-overlap]
    @overload
    def classify(self, texts: Sequence[str]) -> list[Classification]: ...
    def classify(self, texts: str | Sequence[str]) -> Classification | list[Classification]:
        """The most probable class of a text, or of each text of a list, and the probabilities of all classes."""
        if isinstance(texts, str):
            return self.classify([texts])[0]
        texts = require_texts("texts", texts, alternative="a text or ")
        return classifications(self.scores(texts), self.classes, self.temperature)

    def explain(self, text: str, label: str | None = None) -> list[tuple[str, float]]:
        """Each subword of the text with its attribution: how much it adds to the score of a class (None: the most
        probable), less the others'. Attributions do not sum to the score; they rank the subwords."""
        if label is not None:
            require_choice("label", label, self.classes)
        [ids] = self.tokenizer.encode([require_text("text", text)])
        chosen = None if label is None else self.classes.index(label)
        return list(zip(self.tokenizer.pieces(ids), self.engine.attribution(ids, chosen), strict=True))

    def _subject(self) -> str:
        return f"{len(self.classes)} classes"
