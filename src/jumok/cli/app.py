"""All commands, and what happens when one fails.

Exit codes: 0 fine, 1 a bug of ours, 2 something in the input or the options, 3 findings of `check`, 4 a training that
cannot go on, 128 + n when signal n ended it.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from jumok import __version__
from jumok.cli.check import check
from jumok.cli.classify import classify
from jumok.cli.demo import demo
from jumok.cli.embed import embed
from jumok.cli.evaluate import evaluate
from jumok.cli.export import export
from jumok.cli.generate import generate
from jumok.cli.info import info
from jumok.cli.options import ValidFiles, say
from jumok.cli.score import score
from jumok.cli.train import train_classifier_command, train_lm_command, train_translator_command
from jumok.cli.translate import translate
from jumok.cli.writing import standard_output
from jumok.errors import JumokError, MissingExtraError, WriteError

# Plain help: drawing it with rich takes longer than everything else together.
_PLAIN = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False}
_EXTRA_PACKAGES = ("torch", "jaxtyping", "sacrebleu", "matplotlib")

app = typer.Typer(no_args_is_help=True, **_PLAIN)  # type: ignore[arg-type]
train = typer.Typer(no_args_is_help=True, **_PLAIN)  # type: ignore[arg-type]


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"jumok {__version__}")
        raise typer.Exit


@app.callback()
def _jumok(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Two text files in, a translator out. Begin with: jumok demo"""


@train.callback()
def _train() -> None:
    """Train a model."""


app.command("demo", epilog="Example: jumok demo")(demo)
app.add_typer(train, name="train")
train.command("translator", cls=ValidFiles, epilog="Example: jumok train translator a.en a.ko -o run --minutes 20")(
    train_translator_command
)
train.command("classifier", epilog="Example: jumok train classifier reviews.tsv -o run")(train_classifier_command)
train.command("lm", epilog="Example: jumok train lm text.txt -o run")(train_lm_command)
app.command("translate", epilog='Example: echo "Hello!" | jumok translate -m run')(translate)
app.command("classify", epilog='Example: echo "What a film!" | jumok classify -m run --explain 3')(classify)
app.command("generate", epilog='Example: jumok generate -m run --prompt "Once upon a time"')(generate)
app.command("embed", epilog="Example: jumok embed -m run sentences.txt -o vectors.npy")(embed)
app.command("score", epilog="Example: jumok score -m run a.en a.ko > scores.tsv")(score)
app.command("evaluate", epilog="Example: jumok evaluate -m run test.en test.ko")(evaluate)
app.command("check", cls=ValidFiles, epilog="Example: jumok check a.en a.ko")(check)
app.command("export", cls=ValidFiles, epilog="Example: jumok export -m run --to ctranslate2 --quantization int8")(
    export
)
app.command("info", epilog="Example: jumok info -m run")(info)


def run(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit code; what the user did wrong is said without a traceback."""
    try:
        code = _exit_code(arguments)
        sys.stdout.flush()  # here, so that a full disk is an error of the command
        return code
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA_PACKAGES:
            raise
        return _fail(MissingExtraError(error.name, "train", "This command"))
    except JumokError as error:
        return _fail(error)


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        app(arguments, prog_name="jumok")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _fail(error: JumokError) -> int:
    with suppress(WriteError):  # one error is enough
        sys.stdout.flush()
    say(f"jumok: {error}")
    return error.exit_code


def main() -> NoReturn:
    """The command `jumok`."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = standard_output(sys.stdout)
    if isinstance(sys.stderr, TextIOWrapper):  # whatever the locale says
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    if hasattr(signal, "SIGPIPE"):  # `jumok translate … | head` ends quietly, as other programs do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    code = run()
    # All is written. To take everything apart first costs a tenth of a second, and where a thread waits for standard
    # input, Python would wait for the lock it holds, and abort.
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)
