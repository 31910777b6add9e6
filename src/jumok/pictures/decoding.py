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
TOO_LARGE = f"more than {MOST_PIXELS:,} pixels"
_GREY_MODES = ("1", "L", "LA", "La", "I", "F")
_ORIENTATION = 0x0112  # the EXIF tag
_TURNS = {  # its values and what makes a picture upright
    2: "FLIP_LEFT_RIGHT",
    3: "ROTATE_180",
    4: "FLIP_TOP_BOTTOM",
    5: "TRANSPOSE",
    6: "ROTATE_270",
    7: "TRANSVERSE",
    8: "ROTATE_90",
}
_WARNINGS = threading.Lock()  # the filters of warnings belong to all threads

PictureSource: TypeAlias = "str | Path | bytes | bytearray | memoryview | Image | npt.NDArray[np.uint8]"
"""A file, its content, a Pillow image, or an array [H, W] or [H, W, C] of bytes with 1, 3 or 4 channels."""


class UnusablePictureError(InputError):
    """A picture that cannot be used. `reason` is the same for all pictures with this problem, so that they can be
    counted; `detail` is about this one."""

    def __init__(self, reason: str, detail: str = "", where: str = "") -> None:
        self.reason, self.detail = reason, detail
        super().__init__(f"{where}: {self.explanation}." if where else f"{self.explanation}.")

    @property
    def explanation(self) -> str:
        """The message without the name of the file."""
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


def measure_picture(source: PictureSource) -> PictureShape:
    """The shape of a picture as people see it. Of a file only the beginning is read: of a PNG picture that says only
    behind its pixels how it is to be turned, the sides are those before turning."""
    with _opened(source) as image:
        width, height = image.size[::-1] if _orientation(image) in (5, 6, 7, 8) else image.size
        return PictureShape(height, width, 1 if _is_grey(image) else 3)


def read_picture(source: PictureSource, shape: PictureShape) -> Pixels:
    """The picture, turned upright, scaled to fit into the shape; where it does not fill it, its edges are repeated.
    Transparent parts are white. Colours become grey, or the other way round, if the shape asks for it."""
    with _opened(source) as image:
        if image.format == "JPEG" and image is not source:  # `draft` changes the size of the image
            # Decodes a large photo at a half, a quarter or an eighth of its size.
            image.draft(None, (2 * max(shape.width, shape.height),) * 2)
        image.load()
        turn = _TURNS.get(_orientation(image))
        if turn is not None:
            image = image.transpose(_pillow().Transpose[turn])
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
    except (MissingExtraError, MemoryError):  # neither is a fault of the picture
        raise
    except UnusablePictureError as error:
        raise UnusablePictureError(error.reason, error.detail, where) from None
    except Exception as error:
        raise UnusablePictureError(*_reason_and_detail(error), where) from error


def _reason_and_detail(error: Exception) -> tuple[str, str]:
    from PIL import Image, UnidentifiedImageError

    if isinstance(error, FileNotFoundError):
        return "no such file", ""
    if isinstance(error, UnidentifiedImageError):
        return "not a PNG, JPEG, WebP or BMP picture", ""
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return TOO_LARGE, ""
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read: {error.strerror}", ""
    return "damaged picture", str(error).rstrip(".")[:80] or type(error).__name__


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
        with _without_warnings():  # of many pixels: the limit below is lower
            image: Image = pillow.open(source, formats=FORMATS)
    elif isinstance(source, pillow.Image):
        image = source
    else:
        raise UnusablePictureError(
            f"{type(source).__name__} is no picture; give a path, the bytes of a file, a Pillow image or an array"
        )
    if image.width * image.height > MOST_PIXELS:
        raise UnusablePictureError(TOO_LARGE, f"{image.width:,} × {image.height:,}")
    if min(image.size) < 1:
        raise UnusablePictureError("has no pixels")
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # cameras add a preview to a photo, which makes it an MPO
        raise UnusablePictureError("animated; save one of its frames as a picture", f"{frames:,} frames")
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


def _orientation(image: Image) -> int:
    """How the camera was held, as far as it has been read: see `_TURNS`. 1, as it is, if that cannot be known."""
    try:
        with _without_warnings():  # of damaged EXIF data
            # That of the class of all images: the one of PNG would decode the picture to look behind its pixels.
            return int(_pillow().Image.getexif(image).get(_ORIENTATION, 1))
    except Exception:
        return 1


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Pillow warns of what is dealt with here."""
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


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
