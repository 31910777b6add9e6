"""Pictures from files, Pillow images or arrays. Files may come from anybody: formats and sizes are limited, and
whatever is wrong with one is an UnusablePictureError that says why."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeAlias

import numpy as np
import numpy.typing as npt

from jumok.errors import InputError, MissingExtraError
from jumok.pictures.shape import PictureShape, Pixels

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "WEBP", "BMP")
PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".jpe", ".jfif", ".webp", ".bmp")
MOST_PIXELS = 50_000_000
_GREY_MODES = ("1", "L", "LA", "La", "I", "F")
_WARNINGS = threading.Lock()  # the filters of warnings belong to all threads

PictureSource: TypeAlias = "str | Path | bytes | bytearray | memoryview | Image | npt.NDArray[np.uint8]"
"""A file, its content, a Pillow image, or an array [H, W] or [H, W, C] of bytes with 1, 3 or 4 channels."""


class UnusablePictureError(InputError):
    """A picture that cannot be used. `reason` is the message without the name of the file."""

    def __init__(self, reason: str, where: str = "") -> None:
        super().__init__(f"{where}: {reason}." if where else f"{reason}.")
        self.reason = reason


def measure_picture(source: PictureSource) -> PictureShape:
    """The shape of a picture as people see it. Of a file only the beginning is read."""
    with _opened(source) as image:
        turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8) if _has_readable_exif(image) else False
        width, height = image.size[::-1] if turned else image.size
        return PictureShape(height, width, 1 if _is_grey(image) else 3)


def read_picture(source: PictureSource, shape: PictureShape) -> Pixels:
    """The picture, turned upright, scaled to fit into the shape; where it does not fill it, its edges are repeated.
    Transparent parts are white. Colours become grey, or the other way round, if the shape asks for it."""
    with _opened(source) as image:
        if image.format == "JPEG":  # decodes a large photo at a half, a quarter or an eighth of its size
            image.draft(None, (2 * max(shape.width, shape.height),) * 2)
        image.load()
        if _has_readable_exif(image):
            from PIL import ImageOps

            image = ImageOps.exif_transpose(image)
        return _padded(_scaled(_flattened(image, shape.channels), shape), shape)


def png_bytes(pixels: Pixels) -> bytes:
    """The picture as the content of a PNG file."""
    file = BytesIO()
    _pillow().fromarray(pixels[..., 0] if pixels.shape[2] == 1 else pixels).save(file, "PNG")
    return file.getvalue()


@contextmanager
def _opened(source: PictureSource) -> Iterator[Image]:
    """The picture, not decoded yet. Whatever Pillow raises for a damaged one becomes an UnusablePictureError."""
    where = str(source) if isinstance(source, str | Path) else ""
    try:
        if isinstance(source, str | Path):
            with open(source, "rb") as file:
                yield _image(file)
        else:
            yield _image(BytesIO(source) if isinstance(source, bytes | bytearray | memoryview) else source)
    except MissingExtraError:
        raise
    except UnusablePictureError as error:
        raise UnusablePictureError(error.reason, where) from None
    except Exception as error:
        raise UnusablePictureError(_reason(error), where) from error


def _reason(error: Exception) -> str:
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, UnidentifiedImageError):
        return "not a PNG, JPEG, WebP or BMP picture"
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return f"more than {MOST_PIXELS:,} pixels"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}"
    return f"damaged picture ({str(error).rstrip('.')[:80] or type(error).__name__})"


def _pillow() -> Any:
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise MissingExtraError("pillow", "train", "Reading pictures") from error
    return Image


def _image(source: BinaryIO | Image | npt.NDArray[Any]) -> Image:
    """The picture, not decoded yet, if it is of a kind and size that is read."""
    pillow = _pillow()
    if isinstance(source, np.ndarray):
        return _from_array(source, pillow)
    if isinstance(source, BytesIO | BufferedReader):
        with _WARNINGS, warnings.catch_warnings():
            warnings.simplefilter("ignore", pillow.DecompressionBombWarning)  # the limit below is lower
            image: Image = pillow.open(source, formats=FORMATS)
    elif isinstance(source, pillow.Image):
        image = source
    else:
        raise UnusablePictureError(
            f"{type(source).__name__} is no picture; give a path, the bytes of a file, a Pillow image or an array"
        )
    if image.width * image.height > MOST_PIXELS:
        raise UnusablePictureError(f"{image.width:,} × {image.height:,} pixels; at most {MOST_PIXELS:,} are read")
    if min(image.size) < 1:
        raise UnusablePictureError("has no pixels")
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # cameras add a preview to a photo, which makes it an MPO
        raise UnusablePictureError(f"animated ({frames:,} frames); save one of them as a picture")
    return image


def _from_array(array: npt.NDArray[Any], pillow: Any) -> Image:
    if array.ndim == 3 and array.shape[2] == 1:
        array = array[..., 0]
    if array.dtype != np.uint8 or array.ndim not in (2, 3) or (array.ndim == 3 and array.shape[2] not in (3, 4)):
        raise UnusablePictureError(
            f"an array {list(array.shape)} of {array.dtype}; give [height, width] or [height, width, channels] of uint8"
        )
    if 0 in array.shape:
        raise UnusablePictureError("has no pixels")
    image: Image = pillow.fromarray(np.ascontiguousarray(array))
    return image


def _has_readable_exif(image: Image) -> bool:
    """Whether the notes of the camera can be read; a picture without readable ones is taken as it is."""
    try:
        return bool(image.getexif())
    except Exception:
        return False


def _is_grey(image: Image) -> bool:
    if image.mode == "P":
        palette = np.array(image.getpalette("RGB") or [0, 0, 0]).reshape(-1, 3)
        return bool((palette == palette[:, :1]).all())
    return image.mode in _GREY_MODES or image.mode.startswith("I;")


def _flattened(image: Image, channels: int) -> Image:
    """The picture with 8 bits a channel on a white ground, grey or in colour."""
    if image.mode == "I" or image.mode.startswith("I;"):  # 16 bits
        pixels = np.clip(np.asarray(image).astype(np.int64), 0, 65_535) >> 8
        image = _pillow().fromarray(pixels.astype(np.uint8))
    elif image.mode == "F":
        raise UnusablePictureError("floating-point values; save it with 8 or 16 bits")
    elif image.has_transparency_data:
        transparent = image.convert("RGBA")
        ground = _pillow().new("RGBA", image.size, "white")
        image = _pillow().alpha_composite(ground, transparent)
    return image.convert("L" if channels == 1 else "RGB")


def _scaled(image: Image, shape: PictureShape) -> Image:
    """The picture as large as fits into the shape, with the same proportions."""
    ratio = min(shape.width / image.width, shape.height / image.height)
    size = max(1, round(image.width * ratio)), max(1, round(image.height * ratio))
    return image if size == image.size else image.resize(size, _pillow().Resampling.BICUBIC)


def _padded(image: Image, shape: PictureShape) -> Pixels:
    pixels = np.asarray(image).reshape(image.height, image.width, shape.channels)
    spare = shape.height - image.height, shape.width - image.width
    if not any(spare):
        return pixels
    borders = [(each // 2, each - each // 2) for each in spare]
    return np.pad(pixels, (*borders, (0, 0)), mode="edge")
