"""jumok plot patches: what a classifier of pictures looked at."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import MODEL, PATH, hardware_options, say
from jumok.cli.writing import PICTURE, write_picture


@click.command(epilog="Example: jumok plot patches -m seer photo.png -o patches.png")
@click.argument("picture", type=PATH, metavar="PICTURE", help="A PNG, JPEG, WebP or BMP file.")
@MODEL
@click.option("--classes", type=click.IntRange(1), default=3, metavar="N", help="Show N classes, the most probable.")
@hardware_options
@PICTURE
def patches(picture: Path, model: Path, classes: int, hardware: dict[str, Any], out: Path) -> None:
    """Draw which patches of a picture speak for a class, and which against it.

    What all patches add makes up the score of the class.
    """
    from jumok.cli.models import other_command_named
    from jumok.engines.loading import load
    from jumok.lens import plots

    with other_command_named(model):
        classifier = load(model, "torch", task="image_classifier", **hardware)
    write_picture(plots.draw_patches(classifier, picture, classes=classes, on_message=say), out)
