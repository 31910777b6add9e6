"""The panel: drawn with rich, redrawn in place in a terminal or a notebook."""

import sys
import time
from collections.abc import Mapping
from io import StringIO
from typing import Any, Self, TextIO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jumok.display.curve import can_draw_blocks, draw_curve
from jumok.display.lines import Display, Wording
from jumok.display.messages import describe_validation
from jumok.display.status import PHASES, Event, Status, duration

CELL_WIDTHS = (4, 3, 2, 3, 3)  # of the cells in a row, relative to each other
CURVE_WIDTH = 30
NOTEBOOK_WIDTH, NOTEBOOK_SECONDS = 100, 1.0  # columns; between two drawings
# Events that stay to be read above the panel.
_KEPT = ("stage", "file", "corpus", "plan", "resumed", "already_done")


class LivePanel(Display):
    """For a terminal: decisions scroll by, and a panel below them is redrawn in place."""

    def __init__(self, title: str, console: Console, wording: Wording = str) -> None:
        super().__init__(wording)
        self._title, self._console = title, console
        self._live = Live(
            get_renderable=self.draw,
            console=console,
            refresh_per_second=4,
            redirect_stdout=_is_terminal(sys.stdout),  # what is printed meanwhile appears above the panel,
            redirect_stderr=_is_terminal(sys.stderr),  # unless it goes to a file
        )

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        for line in kept_lines(self, event):
            self._console.print(escape(line), highlight=False)
        self._live.refresh()

    def warn(self, warning: str) -> None:
        self._console.print(f"[yellow]warning:[/] {escape(warning)}", highlight=False)

    def draw(self) -> RenderableType:
        """The panel in its current state. It is narrower than the terminal, which writes ^C behind it: that must not
        begin a new line."""
        without_blocks = self._console.options.ascii_only or self._console.legacy_windows or not can_draw_blocks()
        return draw_panel(self.status, self._title, self._console.width - 3, ascii_only=without_blocks)


class NotebookPanel(Display):
    """For a notebook: the same panel in the output of a cell, updated in place, at most once a second."""

    def __init__(self, title: str, wording: Wording = str) -> None:
        from IPython.display import display

        super().__init__(wording)
        self._title, self._drawn = title, time.monotonic()
        self._lines: list[str] = []
        self._handle = display(self, display_id=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._handle.update(self)

    def __call__(self, event: Event) -> None:
        before = self.status.phase
        super().__call__(event)
        self._lines += kept_lines(self, event)
        if self.status.phase != before or time.monotonic() - self._drawn >= NOTEBOOK_SECONDS:
            self._drawn = time.monotonic()
            self._handle.update(self)

    def warn(self, warning: str) -> None:
        self._lines.append(f"warning: {warning}")

    def _repr_mimebundle_(self, **_options: Any) -> Mapping[str, str]:
        """What a notebook shows: HTML, or text where it cannot."""
        # Not a notebook for rich, which would display every line itself.
        console = Console(record=True, width=NOTEBOOK_WIDTH, file=StringIO(), force_jupyter=False)
        for line in self._lines:
            console.print(Text(line))
        console.print(draw_panel(self.status, self._title, NOTEBOOK_WIDTH))
        html = console.export_html(clear=False, inline_styles=True, code_format="<pre>{code}</pre>")
        return {"text/html": html, "text/plain": console.export_text()}


def kept_lines(display: Display, event: Event) -> list[str]:
    """Lines about an event that are to be read later too: decisions, and what became of averages."""
    if event["event"] == "valid" and "averaged" in event:
        return [describe_validation(event)]
    return display.describe(event) if event["event"] in _KEPT else []


def _is_terminal(stream: TextIO | None) -> bool:
    return stream is not None and stream.isatty()


def draw_panel(status: Status, title: str, width: int, *, ascii_only: bool = False) -> RenderableType:
    """What happens now, and since the first step: how far it is, the numbers, the learning curve, and samples."""
    if not status.total or not status.step:
        going_on = "" if status.phase == PHASES["finished"] else " …"
        body: RenderableType = Text(f"{status.phase}{going_on}  {duration(status.elapsed)}")
    else:
        phase = Text(status.phase, style="bold")
        body = Group(phase, _bar(status), _numbers(status), *_curves(status, ascii_only), *_samples(status))
    title = f"{title} · {status.stage}" if status.stage else title
    return Panel(body, title=escape(title), title_align="left", border_style="cyan", width=width)


def _bar(status: Status) -> RenderableType:
    row = Table.grid(expand=True, padding=(0, 1))
    row.add_column(ratio=1)
    row.add_column(justify="right")
    row.add_row(ProgressBar(total=status.total, completed=status.step), f"{status.step / status.total:4.0%}")
    return row


def _numbers(status: Status) -> RenderableType:
    cells = {
        "step": f"{status.step:,}/{status.total:,}",
        "epoch": str(status.epoch or "–"),
        "loss": _number(status.loss, ".3f"),
        "learning rate": _number(status.learning_rate, ".2e"),
        f"{status.unit}/s": _number(status.speed, ",.0f"),
        **(status.metrics or {"validation": "–"}),
        "best": next(iter(status.best.values()), "–"),
        "elapsed": duration(status.elapsed),
        "time left": duration(status.seconds_left),
    }
    table = Table.grid(expand=True, padding=(0, 1, 0, 0))
    for width in CELL_WIDTHS:
        table.add_column(ratio=width)
    names = list(cells)
    for start in range(0, len(names), len(CELL_WIDTHS)):
        row = names[start : start + len(CELL_WIDTHS)]
        table.add_row(*(f"[dim]{name}[/]\n[bold]{cells[name]}[/]" for name in row))
    return table


def _curves(status: Status, ascii_only: bool) -> list[RenderableType]:
    """The loss, and the metric by which the best model is chosen, from the first to the last."""
    curves = {"loss": status.losses, next(iter(status.metrics), ""): status.scores}
    drawn = [
        f"{name} {draw_curve(values, CURVE_WIDTH, ascii_only=ascii_only)}"
        for name, values in curves.items()
        if len(values) > 1
    ]
    return [_one_line("   ".join(drawn), "")] if drawn else []


def _samples(status: Status) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for sample in status.samples[:2]:
        right = sample["output"] == sample["reference"]
        lines += [Text(), _one_line(sample["source"], "dim")]
        lines.append(_one_line(f"→ {sample['output']}", "green" if right else ""))
        if not right:
            lines.append(_one_line(f"= {sample['reference']}", "dim"))
    return lines


def _one_line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)
