"""Options that several commands share, so that they mean and say the same everywhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

MODEL_HELP = "A model directory, or the run directory of a training."
DEFAULT_BEAM = 5

Model = Annotated[Path, typer.Option("-m", "--model", metavar="MODEL", help=MODEL_HELP)]
Json = Annotated[bool, typer.Option("--json", help="Write JSON, for programs to read.")]
Engine = Annotated[str, typer.Option(metavar="auto|torch|ctranslate2", help="What runs the model.")]
Beam = Annotated[
    int | None,
    typer.Option("--beam", metavar="N", help=f"Hypotheses kept side by side; 1 is greedy search. [{DEFAULT_BEAM}]"),
]
Texts = Annotated[
    list[Path] | None,
    typer.Argument(metavar="FILE", help="Texts, one a line; standard input if none.", show_default=False),
]
OutFile = Annotated[
    Path | None, typer.Option("-o", "--out", metavar="OUT", help="Write here instead of standard output.")
]
Valid = Annotated[
    tuple[Path, Path] | None,
    typer.Option("--valid", metavar="SRC [TGT]", help="One file or two to measure on; they are not learned from."),
]
Languages = Annotated[
    tuple[str, str] | None,
    typer.Option("--languages", metavar="SRC TGT", help="Which two of a file that names several, such as: en ko"),
]


class ValidFiles(TyperCommand):
    """A command whose --valid or --probe may also be followed by one file that holds both sides."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Writes a single file twice, because an option takes a fixed number of values; see `valid_files`."""
        for option in {"--valid", "--probe"}.intersection(args):
            first = args.index(option) + 1
            if len(args[first:]) == 1 or (args[first + 1 : first + 2] and args[first + 1].startswith("-")):
                args.insert(first, args[first])
        return super().parse_args(ctx, args)


def valid_files(valid: tuple[Path, Path] | None) -> list[Path] | None:
    """The one or two files after --valid or --probe."""
    return valid and list(dict.fromkeys(valid))


Source = Annotated[
    Path, typer.Argument(metavar="SRC", help="The source's text; or both sides: TSV, CSV, JSONL or TMX.")
]
Target = Annotated[
    Path | None, typer.Argument(metavar="TGT", help="The translations, line by line.", show_default=False)
]


def print_json(value: Mapping[str, Any], *, indent: int | None = None) -> None:
    """Write an object to standard output, as one line or indented."""
    print(json.dumps(value, ensure_ascii=False, indent=indent))


def say(text: str) -> None:
    """Tell a person something that is not the output itself."""
    print(text, file=sys.stderr, flush=True)
