"""The built-in scenes, and the reader of pictures that judges what a painter draws of them."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from jumok.demo.scene_reader import Found, read_scene, shows
from jumok.demo.scenes import (
    COLOURS,
    LANGUAGES,
    DrawnScene,
    Scene,
    Thing,
    all_pairs,
    all_things,
    demo_scenes,
    draw_scene,
    is_held_out,
)

OPPOSITE = {"above": "below", "below": "above", "left": "right", "right": "left"}


@pytest.fixture(scope="module")
def drawn() -> list[DrawnScene]:
    return list(demo_scenes(400)) + list(demo_scenes(200, held_out=True))


def test_the_reader_reads_true_drawings(drawn: list[DrawnScene]) -> None:
    right = sum(shows(each.pixels, each.scene) for each in drawn)
    assert right >= 0.995 * len(drawn)


def test_the_reader_reads_slightly_blurred_and_noisy_drawings(drawn: list[DrawnScene]) -> None:
    noise = np.random.default_rng(1)
    some = drawn[::4]
    noisy = [np.clip(each.pixels + noise.normal(0, 12, each.pixels.shape), 0, 255).astype(np.uint8) for each in some]
    assert sum(shows(pixels, each.scene) for pixels, each in zip(noisy, some, strict=True)) >= 0.99 * len(some)


def test_the_reader_refuses_another_colour_shape_or_size(drawn: list[DrawnScene]) -> None:
    for each in drawn[::5]:
        first = each.scene.first
        others = [replace(first, colour=colour) for colour in COLOURS if colour != first.colour]
        others += [replace(first, shape="circle" if first.shape != "circle" else "cross")]
        others += [replace(first, size="big" if first.size == "small" else "small")] if first.size else []
        assert not any(shows(each.pixels, replace(each.scene, first=other)) for other in others), each.caption


def test_the_reader_refuses_another_relation_place_or_number(drawn: list[DrawnScene]) -> None:
    for each in drawn[::5]:
        scene = each.scene
        if scene.relation:
            turned = replace(scene, relation=OPPOSITE[scene.relation])
            swapped = replace(scene, first=scene.second or scene.first, second=scene.first)
            assert not shows(each.pixels, turned)
            assert not shows(each.pixels, swapped)
        elif scene.place:
            others = {"middle", "top left", "bottom right"} - {scene.place}
            assert not any(shows(each.pixels, replace(scene, place=other)) for other in others)
        else:
            assert not shows(each.pixels, replace(scene, count=scene.count + 1))
            assert not shows(each.pixels, replace(scene, count=scene.count - 1, place="middle" * (scene.count == 2)))


def test_the_reader_refuses_missing_and_added_objects() -> None:
    scene = Scene(Thing("circle", "red", "small"), Thing("square", "blue"), relation="above")
    pixels = draw_scene(scene, Random(1))
    without = pixels.copy()
    without[(pixels == COLOURS["red"][1]).all(2)] = 255
    assert shows(pixels, scene)
    assert not shows(without, scene)
    smeared = pixels.copy()
    smeared[28:31, 2:30] = COLOURS["green"][1]
    assert not shows(smeared, scene)
    assert read_scene(np.full((32, 32, 3), 255, np.uint8)) == []


def test_the_reader_says_what_and_where() -> None:
    pixels = draw_scene(Scene(Thing("triangle", "green", "big"), place="top left"), Random(3))
    [found] = read_scene(pixels) or [Found("", "", "", 0, 0)]
    assert (found.shape, found.colour, found.size) == ("triangle", "green", "big")
    assert found.y < 12
    assert found.x < 12


def test_scenes_are_determined_by_the_seed() -> None:
    first, again, other = (list(demo_scenes(20, seed=seed)) for seed in (1, 1, 2))
    assert [each.caption for each in first] == [each.caption for each in again]
    assert all((a.pixels == b.pixels).all() for a, b in zip(first, again, strict=True))
    assert [each.caption for each in first] != [each.caption for each in other]


def test_held_out_combinations_never_occur_in_training_but_their_parts_do(drawn: list[DrawnScene]) -> None:
    train, test = drawn[:400], drawn[400:]
    assert not {each.scene.combination() for each in train} & {each.scene.combination() for each in test}
    pairs = [is_held_out(Scene(first, second, relation="above")) for first, second in all_pairs()]
    assert 0.08 < sum(pairs) / len(pairs) < 0.25
    for thing in all_things():
        rest = [not is_held_out(Scene(thing, other, relation="left")) for other in all_things() if other != thing]
        assert sum(rest) > len(rest) / 2
        assert not is_held_out(Scene(thing, count=2)) or not is_held_out(Scene(thing, count=3))


def test_captions_are_english_and_korean_and_tell_scenes_apart() -> None:
    scene = Scene(Thing("circle", "red", "small"), Thing("square", "blue"), relation="above")
    assert scene.caption("en") == "a small red circle above a blue square"
    assert scene.caption("ko") == "파란 네모 위에 있는 작은 빨간 동그라미"
    assert Scene(Thing("cross", "black"), count=3).caption("en") == "three black crosses"
    assert Scene(Thing("cross", "black"), count=3).caption("ko") == "검은 십자 세 개"
    assert (
        Scene(Thing("triangle", "green", "big"), place="middle").caption("en") == "a big green triangle in the middle"
    )
    scenes = {each.scene for each in demo_scenes(500)}
    for language in LANGUAGES:
        assert len({each.caption(language) for each in scenes}) == len(scenes)
