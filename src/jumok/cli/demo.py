"""jumok demo: a tour of a few minutes that needs no data and writes everything to one directory."""

from pathlib import Path

import click

from jumok.cli.options import PATH
from jumok.tasks import resolve

# Which demo, its directory, and how many minutes it trains.
_DEMOS = {
    "translator": ("jumok.cli.demo_translator:run_demo", "demo", 2.8),
    "classifier": ("jumok.cli.demo_classifier:run_demo", "demo-classifier", 1.0),
    "painter": ("jumok.cli.demo_painter:run_demo", "demo-painter", 8.0),
    "lm": ("jumok.cli.demo_language_model:run_demo", "demo-lm", 1.0),
    "vision": ("jumok.cli.demo_vision:run_demo", "demo-vision", 1.6),
    "before-attention": ("jumok.cli.demo_before_attention:run_demo", "demo-before-attention", 6.0),
}


@click.command(epilog="Example: jumok demo")
@click.argument(
    "what",
    type=click.Choice(list(_DEMOS)),
    default="translator",
    metavar=f"[{'|'.join(_DEMOS)}]",
    help="The kind of model.",
)
@click.option(
    "--directory",
    type=PATH,
    metavar="DIR",
    help="Directory for the data, the run and pictures.  [default: demo, or demo- and the kind]",
)
@click.option(
    "--minutes",
    type=float,
    metavar="N",
    help=f"Train for N minutes.  [default: {', '.join(f'{minutes:g}' for _, _, minutes in _DEMOS.values())}]",
)
@click.option("--fresh", is_flag=True, help="Delete what was trained in DIR and start again.")
@click.option(
    "--continue-with-changes", is_flag=True, help="Continue the training in DIR even if settings have changed."
)
def command(what: str, directory: Path | None, minutes: float | None, fresh: bool, continue_with_changes: bool) -> None:
    """Train a small model on built-in data and show what it learned.

    A translator, from English to Korean, is tested on sentences with combinations of words that do not occur in the
    training data. A classifier learns from reviews, a language model (lm) from Korean sentences, a classifier of
    pictures (vision) from drawn shapes, a painter from drawn scenes with captions. `before-attention` trains three
    translators for equal times: recurrent networks without and with attention, and a Transformer.
    """
    import jumok.recipes  # noqa: F401 - fails at once if a package for training is missing
    from jumok.cli.demo_training import DemoTraining
    from jumok.training.settings import Settings

    Settings.from_dict({"stop": {"minutes": minutes}})  # a wrong length fails before anything is written
    reference, default_directory, default_minutes = _DEMOS[what]
    minutes = default_minutes if minutes is None else minutes
    resolve(reference)(DemoTraining(directory or Path(default_directory), minutes, fresh, continue_with_changes))
