"""Built-in scenes: coloured shapes on white, 32 × 32 pixels, with captions in English and Korean.

A scene is one shape at a place, two shapes in a relation, or several equal shapes. About a seventh of all combinations
of what can be combined never occurs in training: a model that draws those right has understood the words. Whether it
has is judged by `jumok.demo.scene_reader`, which shares no code with the drawing here.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from random import Random

import numpy as np
import numpy.typing as npt

Pixels = npt.NDArray[np.uint8]  # [H, W, 3]

SIDE = 32
SHAPES = {"circle": "동그라미", "square": "네모", "triangle": "세모", "cross": "십자"}
COLOURS = {
    "red": ("빨간", (220, 40, 40)),
    "green": ("초록색", (40, 160, 60)),
    "blue": ("파란", (50, 80, 220)),
    "yellow": ("노란", (245, 205, 40)),
    "purple": ("보라색", (150, 60, 180)),
    "black": ("검은", (30, 30, 30)),
}
SIZES = {"small": ("작은", 8), "big": ("큰", 12)}  # Korean, pixels
RELATIONS = {
    "above": ("above", "위에 있는"),
    "below": ("below", "아래에 있는"),
    "left": ("to the left of", "왼쪽에 있는"),
    "right": ("to the right of", "오른쪽에 있는"),
}
PLACES = {
    "top left": ("in the top left corner", "왼쪽 위 구석에 있는"),
    "top right": ("in the top right corner", "오른쪽 위 구석에 있는"),
    "bottom left": ("in the bottom left corner", "왼쪽 아래 구석에 있는"),
    "bottom right": ("in the bottom right corner", "오른쪽 아래 구석에 있는"),
    "middle": ("in the middle", "가운데에 있는"),
}
COUNTS = {2: ("two", "두 개"), 3: ("three", "세 개"), 4: ("four", "네 개")}
LANGUAGES = ("en", "ko")

_HELD_OUT_SHARE = 1 / 7
_STEP = 4  # pixels: shapes stand on a grid of these, so that a picture has few kinds of patches
_GAP = 4  # white pixels between two shapes
_LINES = (4, 12, 20)  # where the line begins that two shapes stand in


@dataclass(frozen=True)
class Thing:
    """A shape as a caption names it."""

    shape: str
    colour: str
    size: str | None = None  # None: the caption does not say, either is right

    def english(self) -> str:
        """Such as `small red circle`."""
        return " ".join(filter(None, (self.size, self.colour, self.shape)))

    def korean(self) -> str:
        """Such as `작은 빨간 동그라미`."""
        size = SIZES[self.size][0] if self.size else ""
        return " ".join(filter(None, (size, COLOURS[self.colour][0], SHAPES[self.shape])))


@dataclass(frozen=True)
class Scene:
    """What a caption says: `first` at a `place`, or in a `relation` to `second`, or `count` times."""

    first: Thing
    second: Thing | None = None
    relation: str = ""
    place: str = ""
    count: int = 1

    def caption(self, language: str = "en") -> str:
        """The scene in words, in English or Korean."""
        return self._korean() if language == "ko" else self._english()

    def _english(self) -> str:
        if self.count > 1:
            plural = "crosses" if self.first.shape == "cross" else f"{self.first.shape}s"
            return f"{COUNTS[self.count][0]} {self.first.english().removesuffix(self.first.shape)}{plural}"
        if self.second is not None:
            return f"a {self.first.english()} {RELATIONS[self.relation][0]} a {self.second.english()}"
        return f"a {self.first.english()} {PLACES[self.place][0]}"

    def _korean(self) -> str:
        if self.count > 1:
            return f"{self.first.korean()} {COUNTS[self.count][1]}"
        if self.second is not None:
            return f"{self.second.korean()} {RELATIONS[self.relation][1]} {self.first.korean()}"
        return f"{PLACES[self.place][1]} {self.first.korean()}"

    def combination(self) -> tuple[str, ...]:
        """What is held out from training or not: two shapes with their colours, or one with a place or a number."""
        first = f"{self.first.colour} {self.first.shape}"
        if self.second is not None:
            return tuple(sorted((first, f"{self.second.colour} {self.second.shape}")))
        return first, self.place or str(self.count)


@dataclass(frozen=True)
class DrawnScene:
    """A scene, its caption in one of the languages, and a picture of it."""

    scene: Scene
    caption: str
    pixels: Pixels


def is_held_out(scene: Scene) -> bool:
    """Whether the combination never occurs in training, the same for every seed. Every word occurs in both parts."""
    digest = hashlib.blake2b("\t".join(scene.combination()).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") < _HELD_OUT_SHARE * 2**64


def demo_scenes(count: int, *, seed: int = 0, held_out: bool = False) -> Iterator[DrawnScene]:
    """Drawn scenes for training, or of combinations that are held out, determined by the seed."""
    rng = Random(f"scenes {seed} {held_out}")
    while count > 0:
        scene = _random_scene(rng)
        if is_held_out(scene) == held_out:
            count -= 1
            yield DrawnScene(scene, scene.caption(rng.choice(LANGUAGES)), draw_scene(scene, rng))


def all_things() -> list[Thing]:
    """Every shape in every colour, without a size."""
    return [Thing(shape, colour) for shape in SHAPES for colour in COLOURS]


def all_pairs() -> Iterator[tuple[Thing, Thing]]:
    """Every two different shapes with colours."""
    return combinations(all_things(), 2)


def _random_scene(rng: Random) -> Scene:
    """Half of the scenes have two shapes in a relation."""
    first = _random_thing(rng)
    kind = rng.random()
    if kind < 0.25:
        return Scene(first, place=rng.choice(list(PLACES)))
    if kind < 0.5:
        small = Thing(first.shape, first.colour, rng.choice(("small", None)))  # big ones would not find room
        return Scene(small, count=rng.choice(list(COUNTS)))
    second = _random_thing(rng)
    while (second.shape, second.colour) == (first.shape, first.colour):
        second = _random_thing(rng)
    return Scene(first, second, relation=rng.choice(list(RELATIONS)))


def _random_thing(rng: Random) -> Thing:
    return Thing(rng.choice(list(SHAPES)), rng.choice(list(COLOURS)), rng.choice(("small", "big", None)))


def draw_scene(scene: Scene, rng: Random) -> Pixels:
    """A picture of the scene; positions and unsaid sizes are random."""
    pixels = np.full((SIDE, SIDE, 3), 255, np.uint8)
    things = [scene.first] * scene.count if scene.second is None else [scene.first, scene.second]
    default = "small" if scene.count > 1 else None
    sides = [SIZES[thing.size or default or rng.choice(list(SIZES))][1] for thing in things]
    for thing, side, (top, left) in zip(things, sides, _positions(scene, sides, rng), strict=True):
        window = pixels[top : top + side, left : left + side]
        window[_mask(thing.shape, side)] = COLOURS[thing.colour][1]
    return pixels


def _positions(scene: Scene, sides: list[int], rng: Random) -> list[tuple[int, int]]:
    """Top and left of each shape."""
    if scene.place:
        return [_at_place(scene.place, sides[0], rng)]
    if scene.second is not None:
        return _related(scene.relation, sides, rng)
    return _in_rows(scene.count, sides[0], rng)


def _at_place(place: str, side: int, rng: Random) -> tuple[int, int]:
    if place == "middle":
        start = (SIDE - side) // 2 // _STEP * _STEP
        return start, start
    down, right = (_on_grid(rng, _STEP) for _ in "yx")
    vertical, horizontal = place.split()
    return down if vertical == "top" else SIDE - side - down, right if horizontal == "left" else SIDE - side - right


def _related(relation: str, sides: list[int], rng: Random) -> list[tuple[int, int]]:
    """One behind the other along an axis, with a gap, and in line across it. Few places: what a caption does not say
    is noise to a model that learns what it says."""
    first_leads = relation in ("above", "left")
    leading, trailing = sides if first_leads else reversed(sides)
    free = SIDE - leading - trailing - _GAP
    start = _on_grid(rng, free)
    second_start = start + leading + _GAP
    along = [start, second_start] if first_leads else [second_start, start]
    across = rng.choice(_LINES)
    return [(each, across) if relation in ("above", "below") else (across, each) for each in along]


def _in_rows(count: int, side: int, rng: Random) -> list[tuple[int, int]]:
    """Equal shapes beside each other; four of them in two rows."""
    columns = 2 if count == 4 else count
    rows, apart = count // columns, side + _GAP
    top = _on_grid(rng, SIDE - rows * apart + _GAP)
    left = _on_grid(rng, SIDE - columns * apart + _GAP)
    return [(top + row * apart, left + column * apart) for row in range(rows) for column in range(columns)]


def _on_grid(rng: Random, most: int) -> int:
    return _STEP * rng.randint(0, most // _STEP)


def _mask(shape: str, side: int) -> npt.NDArray[np.bool_]:
    """[side, side] True where the shape covers a pixel."""
    rows, columns = np.indices((side, side))
    centre = (side - 1) / 2
    if shape == "square":
        return np.ones((side, side), bool)
    if shape == "circle":
        distance: npt.NDArray[np.bool_] = (rows - centre) ** 2 + (columns - centre) ** 2 <= (side / 2) ** 2
        return distance
    if shape == "triangle":
        slope: npt.NDArray[np.bool_] = np.abs(columns - centre) <= (rows + 1) / 2
        return slope
    arm = side / 7
    cross: npt.NDArray[np.bool_] = (np.abs(rows - centre) < arm) | (np.abs(columns - centre) < arm)
    return cross
