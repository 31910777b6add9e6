"""The shape that all pictures of a model have, and a picture as text: for JSON, and to compare pictures by content."""

from base64 import b64decode, b64encode
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Pixels: TypeAlias = npt.NDArray[np.uint8]
"""A picture: [H, W, C], C is 1 (grey) or 3 (red, green, blue)."""


@dataclass(frozen=True)
class PictureShape:
    """Height, width and number of channels: 1 (grey) or 3 (colour)."""

    height: int
    width: int
    channels: int

    @property
    def bytes(self) -> int:
        """Number of values of a picture."""
        return self.height * self.width * self.channels

    @property
    def dimensions(self) -> tuple[int, int, int]:
        """The shape of the array: [H, W, C]."""
        return self.height, self.width, self.channels

    def __str__(self) -> str:
        return f"{self.width:,} × {self.height:,}, {'grey' if self.channels == 1 else 'colour'}"


def picture_to_text(pixels: Pixels) -> str:
    """The picture as "heightxwidthxchannels:base64"."""
    height, width, channels = pixels.shape
    return f"{height}x{width}x{channels}:{b64encode(pixels.tobytes()).decode()}"


def picture_from_text(text: str) -> Pixels:
    """The picture that `picture_to_text` wrote. ValueError if the text is something else."""
    dimensions, _, data = text.partition(":")
    shape = tuple(int(number) for number in dimensions.split("x"))
    if len(shape) != 3:
        raise ValueError(f"not a picture: {text[:40]!r}")
    return np.frombuffer(b64decode(data), np.uint8).reshape(shape)
