"""What every recipe can be asked for, in the same words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypedDict

from jumok.model.config import preset as preset_config
from jumok.training.auto import require_one_length
from jumok.training.settings import Settings
from jumok.training.trainer import Event

PathLike = str | Path
Watch = Callable[[Event], None]


class Request(TypedDict, total=False):
    """How long to train, and what to do with a training that is there already."""

    settings: Settings | Mapping[str, Any] | None  # all settings, or dotted names and values
    preset: str | None
    minutes: float | None  # one of these three
    steps: int | None
    epochs: float | None
    fresh: bool  # forget what was trained in `out`
    continue_with_changes: bool  # go on although settings or files changed
    shard: bool  # several processes share one model's weights; for what is too large for each
    watch: Watch  # receives everything that happens, as dictionaries; see training/trainer.py
    stop_requested: Callable[[], bool]  # asked after every step


def asked_settings(request: Request, task: str) -> Settings:
    """All settings asked for. A preset, a model or lengths that cannot be are refused before anything is written."""
    given = request.get("settings")
    settings = given if isinstance(given, Settings) else Settings.from_dict({}).changed(given or {})
    wanted = {
        "preset": request.get("preset"),
        "stop.minutes": request.get("minutes"),
        "stop.steps": request.get("steps"),
        "stop.epochs": request.get("epochs"),
    }
    asked = settings.changed({name: value for name, value in wanted.items() if value is not None})
    require_one_length(asked.stop)
    size = "tiny" if asked.preset == "auto" else asked.preset
    preset_config(size, vocabulary=1, task=task, **asked.model)
    return asked
