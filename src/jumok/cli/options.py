"""Options that several commands share, so that they have one name and one help text."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

import click

DEFAULT_BEAM = 5
PATH = click.Path(path_type=Path)

MODEL = click.option(
    "-m",
    "--model",
    type=PATH,
    required=True,
    metavar="MODEL",
    help="A model directory, or the run directory of a training.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Write JSON instead of text.")
ENGINE = click.option(
    "--engine",
    default="auto",
    metavar="auto|torch|ctranslate2",
    help="Inference engine; auto: CTranslate2 if the model is exported, else PyTorch.",
)
THREADS = click.option(
    "--threads",
    type=click.IntRange(min=1),
    metavar="N",
    help="Use N CPU threads. Default: one for each core that this process may use.",
)
BEAM = click.option(
    "--beam",
    type=int,
    metavar="N",
    help=f"Beam size: hypotheses kept at each step; 1 is greedy search.  [default: {DEFAULT_BEAM}]",
)
TEXTS = click.argument(
    "files", type=PATH, nargs=-1, metavar="[FILE]...", help="Text files, one text per line. Default: standard input."
)
OUT_FILE = click.option("-o", "--out", type=PATH, metavar="OUT", help="Write to this file instead of standard output.")
SOURCE = click.argument(
    "source",
    type=PATH,
    metavar="SRC",
    help="Source texts, one per line; or both sides in one TSV, CSV, JSONL or TMX file.",
)
TARGET = click.argument(
    "target",
    type=PATH,
    required=False,
    metavar="[TGT]",
    help="Translations: line n is the translation of line n of SRC.",
)
LANGUAGES = click.option(
    "--languages",
    nargs=2,
    metavar="SRC TGT",
    help="The two languages to use from a file that names its languages, such as: en ko",
)
NO_REPEAT_NGRAM = click.option(
    "--no-repeat-ngram", default=0, metavar="N", help="Never produce the same N tokens in a row twice; 0: off."
)


def print_json(value: Mapping[str, Any], *, indent: int | None = None, file: TextIO | None = None) -> None:
    """Write an object to a file or standard output, as one line or indented."""
    print(json.dumps(value, ensure_ascii=False, indent=indent), file=file)


def say(text: str) -> None:
    """Print a message to standard error, where it does not mix with the output."""
    print(text, file=sys.stderr, flush=True)
