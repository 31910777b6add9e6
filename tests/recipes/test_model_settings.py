"""Settings of a model are refused before anything is read, if they are none, or as soon as the data are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.errors import ConfigError
from jumok.pictures import png_bytes
from jumok.recipes.recipe import Recipe
from jumok.recipes.training import plan
from jumok.tasks import TASKS, resolve
from jumok.training.settings import Settings

DECIDED = [
    *((task, "vocabulary", "the data decide it.*tokenizer") for task in ("translator", "language_model", "painter")),
    *((task, "classes", "the labels of the data decide it") for task in ("classifier", "image_classifier")),
    *((task, side, "picture_size=") for task in ("image_classifier", "painter") for side in ("height", "channels")),
    ("classifier", "task", "the command decides it"),
    ("image_classifier", "vocabulary", "are bytes"),
    ("image_classifier", "mirror", r"augment\.mirror"),
]


def check(task: str, /, **model: Any) -> None:
    recipe: type[Recipe] = resolve(TASKS[task].recipe)
    recipe.check_settings(Settings.from_dict({"model": model}))


@pytest.mark.parametrize(("task", "name", "why"), DECIDED)
def test_what_the_data_decide_is_no_setting(task: str, name: str, why: str) -> None:
    with pytest.raises(ConfigError, match=rf"^model\.{name} cannot be set: .*{why}"):
        check(task, **{name: 7})


def test_an_argument_of_a_preset_is_no_setting() -> None:
    with pytest.raises(ConfigError, match='Unknown model setting "name"'):
        check("translator", name="tiny")


@pytest.mark.parametrize("task", ["image_classifier", "painter"])
def test_a_patch_is_as_large_as_the_largest_picture_at_most(task: str) -> None:
    check(task, patch=32)
    with pytest.raises(ConfigError, match="patch=20000 is larger than"):
        check(task, patch=20_000)
    with pytest.raises(ConfigError, match="patch='a' must be a whole number"):
        check(task, patch="a")


@pytest.mark.parametrize("task", ["image_classifier", "painter"])
def test_a_patch_is_compared_with_the_pictures_that_are_there(tmp_path: Path, task: str) -> None:
    lines = []
    for number, name in enumerate(("one/a.png", "one/b.png", "other/a.png", "other/b.png")):
        (tmp_path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pictures" / name).write_bytes(png_bytes(np.full((12, 12, 1), 60 * number, np.uint8)))
        lines.append(f"{name}\tshade {number}\n")
    (tmp_path / "captions.tsv").write_text("".join(lines))
    data = [tmp_path / "pictures"] if task == "image_classifier" else [tmp_path / "captions.tsv", tmp_path / "pictures"]
    with pytest.raises(ConfigError, match="patch=16 is larger than pictures of 12 × 12 pixels"):
        plan(task, *data, settings={"model.patch": 16})
    own = {"model.codes": 2} if task == "painter" else {}
    plan(task, *data, picture_size=32, settings={"model.patch": 16, "model.d_model": 8, **own})
