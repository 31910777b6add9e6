"""jumok train classifier."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import PATH, print_json, reading_flags
from jumok.cli.processes import is_follower
from jumok.cli.train_options import TrainOptions, train_options
from jumok.cli.training import run_training
from jumok.display.status import describe_metrics


@click.command(epilog="Example: jumok train classifier reviews.tsv -o run")
@click.argument(
    "data",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="DATA...",
    help="TSV, CSV, XLSX or JSONL files with labels, or a directory that has one subdirectory for each class.",
)
@reading_flags("TEXT LABEL")
@train_options
@click.option(
    "--baseline", is_flag=True, help="Also train TF-IDF with logistic regression, for comparison (needs scikit-learn)."
)
def command(options: TrainOptions, data: tuple[Path, ...], baseline: bool, **reading: Any) -> None:
    """Train a classifier on texts with labels.

    Run the same command again to continue a training that was stopped. RUN/model is the best model so far: jumok
    classify -m RUN
    """
    if baseline:
        from jumok.recipes.baseline import require_scikit_learn

        require_scikit_learn()
    run_training("classifier", data, options, **reading)
    if baseline and not options.print_config and not is_follower():
        from jumok.recipes.baseline import baseline_scores

        scores = baseline_scores(options.out)
        if options.as_json:
            print_json({"event": "baseline", **scores})
        else:
            print(f"For comparison, TF-IDF + logistic regression on the same texts: {describe_metrics(scores)}")
