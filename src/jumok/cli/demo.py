"""jumok demo: a tour of a few minutes that needs no data and writes everything to one directory."""

from pathlib import Path

import click

from jumok.cli.options import PATH
from jumok.tasks import DEMOS, resolve


def _list_of_demos() -> str:
    """The demos for the help text, a line each, which click must not wrap."""
    return "\b\n" + "\n".join(f"{demo.name}: {demo.what}" for demo in DEMOS.values())


@click.command(
    help=f"Train a small model on built-in data and show what it learned.\n\n{_list_of_demos()}",
    epilog="Example: jumok demo",
)
@click.argument(
    "what",
    type=click.Choice(list(DEMOS)),
    default="translator",
    metavar=f"[{'|'.join(DEMOS)}]",
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
    help=f"Train for N minutes.  [default: {', '.join(f'{demo.minutes:g}' for demo in DEMOS.values())}]",
)
@click.option("--fresh", is_flag=True, help="Delete what was trained in DIR and start again.")
@click.option(
    "--continue-with-changes", is_flag=True, help="Continue the training in DIR even if settings have changed."
)
@click.option("--device", metavar="NAME", default="auto", help="cpu, cuda, cuda:N, mps or xpu; auto: a card if any.")
@click.option("--precision", metavar="NAME", default="auto", help="float32, bfloat16 or float16, for the training.")
def command(
    what: str,
    directory: Path | None,
    minutes: float | None,
    fresh: bool,
    continue_with_changes: bool,
    device: str,
    precision: str,
) -> None:
    """Train a small model on built-in data and show what it learned."""
    import jumok.recipes  # noqa: F401 - fails at once if a package for training is missing
    from jumok.cli.demo_training import DemoTraining
    from jumok.recipes.planning import choose_hardware
    from jumok.training.settings import Settings

    # A wrong length, device or precision fails before anything is written.
    choose_hardware(Settings.from_dict({"stop": {"minutes": minutes}, "device": device, "precision": precision}))
    demo = DEMOS[what]
    minutes = demo.minutes if minutes is None else minutes
    directory = directory or Path("demo" if what == "translator" else f"demo-{what}")
    resolve(demo.run)(DemoTraining(directory, minutes, fresh, continue_with_changes, device, precision))
