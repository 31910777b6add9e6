"""jumok evaluate: how good a model is on test data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import BEAM, JSON, LANGUAGES, MODEL, PATH, SOURCE, print_json
from jumok.errors import ConfigError
from jumok.tasks import TASKS, Task, resolve


@click.command(epilog="Example: jumok evaluate -m run test.en test.ko")
@SOURCE
@click.argument("reference", type=PATH, required=False, metavar="[REF]", help="Reference translations, line by line.")
@MODEL
@LANGUAGES
@BEAM
@click.option(
    "--tokenize", metavar="none|13a|char|…", help="sacreBLEU's tokenization. Default: chosen by the references' script."
)
@click.option("--output", type=PATH, metavar="FILE", help="Write the translations to this file.")
@click.option("--plot", type=PATH, metavar="FILE.png", help="Draw the confusion matrix of a classifier.")
@JSON
def command(
    model: Path,
    source: Path,
    reference: Path | None,
    output: Path | None,
    plot: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Evaluate a model on test data.

    Translator: BLEU, chrF, exact matches and speed; compare scores only if their signatures are equal. Classifier (SRC
    is a file with labels): accuracy, macro-F1, calibration and the confusion matrix. Language model (SRC is a text):
    perplexity per token and bits per byte.
    """
    from jumok.cli.writing import require_file, require_picture
    from jumok.engines.loading import load

    if options["tokenize"] is not None:
        from jumok.metrics.translation import corpus_scores

        corpus_scores(["x"], ["x"], options["tokenize"])  # a wrong option fails now, not after an hour
    require_file(output)
    require_picture(plot)
    loaded = load(model)
    task = next(task for task in TASKS.values() if task.facade.split(":")[0] == type(loaded).__module__)
    flags = {
        "output": ("on_outputs", _written_to(output)),
        "plot": ("on_confusion", _drawn_to(plot)),
        **{name: (name, value) for name, value in options.items()},
    }
    evaluate = resolve(task.evaluation)
    arguments = _understood(task, evaluate, {flag: given for flag, given in flags.items() if given[1] is not None})
    evaluation = evaluate(loaded, [source] if reference is None else [source, reference], **arguments)
    if as_json:
        print_json(evaluation.values)
    else:
        print("\n".join([*evaluation.lines, *([] if plot is None else ["", f"plotted → {plot}"])]))


def _understood(task: Task, evaluate: Callable[..., Any], flags: dict[str, tuple[str, Any]]) -> dict[str, Any]:
    """Arguments by name, from arguments by flag; a flag that this task's evaluation has no argument for is an error."""
    known = inspect.signature(evaluate).parameters
    for flag, (name, _) in flags.items():
        if name not in known:
            raise ConfigError(f"--{flag} has no effect on the evaluation of a {task.title}. Leave it out.")
    return dict(flags.values())


def _written_to(path: Path | None) -> Callable[[Sequence[str]], None] | None:
    """A function that writes outputs to a file, a line each."""
    from jumok.cli.writing import output_to

    def write(outputs: Sequence[str]) -> None:
        with output_to(path) as file:
            file.writelines(text.replace("\n", " ") + "\n" for text in outputs)

    return None if path is None else write


def _drawn_to(path: Path | None) -> Callable[..., None] | None:
    """A function that draws a confusion matrix to a picture file."""
    if path is None:
        return None
    from jumok.cli.writing import explained

    def draw(table: Any, classes: Sequence[str]) -> None:
        from jumok.cli.picture import draw_confusion

        with explained(path):
            draw_confusion(table, classes, path)

    return draw
