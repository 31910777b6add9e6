"""The progress of a training on the command line: the panel, plain lines, nothing, or JSON for programs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from jumok.cli.flags import with_flags
from jumok.cli.options import print_json, say
from jumok.cli.writing import discard
from jumok.display.lines import Display
from jumok.display.opening import open_display as open_display_on
from jumok.display.status import Event
from jumok.errors import WriteError


@contextmanager
def open_display(title: str, *, quiet: bool = False, as_json: bool = False) -> Iterator[Display]:
    """The display that suits the options and where standard output goes."""
    if as_json:
        yield JsonLines(with_flags)
    elif quiet:
        yield Display(with_flags)
    else:
        with open_display_on(title, sys.stdout, write=print_lines, wording=with_flags) as display:
            yield display


class JsonLines(Display):
    """--json: every event as a line of JSON."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        _write_if_possible(lambda: print_json(event))


def print_lines(lines: list[str]) -> None:
    """Print lines to standard output, while somebody reads them."""
    _write_if_possible(lambda: print("\n".join(lines), flush=True))


def _write_if_possible(write: Callable[[], object]) -> None:
    """Write, but do not fail: a training does not end because `| head` has exited, or because a disk is full."""
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout.fileno())
    except WriteError as error:
        say(f"jumok: warning: {error} The training continues without this output.")
