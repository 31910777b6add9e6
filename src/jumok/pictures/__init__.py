"""Pictures as arrays of bytes [height, width, channels]: decoded from files, fitted into one shape, written as text.
Pillow decodes them; it is imported when the first picture is read."""

from jumok.pictures.decoding import (
    PICTURE_SUFFIXES,
    PictureSource,
    UnusablePictureError,
    measure_picture,
    png_bytes,
    read_picture,
)
from jumok.pictures.encoder import PictureEncoder
from jumok.pictures.shape import PictureShape, Pixels, picture_from_text, picture_to_text

__all__ = ["PICTURE_SUFFIXES", "PictureEncoder", "PictureShape", "PictureSource", "Pixels", "UnusablePictureError"]
__all__ += ["measure_picture", "picture_from_text", "picture_to_text", "png_bytes", "read_picture"]
