"""A caption in, pictures out: everything between a text and the token ids of an engine. Needs no torch itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Unpack, overload

import numpy as np
import numpy.typing as npt

from jumok.engines.batching import TokenIds
from jumok.engines.facade import Facade, require_text, require_texts
from jumok.engines.painter.options import PaintingKeywords, PaintingOptions
from jumok.errors import ArgumentError
from jumok.tokenizer import Tokenizer

if TYPE_CHECKING:
    from PIL.Image import Image

PictureArray = npt.NDArray[np.uint8]  # [N, H, W, C]
Codes = npt.NDArray[np.int64]  # [N, T]


def words_of(caption: str) -> list[str]:
    """The words of a caption in small letters, without the punctuation around them."""
    words = (word.strip(".,;:!?\"'()[]“”‘’。、").lower() for word in caption.split())
    return list(filter(None, words))


class PainterEngine(Protocol):
    """Runs a painter. The same caption, options and seed give the same pictures."""

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the pictures in pixels."""

    def paint(self, captions: TokenIds, options: PaintingOptions) -> list[Codes]:
        """The codes [n, T] of the pictures of each caption, the most probable first."""

    def draw(self, codes: Codes) -> PictureArray:
        """The pictures [N, H, W, C] that codes [N, T] stand for."""

    def encode(self, pictures: PictureArray) -> Codes:
        """The codes [N, T] of pictures [N, H, W, C]."""

    def score(self, captions: TokenIds, codes: Codes) -> list[list[float]]:
        """The log-probability of every image token of each picture, given its caption and those before it."""


class TextPainter(Facade):
    """A painter for captions. `engine` runs the model, `tokenizer` is the one the model was trained with."""

    task: ClassVar[str] = "painter"
    engines = "jumok.engines.painter.torch:TorchPainter", None
    method, options = "paint", PaintingOptions
    engine: PainterEngine

    def __init__(self, engine: PainterEngine, tokenizer: Tokenizer, card: dict[str, Any], path: Path) -> None:
        self.engine, self.tokenizer, self.card, self.path = engine, tokenizer, card, path

    @overload
    def paint(self, caption: str, **options: Unpack[PaintingKeywords]) -> list[Image]: ...
    @overload
    def paint(self, caption: list[str], **options: Unpack[PaintingKeywords]) -> list[list[Image]]: ...
    def paint(self, caption: str | list[str], **options: Unpack[PaintingKeywords]) -> Any:
        """Pictures of a caption, or of each of several captions, as Pillow images, the most probable first.

        Options, with their defaults:
            n=1              pictures of each caption
            seed=0           the same seed gives the same pictures
            guidance=2.0     how much the caption counts: 1 as in training, more is stricter and less varied
            temperature=1.0  below 1 more conservative, above 1 more random, 0 greedy
            top_k=0          sample from this many most probable image tokens; 0: all
            top_p=1.0        sample from the smallest set of image tokens with this total probability
        """
        from PIL import Image

        captions = [require_text("caption", caption)] if isinstance(caption, str) else caption
        found = [
            [Image.fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels) for pixels in pictures]
            for pictures in self.paint_arrays(captions, **options)
        ]
        return found[0] if isinstance(caption, str) else found

    def paint_arrays(self, captions: Sequence[str], **options: Unpack[PaintingKeywords]) -> list[PictureArray]:
        """The same as arrays [n, H, W, C] of bytes, one for each caption."""
        chosen = PaintingOptions.of(**options)
        texts = require_texts("captions", captions, alternative="a text or ")
        for number, text in enumerate(texts):
            if not text.strip():
                raise ArgumentError(f"Caption {number + 1} is empty. Say what the picture shall show.")
        codes = self.engine.paint(self.tokenizer.encode(texts), chosen)
        return [self.engine.draw(each) for each in codes]

    @property
    def picture_size(self) -> tuple[int, int]:
        """Width and height of the pictures in pixels."""
        return self.engine.picture_size

    def unknown_words(self, caption: str) -> list[str]:
        """The words of a caption that occur in no caption of the training; empty if those are not known."""
        known = self.card.get("words")
        return [word for word in words_of(caption) if word not in known] if known else []

    def _subject(self) -> str:
        return str(self.card.get("picture", ""))
