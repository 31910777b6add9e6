"""Jumok: two files and the minutes."""

from __future__ import annotations

from recipes import BEAM, Job, Recipe, Recipes


def documented(job: Job) -> Recipe:
    return Recipe(
        commands=[
            f"jumok train translator train.en train.de --valid valid.en valid.de -o run --minutes {job.minutes:g}"
        ],
        translate=[f"jumok translate -m run --beam {BEAM} < test.en > output.de"],
        checkpoints="run/model/MANIFEST.json",
        source="README.md; nothing is set but the minutes.",
        ends_itself=True,
    )


RECIPES: Recipes = {"documented": documented}
