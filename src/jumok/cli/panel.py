"""The progress of a training: a live panel on a terminal, plain lines elsewhere, JSON for programs."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jumok.cli.options import print_json, say
from jumok.cli.status import Event, Status, describe, describe_warning, duration
from jumok.cli.writing import discard
from jumok.errors import WriteError


@contextmanager
def open_display(title: str, *, quiet: bool = False, as_json: bool = False) -> Iterator["Display"]:
    """The display that suits the options and where standard output goes."""
    if as_json:
        yield JsonLines()
    elif quiet:
        yield Display()
    elif Console().is_terminal:
        with LivePanel(title) as panel:
            yield panel
    else:
        yield PlainLines()


class Display:
    """Shows the progress of a training. This one is for --quiet: only warnings, to standard error."""

    def __init__(self) -> None:
        self.status = Status()

    def __call__(self, event: Event) -> None:
        """Show an event."""
        self.status.update(event)
        if warning := describe_warning(event):
            self.warn(warning)

    def warn(self, warning: str) -> None:
        say(f"jumok: warning: {warning}")


class JsonLines(Display):
    """--json: every event as a line of JSON."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        _write_if_possible(lambda: print_json(event))


class PlainLines(Display):
    """For files, pipes and logs: lines of text for most events."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        _write_if_possible(lambda: [print(line, flush=True) for line in describe(event, self.status)])


class LivePanel(Display):
    """For a terminal: decisions scroll by, and a panel below them is redrawn in place."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        super().__init__()
        self._title = title
        self._console = console or Console(highlight=False)
        self._live = Live(get_renderable=self.draw, console=self._console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.status.done:
            self.status.phase = "Done"
        self._live.stop()

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if event["event"] in ("corpus", "plan", "resumed", "already_done"):
            for line in describe(event, self.status):
                self._console.print(escape(line))
        self._live.refresh()

    def warn(self, warning: str) -> None:
        self._console.print(f"[yellow]warning:[/] {escape(warning)}")

    def draw(self) -> RenderableType:
        """The panel in its current state."""
        status = self.status
        if not status.total or not status.step:
            left = "" if status.remaining is None else f", about {duration(status.remaining)} left"
            body: RenderableType = Text(f"{status.phase} …{left}  {duration(status.elapsed)}")
        else:
            body = Group(self._bar(), self._numbers(), *self._samples())
        # Narrower than the terminal: it writes ^C behind the panel, which must not begin a new line.
        width = self._console.width - 3
        return Panel(body, title=escape(self._title), title_align="left", border_style="cyan", width=width)

    def _bar(self) -> RenderableType:
        step, total = self.status.step, self.status.total
        row = Table.grid(expand=True, padding=(0, 1))
        row.add_column(ratio=1)
        row.add_column(justify="right")
        row.add_row(ProgressBar(total=total, completed=step), f"{step / total:4.0%}")
        return row

    def _numbers(self) -> RenderableType:
        status = self.status
        cells = {
            "now": status.phase,
            "step": f"{status.step:,}/{status.total:,}",
            "epoch": str(status.epoch or "–"),
            "loss": _number(status.loss, ".3f"),
            "learning rate": _number(status.learning_rate, ".2e"),
            f"{status.unit}/s": _number(status.speed, ",.0f"),
            **(status.metrics or {"validation": "–"}),
            "best": next(iter(status.best.values()), "–"),
            "elapsed": duration(status.elapsed),
            "time left": duration(status.remaining if status.step < status.total else 0),
        }
        table = Table.grid(expand=True, padding=(0, 2, 0, 0))
        names = list(cells)
        for start in range(0, len(names), 6):
            table.add_row(*(f"[dim]{name}[/]\n[bold]{cells[name]}[/]" for name in names[start : start + 6]))
        return table

    def _samples(self) -> list[RenderableType]:
        lines: list[RenderableType] = []
        for sample in self.status.samples[:2]:
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


def _write_if_possible(write: Callable[[], object]) -> None:
    """Write, but do not fail: a training does not end because `| head` has exited, or because a disk is full."""
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout.fileno())
    except WriteError as error:
        say(f"jumok: warning: {error} The training continues without this output.")
