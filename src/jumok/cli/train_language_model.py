"""jumok train lm."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import PATH, reading_flags
from jumok.cli.several_values import SeveralValuesCommand, any_files
from jumok.cli.train_options import TrainOptions, train_options
from jumok.cli.training import run_training


@click.command(
    cls=SeveralValuesCommand, several={"--valid": any_files}, epilog="Example: jumok train lm text.txt -o run"
)
@click.argument(
    "texts",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="TEXT...",
    help="Text files; a blank line ends a passage. Or TSV, CSV, XLSX or JSONL files with a passage in each row.",
)
@reading_flags("TEXT")
@train_options
def command(options: TrainOptions, texts: tuple[Path, ...], **reading: Any) -> None:
    """Train a language model on text.

    Run the same command again to continue a training that was stopped. RUN/model is the best model so far: jumok
    generate -m RUN
    """
    run_training("language_model", texts, options, **reading)
