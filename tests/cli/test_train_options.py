"""The options that all train commands share."""

from dataclasses import fields
from pathlib import Path

import pytest

from jumok.cli.train_options import _FLAGS, TrainOptions
from jumok.tasks import TASKS, Task, resolve


# A task without a command of its own is trained by that of another task.
@pytest.mark.parametrize("task", [task for task in TASKS.values() if task.command], ids=lambda task: task.name)
def test_every_train_command_has_every_shared_option(task: Task) -> None:
    assert task.command is not None
    options = {each.name: each for each in resolve(task.command).params}
    for each in fields(TrainOptions):
        assert options[each.name].help
        assert options[each.name].required == (each.name == "out")


def test_options_for_settings_change_these_settings() -> None:
    values = {"preset": "small", "minutes": 2.5, "steps": 7, "epochs": 1.5, "seed": 9}
    values |= {"device": "cuda:1", "precision": "bfloat16"}
    assert values.keys() == {name for name, flag in _FLAGS.items() if flag.setting}
    for name, value in values.items():
        settings = TrainOptions(Path("run"), **{name: value}).settings().to_dict()  # type: ignore[arg-type]
        for part in _FLAGS[name].setting.split("."):
            settings = settings[part]
        assert settings == value


def test_other_options_are_arguments_of_the_recipe() -> None:
    arguments = TrainOptions(Path("run"), fresh=True, quiet=True, valid=(Path("v.tsv"),)).recipe_arguments()
    own = {"out", "valid", "fresh", "continue_with_changes", "skip_unusable", "note", "shard"}
    assert arguments.keys() == own | {"settings"}
    assert (arguments["fresh"], arguments["shard"], arguments["valid"]) == (True, False, [Path("v.tsv")])
