"""Several pictures as one."""

import math
from collections.abc import Sequence

from PIL import Image

GAP = 4  # pixels between two pictures


def enlarged(picture: Image.Image, zoom: int) -> Image.Image:
    """The picture with each pixel as a square of `zoom` pixels."""
    return picture.resize((picture.width * zoom, picture.height * zoom), Image.Resampling.NEAREST)


def contact_sheet(pictures: Sequence[Image.Image], columns: int | None = None) -> Image.Image:
    """Pictures of one size in rows of so many columns; by default nearly as many as there are rows."""
    columns = columns or math.ceil(math.sqrt(len(pictures)))
    rows = -(-len(pictures) // columns)
    width, height = (side + GAP for side in pictures[0].size)
    sheet = Image.new("RGB", (columns * width + GAP, rows * height + GAP), (200, 200, 200))
    for number, picture in enumerate(pictures):
        row, column = divmod(number, columns)
        sheet.paste(picture, (GAP + column * width, GAP + row * height))
    return sheet
