"""The drawn shapes follow from their seed, are balanced and visible."""

import numpy as np

from jumok.demo.shapes import SHAPES, SIDE, demo_shapes


def test_shapes_are_the_same_for_a_seed_and_in_turn() -> None:
    first, again, other = (list(demo_shapes(16, seed)) for seed in (1, 1, 2))
    assert [name for name, _ in first] == list(SHAPES) * 2
    assert all(np.array_equal(one, two) for (_, one), (_, two) in zip(first, again, strict=True))
    assert not any(np.array_equal(one, two) for (_, one), (_, two) in zip(first, other, strict=True))
    assert all(pixels.shape == (SIDE, SIDE, 3) and pixels.dtype == np.uint8 for _, pixels in first)


def test_every_shape_covers_a_part_of_its_picture() -> None:
    points = np.linspace(-1, 1, 50)
    for name, inside in SHAPES.items():
        share = inside(points[None, :] + np.zeros((50, 1)), points[:, None] + np.zeros((1, 50))).mean()
        assert 0.15 < share < 0.75, name
