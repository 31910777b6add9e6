"""jumok evaluate: how good a model is on test data."""

import inspect
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import BEAM, JSON, LANGUAGES, MODEL, PATH, SOURCE, hardware_options, print_json, reading_flags
from jumok.cli.several_values import SeveralValuesCommand, columns_of_a_task
from jumok.errors import ConfigError
from jumok.tasks import resolve, task_named


@click.command(
    cls=SeveralValuesCommand,
    several={"--columns": columns_of_a_task},
    epilog="Example: jumok evaluate -m run test.en test.ko",
)
@SOURCE
@click.argument(
    "reference",
    type=PATH,
    required=False,
    metavar="[REF]",
    help="Reference translations: line n is the translation of line n of SRC.",
)
@MODEL
@LANGUAGES
@reading_flags("A B", nargs=1, multiple=True)
@BEAM
@click.option(
    "--tokenize",
    metavar="none|13a|char|…",
    help="sacreBLEU's tokenization. Default: chosen by the script of the references.",
)
@click.option("--output", type=PATH, metavar="FILE", help="Write the translations to this file.")
@click.option("--plot", type=PATH, metavar="FILE.png", help="Draw the confusion matrix of a classifier.")
@hardware_options
@JSON
def command(
    model: Path,
    source: Path,
    reference: Path | None,
    output: Path | None,
    plot: Path | None,
    hardware: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a model on test data.

    Translator: BLEU, chrF, exact matches and speed; compare scores only if their signatures are equal. Classifier (SRC
    is a file with labels): accuracy, macro-F1, calibration and the confusion matrix. Language model (SRC is a text):
    perplexity per token and bits per byte.
    """
    from jumok.cli.progress import shown_progress
    from jumok.cli.writing import require_file, require_picture
    from jumok.engines.loading import load

    if options["tokenize"] is not None:
        from jumok.metrics.translation import corpus_scores

        corpus_scores(["x"], ["x"], options["tokenize"])  # a wrong option fails now, not after an hour
    require_file(output)
    require_picture(plot)
    loaded = load(model, **hardware)
    task = task_named(loaded.task)
    evaluate = resolve(task.evaluation)
    given = {name: (name, value) for name, value in options.items() if value not in (None, ())}
    if output is not None:
        given["output"] = ("on_outputs", partial(_write, output))
    if plot is not None:
        given["plot"] = ("on_confusion", partial(_draw, plot))
    accepted = inspect.signature(evaluate).parameters
    for flag, (argument, _) in given.items():
        if argument not in accepted:
            raise ConfigError(f"--{flag} has no effect on the evaluation of a {task.title}. Leave it out.")
    with shown_progress() as on_progress:
        if on_progress and "on_progress" in accepted:
            given["progress"] = ("on_progress", on_progress)
        evaluation = evaluate(loaded, [source] if reference is None else [source, reference], **dict(given.values()))
    if as_json:
        print_json(evaluation.values)
    else:
        print("\n".join([*evaluation.lines, *([] if plot is None else ["", f"plotted → {plot}"])]))


def _write(path: Path, outputs: Sequence[str]) -> None:
    from jumok.cli.writing import output_to

    with output_to(path) as file:
        file.writelines(text.replace("\n", " ") + "\n" for text in outputs)  # a line for each input


def _draw(path: Path, table: Any, classes: Sequence[str]) -> None:
    from jumok.cli.options import say
    from jumok.lens.plots import draw_confusion, save_figure

    save_figure(draw_confusion(table, classes, on_message=say), path)
