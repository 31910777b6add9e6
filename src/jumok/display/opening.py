"""The display that suits where a training runs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from jumok.display.lines import Display, PlainLines, Wording


@contextmanager
def open_display(
    title: str,
    stream: TextIO | None = None,
    *,
    write: Callable[[list[str]], None] | None = None,
    wording: Wording = str,
) -> Iterator[Display]:
    """A panel in a notebook or if `stream` (standard error, unless given) is a terminal; else lines, given to `write`
    or written to `stream`."""
    from rich.console import Console

    from jumok.display.panel import LivePanel, NotebookPanel

    stream = stream or sys.stderr
    console = Console(file=stream, highlight=False)
    if in_notebook():
        with NotebookPanel(title, wording) as in_cell:
            yield in_cell
    elif console.is_terminal and not console.is_dumb_terminal:
        with LivePanel(title, console, wording) as panel:
            yield panel
    else:
        yield PlainLines(write or (lambda lines: _write_lines(stream, lines)), wording)


def in_notebook() -> bool:
    """Whether this process runs the cells of a notebook, in Jupyter, VS Code, Colab or nbclient."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ in ("ZMQInteractiveShell", "Shell")  # the latter is Colab's


def _write_lines(stream: TextIO, lines: list[str]) -> None:
    """Write, but do not fail: a training does not end because nobody reads what it says."""
    with suppress(OSError, ValueError):
        print("\n".join(lines), file=stream, flush=True)
