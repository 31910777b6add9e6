"""Options that several commands share, so that they have one name and one help text."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

if TYPE_CHECKING:
    from jumok.data.examples import Rejections

DEFAULT_BEAM = 5
_status = ""  # what `show_status` has shown last
ON_ERROR_CHOICES = ("stop", "replace", "skip")
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


def hardware_options(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command `--threads` and `--device`; the function gets those that were given as `hardware`."""

    @wraps(function)
    def with_options(*, threads: int | None, device: str | None, **values: Any) -> None:
        given = {"threads": threads, "device": device}
        function(hardware={name: value for name, value in given.items() if value is not None}, **values)

    threads = click.option(
        "--threads",
        type=click.IntRange(min=1),
        metavar="N",
        help="Use N CPU threads. Default: one for each core that this process may use.",
    )
    device = click.option(
        "--device", metavar="NAME", help="cpu, cuda, cuda:N, mps or xpu; default: a card if there is one."
    )
    return threads(device(with_options))


def _text_encoding(_context: click.Context, _option: click.Parameter, name: str | None) -> str | None:
    """The name of an encoding as the readers spell it."""
    from jumok.data.reading.options import reading_options

    return reading_options(encoding=name).encoding


INPUT_ENCODING = click.option(
    "--encoding",
    metavar="NAME",
    callback=_text_encoding,
    help="Encoding of the input, such as: cp1252, cp949. Default: UTF-8, or what a byte-order mark says.",
)
QUIET = click.option("--quiet", is_flag=True, help="Print warnings and errors only.")
ON_ERROR = click.option(
    "--on-error",
    type=click.Choice(ON_ERROR_CHOICES),
    default="replace",
    help="For a line that is not valid UTF-8: stop; replace the invalid bytes by U+FFFD and warn; or skip the line "
    "(its output is empty) and warn.",
)
BEAM = click.option(
    "--beam",
    type=int,
    metavar="N",
    help=f"Beam size: hypotheses kept at each step; 1 is greedy search.  [default: {DEFAULT_BEAM}]",
)
PICTURE_SIZE = click.option(
    "--picture-size",
    type=int,
    metavar="N",
    help="Scale pictures to N pixels, the longer side, rounded to a multiple of 4, or of the patch that is set.  "
    "[default: at most 64]",
)
TEXTS = click.argument(
    "files", type=PATH, nargs=-1, metavar="[FILE]...", help="Text files, one text per line. Default: standard input."
)
OUT_FILE = click.option("-o", "--out", type=PATH, metavar="OUT", help="Write to this file instead of standard output.")
SOURCE = click.argument(
    "source",
    type=PATH,
    metavar="SRC",
    help="Source texts, one per line; or both sides in one TSV, CSV, XLSX, JSONL or TMX file.",
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
    help="Source and target language, in a file that names its languages, such as: en ko",
)
_SEPARATOR = click.option(
    "--separator", metavar="CHAR", help="Column separator of a CSV file, such as: ;  Default: detected."
)
_SHEET = click.option(
    "--sheet", metavar="NAME|NUMBER", help="Sheet of an .xlsx workbook. Default: the only one that is not empty."
)
_ENCODING = click.option(
    "--encoding", metavar="NAME", help="Encoding of text files, such as: cp1252, utf-16.  Default: detected."
)


def reading_flags(columns: str, **attributes: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options that say how files are read: --columns, --separator, --sheet and --encoding.
    `columns` are the names of the columns in the help; `attributes` are those of click's option."""
    count = len(columns.split())
    which = "Columns" if count > 1 else "Column"
    chosen = click.option(
        "--columns",
        **{"nargs": count, **attributes},
        metavar=columns,
        help=f"{which} of a table, by name or number (from 1).",
    )

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        return chosen(_SEPARATOR(_SHEET(_ENCODING(function))))

    return decorate


NO_REPEAT_NGRAM = click.option(
    "--no-repeat-ngram", default=0, metavar="N", help="Never produce the same N tokens in a row twice; 0: off."
)


def print_json(value: Mapping[str, Any], *, indent: int | None = None, file: TextIO | None = None) -> None:
    """Write an object to a file or standard output, as one line or indented."""
    print(json.dumps(value, ensure_ascii=False, indent=indent), file=file)


def say(text: str) -> None:
    """Print a message to standard error, where it does not mix with the output."""
    if _status:
        show_status("")
    print(text, file=sys.stderr, flush=True)


def say_layouts(read: "Rejections") -> None:
    """Say how the files were read, as far as it was found out."""
    for layout in read.layouts:
        if layout.describe():
            say(layout.describe())


def show_status(text: str) -> None:
    """Show a line on the terminal of standard error until the next status or message takes its place."""
    global _status
    blanks = " " * (len(_status) - len(text))
    print(f"\r{text}{blanks}" if text else f"\r{blanks}\r", end="", file=sys.stderr, flush=True)
    _status = text
