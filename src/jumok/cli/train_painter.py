"""jumok train painter."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import PATH, PICTURE_SIZE, reading_flags
from jumok.cli.several_values import SeveralValuesCommand, two_values
from jumok.cli.train_options import TrainOptions, train_options
from jumok.cli.training import run_training


@click.command(
    cls=SeveralValuesCommand,
    several={"--valid": two_values},
    epilog="Example: jumok train painter captions.tsv pictures/ -o run --minutes 30",
)
@click.argument(
    "captions",
    type=PATH,
    metavar="CAPTIONS",
    help="TSV, CSV, XLSX or JSONL file with the name of a picture and its caption in each row.",
)
@click.argument("pictures", type=PATH, metavar="PICTURES", help="Directory of the pictures (PNG, JPEG, WebP, BMP).")
@PICTURE_SIZE
@reading_flags("PICTURE CAPTION")
@train_options
def command(options: TrainOptions, captions: Path, pictures: Path, picture_size: int | None, **reading: Any) -> None:
    """Train a painter on pictures with captions.

    In two stages, which share --minutes: first image tokens are learned, then which of them belong to a caption. Run
    the same command again to continue a training that was stopped. RUN/model is the best model so far: jumok paint
    -m RUN
    """
    run_training("painter", (captions, pictures), options, picture_size=picture_size, **reading)
