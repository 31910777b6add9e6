"""Says what is in a picture of shapes, to judge whether it shows what a caption says.

It knows nothing of how scenes are drawn: it looks for connected areas of one colour and measures their outlines.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.demo.scenes import Pixels, Scene, Thing

Mask = npt.NDArray[np.bool_]  # [H, W]

# What the colours look like, as red, green and blue.
_PURE = {
    "white": (255, 255, 255),
    "red": (225, 45, 45),
    "green": (45, 155, 60),
    "blue": (55, 85, 215),
    "yellow": (240, 205, 45),
    "purple": (150, 65, 175),
    "black": (35, 35, 35),
}
_NAMES = tuple(_PURE)
_LEAST_AREA = 12  # pixels; smaller areas are the blurred rims of others
_BIG = 10  # pixels from side to side
_STRAY_PIXELS = 12  # in areas that are too small, at most: more would be something that is no shape


@dataclass(frozen=True)
class Found:
    """A shape in a picture."""

    shape: str
    colour: str
    size: str
    y: float  # of its centre
    x: float


def read_scene(pixels: Pixels) -> list[Found] | None:
    """The shapes in a picture, from top to bottom; None if something in it is no shape."""
    distances = [((pixels.astype(np.int64) - np.array(colour)) ** 2).sum(2) for colour in _PURE.values()]
    nearest = np.stack(distances).argmin(0)
    found, stray = [], 0
    for number, colour in enumerate(_NAMES[1:], start=1):
        for area in _areas(nearest == number):
            if area.sum() < _LEAST_AREA:
                stray += int(area.sum())
                continue
            shape = _describe(area, colour)
            if shape is None:
                return None
            found.append(shape)
    return None if stray > _STRAY_PIXELS else sorted(found, key=lambda each: (each.y, each.x))


def shows(pixels: Pixels, scene: Scene) -> bool:
    """Whether a picture shows exactly what a scene says: all shapes, colours, sizes, and where they are."""
    found = read_scene(pixels)
    if found is None:
        return False
    height, width = pixels.shape[:2]
    if scene.second is not None:
        return len(found) == 2 and any(
            _is(first, scene.first) and _is(second, scene.second) and _related(scene, first, second)
            for first, second in (found, found[::-1])
        )
    if len(found) != scene.count or not all(_is(each, scene.first) for each in found):
        return False
    return not scene.place or _placed(scene.place, found[0].y / height, found[0].x / width)


def _areas(mask: Mask) -> Iterator[Mask]:
    """The connected areas of a mask."""
    left = {(int(row), int(column)) for row, column in zip(*mask.nonzero(), strict=True)}
    while left:
        area = np.zeros_like(mask)
        waiting = [left.pop()]
        while waiting:
            row, column = waiting.pop()
            area[row, column] = True
            for neighbour in ((row - 1, column), (row + 1, column), (row, column - 1), (row, column + 1)):
                if neighbour in left:
                    left.remove(neighbour)
                    waiting.append(neighbour)
        yield area


def _describe(area: Mask, colour: str) -> Found | None:
    """The shape of an area, by how much of its bounding box and of the corners of that box it fills."""
    rows, columns = (np.flatnonzero(area.any(axis)) for axis in (1, 0))
    box = area[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = box.shape
    if not 0.65 <= height / width <= 1.55:
        return None
    size = "big" if max(height, width) > _BIG else "small"
    centre = float(rows[0] + rows[-1]) / 2, float(columns[0] + columns[-1]) / 2
    return Found(_shape(box), colour, size, *centre)


def _shape(box: Mask) -> str:
    depth = max(1, round(min(box.shape) / 4))
    top = np.concatenate((box[:depth, :depth], box[:depth, -depth:])).mean()
    bottom = np.concatenate((box[-depth:, :depth], box[-depth:, -depth:])).mean()
    if bottom - top > 0.4:
        return "triangle"
    if top + bottom > 1.5:
        return "square"
    return "circle" if box.mean() > 0.67 else "cross"


def _is(found: Found, thing: Thing) -> bool:
    return (found.shape, found.colour) == (thing.shape, thing.colour) and thing.size in (None, found.size)


def _related(scene: Scene, first: Found, second: Found) -> bool:
    down, right = second.y - first.y, second.x - first.x
    if abs(down) > abs(right):
        return scene.relation == ("above" if down > 0 else "below")
    return scene.relation == ("left" if right > 0 else "right")


def _placed(place: str, y: float, x: float) -> bool:
    """Whether a centre, as shares of the height and the width, is at a place."""
    if place == "middle":
        return 0.37 < y < 0.6 and 0.37 < x < 0.6
    vertical, horizontal = place.split()
    return (y < 0.37 if vertical == "top" else y > 0.6) and (x < 0.37 if horizontal == "left" else x > 0.6)
