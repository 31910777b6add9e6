"""jumok plot positions | masks | schedule: the paper's formulas."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import PATH
from jumok.cli.writing import PICTURE, write_picture
from jumok.errors import ConfigError

LENGTH, D_MODEL = 50, 128


@click.command(epilog="Example: jumok plot positions --show products -o positions.png")
@click.option("-m", "--model", type=PATH, metavar="MODEL", help="Draw the positions of this model, also learned ones.")
@click.option(
    "--show",
    type=click.Choice(("map", "waves", "products")),
    default="map",
    help="A heat map; single dimensions as waves; or the dot product of every two positions.",
)
@click.option("--length", type=click.IntRange(min=1), metavar="N", help=f"Number of positions.  [default: {LENGTH}]")
@click.option("--d-model", type=click.IntRange(min=1), metavar="N", help=f"Number of dimensions.  [default: {D_MODEL}]")
@click.option(
    "--dimension", "dimensions", type=int, multiple=True, metavar="N", help="Of the waves; repeatable.  [default: 4]"
)
@PICTURE
def positions(
    model: Path | None, show: str, length: int | None, d_model: int | None, dimensions: tuple[int, ...], out: Path
) -> None:
    """Draw positional encodings.

    Without a model these are the paper's sinusoids: sine in even dimensions, cosine in odd ones.
    """
    from jumok.lens import plots

    if dimensions and show != "waves":
        raise ConfigError("--dimension is for --show waves. Leave it out.")
    sizes: dict[str, Any] = {"length": length or LENGTH, "d_model": d_model or D_MODEL}
    table = None
    if model is not None:
        if d_model is not None:
            raise ConfigError("--d-model has no effect on a model, which has its own. Leave it out.")
        table = _positions_of(model, length)
    if show == "waves":
        write_picture(plots.draw_waves(table, dimensions or (4,), **sizes), out)
    else:
        draw = plots.draw_positions if show == "map" else plots.draw_products
        write_picture(draw(table, **sizes), out)


def _positions_of(path: Path, length: int | None) -> Any:
    """The positions [T, D] that a model adds to its tokens; learned ones may be fewer than the usual number."""
    import torch

    from jumok.engines.loading import load
    from jumok.errors import ConfigError
    from jumok.lens.tracing import torch_engine
    from jumok.model.positions import NoPositions

    network = torch_engine(load(path, "torch", device="cpu")).model  # a table: nothing to compute
    if isinstance(network.embed.positions, NoPositions):
        raise ConfigError(f"{path}: this model has no positional encoding; it reads one token after another.")
    with torch.inference_mode():
        most = network.config.longest or LENGTH
        nothing = torch.zeros(1, length or min(LENGTH, most), network.config.d_model)
        return network.embed.positions(nothing)[0].float().cpu().numpy()


@click.command(epilog='Example: jumok plot masks "I am a student" --padding 3 -o masks.svg')
@click.argument("text", required=False, help="A sentence; its words are the tokens.")
@click.option("--padding", type=click.IntRange(min=0), default=2, metavar="N", help="Padding behind the sentence.")
@PICTURE
def masks(text: str | None, padding: int, out: Path) -> None:
    """Draw what attention may see.

    Padding and later tokens are masked: encoder self-attention and cross-attention mask padding, decoder
    self-attention masks both. Rows are queries, columns keys; masked cells are hatched.
    """
    from jumok.cli.options import say
    from jumok.lens import plots

    tokens = {} if text is None else {"tokens": ("<s>", *text.split())}
    write_picture(plots.draw_masks(**tokens, padding=padding, on_message=say), out)


@click.command(epilog="Example: jumok plot schedule --d-model 512 --warmup 4000 --warmup 8000 -o schedule.pdf")
@click.option(
    "--d-model",
    "d_models",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="N",
    help="Width of the model; repeatable.  [default: 256, 512 and 1024]",
)
@click.option(
    "--warmup",
    "warmups",
    type=click.IntRange(min=1),
    multiple=True,
    metavar="STEPS",
    help="Steps of the warm-up; repeatable.  [default: 4000]",
)
@click.option("--steps", type=click.IntRange(min=1), default=20_000, metavar="N", help="Length of the training.")
@PICTURE
def schedule(d_models: tuple[int, ...], warmups: tuple[int, ...], steps: int, out: Path) -> None:
    """Draw the paper's learning rate.

    It grows during the warm-up and then decays with the square root of the step.
    """
    from jumok.lens import plots

    given: dict[str, Any] = {"warmups": warmups} if warmups else {}
    write_picture(plots.draw_schedule(d_models or (256, 512, 1024), **given, steps=steps), out)
