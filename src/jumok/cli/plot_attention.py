"""jumok plot attention | beta | alignment: what a model does with a text."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import MODEL, hardware_options, say
from jumok.cli.writing import PICTURE, write_picture
from jumok.errors import ConfigError, InputError

_TEXT = click.argument("text", metavar="TEXT", help="The text that the model is given.")
_LAYER = click.option("--layer", type=int, metavar="N", help="Layer, counted from 0.")
_HEAD = click.option("--head", type=int, metavar="N", help="Head, counted from 0.")


def _traced(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of what is traced and which attention of it is drawn."""
    options = (
        click.option(
            "--attention",
            type=click.Choice(("encoder-self", "decoder-self", "cross")),
            help="Which attention.  [default: cross for a translator]",
        ),
        click.option("--target", metavar="TEXT", help="Translation to force, instead of the model's own."),
        click.option("--sentence", type=int, metavar="N", help="Sentence of a TEXT of several, counted from 0."),
        click.option("--window", type=int, metavar="N", help="Part of a long TEXT of a classifier, counted from 0."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@click.command(epilog='Example: jumok plot attention -m run "I am a student." --layer 1 -o attention.png')
@_TEXT
@MODEL
@_LAYER
@_HEAD
@_traced
@hardware_options
@PICTURE
def attention(
    text: str,
    model: Path,
    layer: int | None,
    head: int | None,
    attention: str | None,
    window: int | None,
    hardware: dict[str, Any],
    out: Path,
    **options: Any,
) -> None:
    """Draw attention weights.

    All layers and heads, or those of --layer and --head. Rows are queries, columns keys; masked cells are hatched.
    """
    from jumok.lens import plots

    found = _trace(model, text, hardware, **options)
    chosen = {"layer": layer, "head": head, "window": window}
    write_picture(plots.draw_attention(found, attention, **chosen, on_message=say), out)


@click.command(
    epilog='Example: jumok plot beta -m run "It was too tired." --attention encoder-self --query was -o beta.png'
)
@_TEXT
@MODEL
@click.option("--query", required=True, metavar="TOKEN|N", help="The query: a token or its position, from 0.")
@_LAYER
@_HEAD
@_traced
@hardware_options
@PICTURE
def beta(
    text: str,
    model: Path,
    query: str,
    layer: int | None,
    head: int | None,
    attention: str | None,
    window: int | None,
    hardware: dict[str, Any],
    out: Path,
    **options: Any,
) -> None:
    """Draw the attention of one query from soft to hard.

    softmax(β · q kᵀ) for several β: at 0 all keys count alike, at ∞ only the best one. The model's β is 1/√d_k.
    """
    from jumok.lens import plots

    found = _trace(model, text, hardware, **options)
    chosen = {"layer": layer or 0, "head": head or 0, "window": window}
    write_picture(plots.draw_beta(found, query, attention, **chosen, on_message=say), out)


@click.command(epilog='Example: jumok plot alignment -m run "I am a student." -o alignment.png')
@_TEXT
@MODEL
@hardware_options
@PICTURE
def alignment(text: str, model: Path, hardware: dict[str, Any], out: Path) -> None:
    """Draw the word alignment of a translation.

    Rows are words of the translation, columns words of the source: what `jumok translate --alignment` writes.
    """
    from jumok.cli.models import other_command_named
    from jumok.engines.loading import load
    from jumok.engines.options import DecodingOptions
    from jumok.lens import plots

    with other_command_named(model):
        translator = load(model, task="translator", **hardware)
    [result] = translator.translate_batch([text], DecodingOptions(alignment=True))
    if result.alignment is None:
        raise InputError(f'"{text}" has no words: there is nothing to align. Give a text with at least one.')
    write_picture(plots.draw_alignment(result.alignment, text, result.text, on_message=say), out)


def _trace(path: Path, text: str, hardware: dict[str, Any], **options: Any) -> Any:
    """The trace of a text; options that were not given are left out, because tasks have different ones."""
    from jumok.engines.loading import load
    from jumok.lens import trace
    from jumok.tasks import task_named

    model = load(path, "torch", **hardware)
    given = {name: value for name, value in options.items() if value is not None}
    if given and model.task != "translator":
        flags = " and ".join(f"--{name}" for name in given)
        raise ConfigError(f"{flags}: only for a translator; this is a {task_named(model.task).title}. Leave it out.")
    return trace(model, text, **given)
