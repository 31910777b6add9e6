"""A built-in set of drawn shapes for the classifier of pictures: eight classes, in many places, sizes and colours,
tilted, on a darker ground with noise. Everything follows from a seed."""

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from jumok.pictures import Pixels

SIDE = 32
_FINER = 3  # points along the side of a pixel, for smooth edges
Plane = npt.NDArray[np.float64]
Inside = npt.NDArray[np.bool_]


def _polygon(*corners: tuple[float, float]) -> Callable[[Plane, Plane], Inside]:
    """The inside of a polygon: a ray from a point inside crosses an odd number of its edges."""

    def inside(u: Plane, v: Plane) -> Inside:
        odd = np.zeros(u.shape, bool)
        for (x, y), (next_x, next_y) in zip(corners, (*corners[1:], corners[0]), strict=True):
            crosses = (y > v) != (next_y > v)
            odd ^= crosses & (u < (next_x - x) * (v - y) / ((next_y - y) or 1.0) + x)
        return odd

    return inside


def _around(count: int, *radii: float) -> list[tuple[float, float]]:
    """So many points around the origin, at these distances in turn."""
    turns = [2 * np.pi * n / count for n in range(count)]
    return [
        (float(radii[n % len(radii)] * np.sin(t)), float(radii[n % len(radii)] * np.cos(t)))
        for n, t in enumerate(turns)
    ]


SHAPES: dict[str, Callable[[Plane, Plane], Inside]] = {
    "circle": lambda u, v: u**2 + v**2 < 0.8,
    "cross": lambda u, v: (np.minimum(abs(u), abs(v)) < 0.3) & (np.maximum(abs(u), abs(v)) < 0.95),
    "heart": lambda u, v: ((1.3 * u) ** 2 + (1.3 * v) ** 2 - 1) ** 3 < (1.3 * u) ** 2 * (1.3 * v) ** 3,
    "moon": lambda u, v: (u**2 + v**2 < 0.9) & ((u - 0.45) ** 2 + v**2 > 0.55),
    "ring": lambda u, v: (u**2 + v**2 < 0.9) & (u**2 + v**2 > 0.3),
    "square": lambda u, v: np.maximum(abs(u), abs(v)) < 0.75,
    "star": _polygon(*_around(10, 1.0, 0.42)),
    "triangle": _polygon(*_around(3, 1.0)),
}


def demo_shapes(count: int, seed: int = 1) -> Iterator[tuple[str, Pixels]]:
    """So many pictures with the names of their shapes, the shapes in turn."""
    draw = np.random.Generator(np.random.Philox(seed))
    names = list(SHAPES)
    for number in range(count):
        name = names[number % len(names)]
        yield name, _picture(SHAPES[name], draw)


def _picture(shape: Callable[[Plane, Plane], Inside], draw: np.random.Generator) -> Pixels:
    """A shape of random place, size, tilt and colours, brighter than its ground."""
    size = draw.uniform(0.25, 0.42) * SIDE
    x, y = draw.uniform(size, SIDE - size, 2)
    turn = draw.uniform(-0.5, 0.5)
    points = (np.arange(SIDE * _FINER) + 0.5) / _FINER
    across, down = (points[None, :] - x) / size, (points[:, None] - y) / size
    u, v = np.cos(turn) * across + np.sin(turn) * down, np.cos(turn) * down - np.sin(turn) * across
    share = shape(u, -v).reshape(SIDE, _FINER, SIDE, _FINER).mean((1, 3))[..., None]
    ground = draw.uniform(0, 90, 3)
    colour = ground + draw.uniform(30, 160, 3)
    noise = draw.normal(0, 12, (SIDE, SIDE, 1))
    values = ground + (colour - ground) * share + noise
    picture: Pixels = np.clip(values, 0, 255).astype(np.uint8)
    return picture
