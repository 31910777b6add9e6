"""Named sizes, and how a config is made for any task of the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from jumok.errors import ConfigError, did_you_mean
from jumok.model.config.base import BaseConfig
from jumok.tasks import resolve, task_named, task_of_config


def _sizes(layers: int, d_model: int, heads: int, d_ff: int, dropout: float, norm: str = "post") -> dict[str, Any]:
    stacks = {"encoder_layers": layers, "decoder_layers": layers}
    return {**stacks, "d_model": d_model, "heads": heads, "d_ff": d_ff, "dropout": dropout, "norm": norm}


def _recurrent(attention: str) -> dict[str, Any]:
    own = {"task": "translator", "architecture": "recurrent", "attention": attention}
    return {**own, "encoder_layers": 2, "decoder_layers": 2, "d_model": 192, "dropout": 0.3}


PRESETS: dict[str, dict[str, Any]] = {
    # The two small ones are pre-norm: in the minutes they are made for, they learn three times as fast that way.
    "tiny": _sizes(4, 128, 4, 256, 0.3, "pre"),
    "small": _sizes(4, 256, 4, 1024, 0.2, "pre"),
    "base": _sizes(6, 512, 8, 2048, 0.1),
    "big": _sizes(6, 1024, 16, 4096, 0.3),
    # The one-layer film-review classifier: 32 wide, 2 heads, the strongest class score of any token counts.
    # (Its W^O has a bias, 32 numbers that ours has not.)
    "imdb-notebook": {
        "task": "classifier",
        "vocabulary": 50_002,
        "encoder_layers": 1,
        "d_model": 32,
        "heads": 2,
        "d_ff": 128,
        "pooling": "answers",
    },
    # What came before the Transformer, with about as many parameters as `tiny`.
    "rnn": _recurrent("none"),
    "rnn-attention": _recurrent("additive"),
}


def preset_table() -> list[tuple[str, ...]]:
    """What each preset is, for people: a heading, then a row for each preset. A classifier has an encoder only, a
    language model a decoder only."""
    names = ("d_model", "heads", "d_ff", "dropout", "norm")
    rows: list[tuple[str, ...]] = [("preset", "layers", *names)]
    for name in PRESETS:
        config = preset(name, vocabulary=1)
        stacks = [getattr(config, stack, None) for stack in ("encoder_layers", "decoder_layers")]
        layers = " + ".join(str(count) for count in stacks if count is not None)
        rows.append((name, layers, *(str(getattr(config, field, "–")) for field in names)))
    return rows


def config_from_dict(values: Mapping[str, Any]) -> BaseConfig:
    """The config of the task and architecture that the values name, as in config.json."""
    config: BaseConfig = resolve(task_of_config(values).config).from_dict(values)
    return config


def preset(name: str, /, *, vocabulary: int | None = None, task: str | None = None, **changes: Any) -> BaseConfig:
    """A named size as a config of a task: `preset("tiny", task="language_model", vocabulary=8000)`.
    A config takes the fields that it has. `imdb-notebook` brings its own vocabulary and is always a classifier."""
    if name not in PRESETS:
        raise ConfigError(f'Unknown preset "{name}".{did_you_mean(name, PRESETS)}')
    sizes = PRESETS[name]
    task = task or sizes.get("task", "translator")
    if task != sizes.get("task", task):
        own, wanted = (task_named(each).title for each in (sizes["task"], task))
        raise ConfigError(f'The preset "{name}" is for a {own}, not for a {wanted}. Use another preset.')
    entry = task_of_config(sizes | changes | {"task": task})
    known = [field.name for field in fields(resolve(entry.config))]
    values = {key: value for key, value in sizes.items() if key in known} | {"task": task} | changes
    if vocabulary is not None:
        values["vocabulary"] = vocabulary
    return config_from_dict(values)
