"""Pictures in, classes with probabilities out. Axes: B pictures, C classes, D d_model."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, overload

import numpy as np

from jumok.data.pictures import PictureArray
from jumok.engines.batching import FloatMatrix
from jumok.engines.classifier.text import Classification, classifications, require_classes
from jumok.engines.facade import Facade
from jumok.errors import ArgumentError
from jumok.metrics.classification import ClassScores
from jumok.pictures import PictureEncoder, PictureSource, read_picture

_ONE_PICTURE = (str, Path, bytes, bytearray, memoryview, np.ndarray)


class ImageClassifierEngine(Protocol):
    """Runs an image classifier."""

    @property
    def classes(self) -> int:
        """C, the number of classes."""

    def scores(self, pictures: PictureArray, encoder: PictureEncoder) -> ClassScores:
        """Scores [B, C] of the classes, before the softmax."""

    def vectors(self, pictures: PictureArray, encoder: PictureEncoder) -> FloatMatrix:
        """A vector [B, D] of length 1 for every picture."""


class PictureClassifier(Facade):
    """A classifier for pictures. A picture is a path, the bytes of a file, a Pillow image, or an array [H, W] or
    [H, W, C] of bytes; it may have any size."""

    task: ClassVar[str] = "image_classifier"
    engines = "jumok.engines.image_classifier.torch:TorchImageClassifier", None
    method: ClassVar[str] = "classify"
    engine: ImageClassifierEngine

    def __init__(
        self, engine: ImageClassifierEngine, encoder: PictureEncoder, card: dict[str, Any], path: Path
    ) -> None:
        self.engine, self.encoder, self.card, self.path = engine, encoder, card, path
        self.classes = require_classes(card, engine.classes, path)
        self.temperature = float(card.get("metrics", {}).get("temperature", 1.0))

    def pixels(self, pictures: Iterable[PictureSource]) -> PictureArray:
        """[B, H, W, C] The pictures in the shape that the model reads."""
        read = [read_picture(picture, self.encoder.shape) for picture in pictures]
        return np.stack(read) if read else np.zeros((0, *self.encoder.shape.dimensions), np.uint8)

    def scores(self, pictures: Sequence[PictureSource]) -> ClassScores:
        """Scores [B, C] before they become probabilities."""
        return self.engine.scores(self.pixels(pictures), self.encoder)

    def picture_vectors(self, pictures: Sequence[PictureSource]) -> FloatMatrix:
        """A vector [B, D] of length 1 for every picture: the mean of the states of its patches."""
        return self.engine.vectors(self.pixels(pictures), self.encoder)

    @overload
    def classify(self, pictures: PictureSource) -> Classification: ...  # type: ignore[overload-overlap]
    @overload
    def classify(self, pictures: Sequence[PictureSource]) -> list[Classification]: ...
    def classify(self, pictures: Any) -> Classification | list[Classification]:
        """The most probable class of a picture, or of each picture of a list, and the probabilities of all classes."""
        if isinstance(pictures, _ONE_PICTURE) or hasattr(pictures, "getexif"):
            return self.classify([pictures])[0]
        if not hasattr(pictures, "__iter__"):
            raise ArgumentError(f"pictures is {type(pictures).__name__}; it must be a picture or a list of pictures.")
        return classifications(self.scores(list(pictures)), self.classes, self.temperature)

    def _subject(self) -> str:
        return f"{len(self.classes)} classes, {self.encoder.shape}"
