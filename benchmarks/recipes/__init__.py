"""What a recipe of benchmarks/time_to_quality.py is, and the settings that all recipes with the sizes of `tiny` share.

A file for each contender names functions from a `Job` to a `Recipe`, in RECIPES. Everything runs in the contender's own
environment, in a directory that holds train.en, train.de, valid.en, valid.de and test.en.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

BEAM = 5


class Same(NamedTuple):
    """Of the recipes with the sizes of `tiny`, beside these sizes: what `jumok train` chooses for this corpus with
    Adam and ten epochs, as large a vocabulary too. But the rate falls with the inverse square root of the step: no
    peer's schedule knows how many steps will fit."""

    vocabulary: int = 6_000
    dropout: float = 0.1
    smoothing: float = 0.1
    rate: float = 0.003  # at its peak
    warm_up: int = 400  # updates
    batch_tokens: int = 1_024
    save_every: int = 100  # updates; seconds apart, so that there is a checkpoint close to each mark


SAME = Same()


@dataclass(frozen=True)
class Job:
    """What a recipe may depend on."""

    threads: int
    minutes: float
    sizes: dict[str, Any]  # of a `tiny` translator: encoder_layers, decoder_layers, d_model, heads, d_ff


@dataclass(frozen=True)
class Recipe:
    """Commands are lines for bash; the last of `commands` trains, and is ended when the minutes are over."""

    commands: list[str]
    translate: list[str]  # from test.en to output.de, with the checkpoint in place of {checkpoint}
    checkpoints: str  # pattern of the files that training writes and never changes again
    source: str  # Markdown: where the settings come from, and what is different
    files: dict[str, str] = field(default_factory=dict)  # configuration or code that a user has to write
    ends_itself: bool = False  # it knows the minutes, so there is a training for each number of minutes
    environment: str | None = None  # that translates, if it is not the one that trains


Recipes = dict[str, Callable[[Job], Recipe]]


def as_yaml(config: dict[str, Any], indent: str = "") -> str:
    """A line for each setting."""
    lines = ""
    for name, value in config.items():
        nested = isinstance(value, dict)
        lines += (
            f"{indent}{name}:\n{as_yaml(value, indent + '  ')}" if nested else f"{indent}{name}: {json.dumps(value)}\n"
        )
    return lines
