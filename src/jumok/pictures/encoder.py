"""What a model must know of its pictures: their shape, and the mean and deviation of their values."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from jumok.errors import BundleError
from jumok.pictures.shape import PictureShape, picture_from_text

LARGEST_SIDE = 4096  # of a picture that a model reads
_LEAST_DEVIATION = 0.01
_FITTED = 5000  # pictures at most, to standardise values


@dataclass(frozen=True)
class PictureEncoder:
    """The encoder of an image classifier: pictures have one shape, and values are standardised channel by channel."""

    shape: PictureShape
    mean: tuple[float, ...]  # of each channel, of values from 0 to 1
    deviation: tuple[float, ...]

    @classmethod
    def fit(cls, pictures: Iterable[str]) -> Self:
        """The encoder for pictures of one shape, given as text. Of many, some that are spread evenly over all are
        looked at: the first may all be of one class."""
        step, sums, shape = 1, [], (1, 1, 1)  # sums: those of every step-th picture
        for number, text in enumerate(pictures):
            if number % step == 0:
                pixels = picture_from_text(text)
                shape = pixels.shape
                values = pixels.reshape(-1, shape[2]).astype(np.float64) / 255
                sums.append((len(values), values.sum(0), (values**2).sum(0)))
            if len(sums) > _FITTED:
                step, sums = 2 * step, sums[::2]
        count, total, squares = (sum(each) for each in zip(*sums, strict=True)) if sums else (1, 0.0, 0.0)
        mean = np.broadcast_to(total / count, shape[2])
        deviation = np.sqrt(np.maximum(squares / count - mean**2, _LEAST_DEVIATION**2))
        return cls(PictureShape(*shape), _rounded(mean), _rounded(deviation))

    @classmethod
    def from_bytes(cls, data: bytes, origin: str) -> Self:
        """Read what `to_bytes` wrote; `origin` names the file in errors."""
        try:
            values = json.loads(data)
            shape = PictureShape(**values["shape"])
            found = cls(shape, *(tuple(float(each) for each in values[name]) for name in ("mean", "deviation")))
            valid = all(type(side) is int and 0 < side <= LARGEST_SIDE for side in shape.dimensions)
            valid = valid and shape.channels in (1, 3) and min(found.deviation) > 0
            valid = valid and all(map(math.isfinite, (*found.mean, *found.deviation)))
            if not valid or {len(found.mean), len(found.deviation)} != {shape.channels}:
                raise ValueError("impossible values")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
            raise BundleError(f"{origin}: does not describe the pictures of a model ({error}).") from error
        return found

    def to_bytes(self) -> bytes:
        """The encoder as the content of a file."""
        return json.dumps(asdict(self), indent=1).encode()

    @property
    def size(self) -> int:
        """Number of values that a byte of a picture can have."""
        return 256

    def encode(self, inputs: Sequence[Any], /) -> list[list[int]]:
        """The bytes of pictures that are given as text."""
        return [picture_from_text(text).ravel().tolist() for text in inputs]


def _rounded(values: Any) -> tuple[float, ...]:
    return tuple(round(float(value), 4) for value in values)
