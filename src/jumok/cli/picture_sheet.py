"""Several pictures as one."""

import math
from collections.abc import Sequence

from PIL import Image

GAP = 4  # pixels between two pictures


def enlarged(picture: Image.Image, zoom: int) -> Image.Image:
    """The picture with each pixel as a square of `zoom` pixels."""
    return picture.resize((picture.width * zoom, picture.height * zoom), Image.Resampling.NEAREST)


def sheet_size(size: tuple[int, int], count: int, columns: int | None = None) -> tuple[int, int]:
    """Width and height of a sheet of so many pictures of one size; see `contact_sheet`."""
    columns = columns or _columns_for(count)
    width, height = (side + GAP for side in size)
    return columns * width + GAP, -(-count // columns) * height + GAP


def contact_sheet(pictures: Sequence[Image.Image], columns: int | None = None) -> Image.Image:
    """Pictures of one size in rows of so many columns; by default nearly as many as there are rows."""
    columns = columns or _columns_for(len(pictures))
    width, height = (side + GAP for side in pictures[0].size)
    sheet = Image.new("RGB", sheet_size(pictures[0].size, len(pictures), columns), (200, 200, 200))
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        sheet.paste(picture, (GAP + column * width, GAP + row * height))
    return sheet


def _columns_for(count: int) -> int:
    return math.ceil(math.sqrt(count))
