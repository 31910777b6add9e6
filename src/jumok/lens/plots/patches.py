"""A plot of a picture and of the patches that speak for its most probable classes, or against them."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from jumok.errors import ConfigError
from jumok.lens.image_classifier import trace
from jumok.lens.plots.fonts import Lettering, OnMessage
from jumok.lens.plots.grid import new_figure
from jumok.pictures import PictureSource

CLASSES = 3  # shown, the most probable


def draw_patches(
    classifier: Any, picture: PictureSource, *, classes: int = CLASSES, on_message: OnMessage | None = None
) -> Figure:
    """The picture, and for each of the most probable classes what every patch adds to its score, less the mean of all
    classes: red speaks for the class, blue against it."""
    if classifier.task != "image_classifier":
        raise ConfigError(f"A {classifier.task} has no patches: give a classifier of pictures.")
    found = trace(classifier, picture)
    config, shares = found.facts["config"], found["class_probabilities"].values
    best = np.argsort(-shares)[:classes]
    parts = found["patch_scores"].values
    parts = (parts - parts.mean(1, keepdims=True))[:, best]
    pixels, patch = found["picture"].values, config["patch"]
    rows, columns = -(-config["height"] // patch), -(-config["width"] // patch)
    lettering = Lettering(on_message)
    names = lettering.labels([classifier.classes[number] for number in best], "classes")
    figure = new_figure(2.2 * (1 + len(best)), 2.6)
    panels = figure.subplots(1, 1 + len(best), squeeze=False)[0]
    for axes, shown in zip(
        panels, [pixels, *[pixels.mean(2)] * len(best)], strict=True
    ):  # colours are those of the parts
        axes.imshow(shown, cmap="gray", vmin=0, vmax=255)
        axes.set(xticks=[], yticks=[])
    panels[0].set_title("picture")
    most = float(np.abs(parts).max()) or 1.0
    for axes, name, number, part in zip(panels[1:], names, best, parts.T, strict=True):
        area = (-0.5, columns * patch - 0.5, rows * patch - 0.5, -0.5)
        image = axes.imshow(part.reshape(rows, columns), cmap="RdBu_r", vmin=-most, vmax=most, alpha=0.6, extent=area)
        axes.set(xlim=(-0.5, pixels.shape[1] - 0.5), ylim=(pixels.shape[0] - 0.5, -0.5))
        axes.set_title(f"{name} {shares[number]:.0%}", parse_math=False)
    figure.colorbar(image, ax=panels, label="adds to the score")
    return lettering.apply(figure)
