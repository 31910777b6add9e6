"""The command `jumok`, and what happens when a command fails. Exit codes: 0 success, 1 a bug, 2 wrong input or options,
3 findings of `check`, 4 a training that cannot continue, 128 + n when signal n ended it."""

import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from types import FrameType
from typing import NoReturn

import click

from jumok import __version__
from jumok.cli.flags import with_flags
from jumok.cli.lazy_group import LazyGroup
from jumok.cli.options import say
from jumok.cli.writing import discard, standard_output
from jumok.errors import JumokError, MissingExtraError, WriteError

# Each in the file of its name, listed by the help in this order.
_COMMANDS = (
    *("demo", "train", "translate", "classify", "generate", "paint", "embed"),
    *("score", "evaluate", "look", "plot", "check", "export", "info"),
)
_EXTRA_PACKAGES = ("torch", "jaxtyping", "sacrebleu", "matplotlib")
_INTERRUPTED = 128 + signal.SIGINT
_CLOSED_PIPE = 128 + 13  # as SIGPIPE ends a process
# Their tracebacks keep what a command has used: freeing a model would wait for the batches that its threads work on.
_interrupts: list[BaseException] = []

command = click.version_option(__version__, message="jumok %(version)s", help="Show the version and exit.")(
    LazyGroup(
        lambda: {name: f"jumok.cli.{name}:command" for name in _COMMANDS},
        help="Two text files in, a translator out. Begin with: jumok demo",
        context_settings={"show_default": True},
    )
)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code. An error that the user can mend is printed without a traceback."""
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
    except (BrokenPipeError, SystemExit):  # click turns the former into the latter; only where there is no SIGPIPE
        discard(sys.stdout.fileno())
        return _CLOSED_PIPE


def _exit_code(arguments: Sequence[str] | None) -> int:
    try:
        code = command.main(arguments, prog_name="jumok", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort as interrupt:
        _interrupts.append(interrupt)
        return _INTERRUPTED
    return code or 0


def _fail(error: JumokError) -> int:
    with suppress(WriteError):  # one error is enough
        sys.stdout.flush()
    say(f"jumok: {with_flags(str(error))}")
    return error.exit_code


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """The first Ctrl-C ends the command; a second one, while it says what is done, ends the process at once."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    raise KeyboardInterrupt


def main() -> NoReturn:
    """The command `jumok`."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout = standard_output(sys.stdout)
    if isinstance(sys.stderr, TextIOWrapper):  # whatever the locale says
        sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")
    if hasattr(signal, "SIGPIPE"):  # `jumok translate … | head` ends quietly, as other programs do
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)
    try:
        code = run()
    except KeyboardInterrupt:  # before or after the command itself
        code = _INTERRUPTED
    # All is written. Python's own shutdown costs a tenth of a second, and where a thread waits for standard input, it
    # would wait for the lock that thread holds, and abort.
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(code)
