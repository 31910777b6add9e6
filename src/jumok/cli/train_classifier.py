"""jumok train classifier."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import PATH, PICTURE_SIZE, print_json, reading_flags
from jumok.cli.processes import is_follower
from jumok.cli.several_values import SeveralValuesCommand, labelled_files
from jumok.cli.train_options import TrainOptions, train_options
from jumok.cli.training import run_training
from jumok.display.status import describe_metrics
from jumok.errors import ConfigError


@click.command(
    cls=SeveralValuesCommand,
    several={"--valid": labelled_files},
    epilog="Example: jumok train classifier reviews.tsv -o run",
)
@click.argument(
    "data",
    type=PATH,
    nargs=-1,
    required=True,
    metavar="DATA...",
    help="TSV, CSV, XLSX or JSONL files of texts, or of paths of pictures, with labels; a directory that has one "
    "subdirectory for each class; or two IDX files.",
)
@reading_flags("TEXT LABEL")
@PICTURE_SIZE
@train_options
@click.option(
    "--baseline", is_flag=True, help="Also train TF-IDF with logistic regression, for comparison (needs scikit-learn)."
)
def command(
    options: TrainOptions, data: tuple[Path, ...], baseline: bool, picture_size: int | None, **reading: Any
) -> None:
    """Train a classifier on texts or pictures with labels.

    Run the same command again to continue a training that was stopped. RUN/model is the best model so far: jumok
    classify -m RUN
    """
    from jumok.recipes.labelled import classifier_for

    task, own = classifier_for(data, options.valid, reading, picture_size=picture_size)
    if baseline:
        from jumok.recipes.baseline import require_scikit_learn

        if task.inputs != "texts":
            raise ConfigError("`baseline=True` compares classifiers of texts. Leave it out.")
        require_scikit_learn()
    run_training(task.name, data, options, **reading, **own)
    if baseline and not options.print_config and not is_follower():
        from jumok.recipes.baseline import baseline_scores

        scores = baseline_scores(options.out)
        if options.as_json:
            print_json({"event": "baseline", **scores})
        else:
            print(f"For comparison, TF-IDF + logistic regression on the same texts: {describe_metrics(scores)}")
