"""jumok train translator."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import LANGUAGES, SOURCE, TARGET, reading_flags
from jumok.cli.several_values import SeveralValuesCommand, files_with_pairs
from jumok.cli.train_options import TrainOptions, train_options
from jumok.cli.training import run_training


@click.command(
    cls=SeveralValuesCommand,
    several={"--valid": files_with_pairs},
    epilog="Example: jumok train translator a.en a.ko -o run --minutes 20",
)
@SOURCE
@TARGET
@LANGUAGES
@reading_flags("SRC TGT")
@train_options
def command(options: TrainOptions, source: Path, target: Path | None, **reading: Any) -> None:
    """Train a translator on pairs of sentences.

    Run the same command again to continue a training that was stopped. Ctrl-C finishes the current step and saves; a
    second Ctrl-C exits at once. RUN/model is the best model so far and can be used at any time: jumok translate -m RUN
    """
    files = [source] if target is None else [source, target]
    run_training("translator", files, options, **reading)
