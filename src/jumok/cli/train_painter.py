"""jumok train painter."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import PATH, reading_flags
from jumok.cli.train_options import TrainOptions, train_options
from jumok.cli.training import run_training


class CaptionsCommand(click.Command):
    """A command whose --valid takes two values, as the training does: captions and the directory of their pictures."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Repeat the option before its second value, unless the user has repeated it."""
        if args.count("--valid") == 1 and not any(word.startswith("--valid=") for word in args):
            second = args.index("--valid") + 2
            if second < len(args) and not args[second].startswith("-"):
                args = [*args[:second], "--valid", *args[second:]]
        return super().parse_args(ctx, args)


@click.command(cls=CaptionsCommand, epilog="Example: jumok train painter captions.tsv pictures/ -o run --minutes 30")
@click.argument(
    "captions",
    type=PATH,
    metavar="CAPTIONS",
    help="TSV, CSV, XLSX or JSONL file with the name of a picture and its caption in each row.",
)
@click.argument("pictures", type=PATH, metavar="PICTURES", help="Directory of the pictures (PNG, JPEG, WebP, BMP).")
@click.option("--side", type=click.IntRange(min=8, max=256), metavar="N", help="Scale pictures to N pixels.")
@reading_flags("PICTURE CAPTION")
@train_options
def command(options: TrainOptions, captions: Path, pictures: Path, side: int | None, **reading: Any) -> None:
    """Train a painter on pictures with captions.

    In two stages, which share --minutes: first image tokens are learned, then which of them belong to a caption. Run
    the same command again to continue a training that was stopped. RUN/model is the best model so far: jumok paint
    -m RUN
    """
    run_training("painter", (captions, pictures), options, side=side, **reading)
