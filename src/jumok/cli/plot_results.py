"""jumok plot training | confusion | patches: how a training went, what a classifier confuses, and where it looks."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import MODEL, PATH, hardware_options, reading_flags, say
from jumok.cli.writing import PICTURE, write_picture


@click.command(epilog="Example: jumok plot training run another-run --along minutes -o training.svg")
@click.argument("runs", type=PATH, nargs=-1, required=True, metavar="RUN...", help="Run directories.")
@click.option(
    "--along", type=click.Choice(("steps", "tokens", "minutes")), default="steps", help="The horizontal axis."
)
@PICTURE
def training(runs: tuple[Path, ...], along: str, out: Path) -> None:
    """Draw the curves of one or several trainings.

    Loss, learning rate, and the scores of the validations.
    """
    from jumok.lens import plots

    write_picture(plots.draw_training(runs, along=along, on_message=say), out)


@click.command(epilog="Example: jumok plot confusion -m run test.tsv -o confusion.png")
@click.argument("data", type=PATH, metavar="DATA", help="Labelled texts or pictures, as for training.")
@MODEL
@reading_flags("TEXT LABEL")
@hardware_options
@PICTURE
def confusion(data: Path, model: Path, hardware: dict[str, Any], out: Path, **reading: Any) -> None:
    """Draw the confusion matrix of a classifier.

    Rows are true classes, columns predictions. Prints what `jumok evaluate` measures.
    """
    from jumok.cli.models import other_command_named
    from jumok.engines.loading import load_classifier
    from jumok.lens import plots
    from jumok.tasks import resolve, task_named

    with other_command_named(model):
        classifier = load_classifier(model, **hardware)
    figures: list[Any] = []
    evaluation = resolve(task_named(classifier.task).evaluation)(
        classifier,
        [data],
        **{name: value for name, value in reading.items() if value is not None},
        on_confusion=lambda *found: figures.append(plots.draw_confusion(*found, on_message=say)),
    )
    print("\n".join(evaluation.lines))
    write_picture(figures[0], out)
