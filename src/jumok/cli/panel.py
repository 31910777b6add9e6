"""A person watches a training: one live panel on a terminal, plain lines elsewhere, JSON for programs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Protocol, Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from jumok.cli.options import print_json, say
from jumok.cli.status import (
    Event,
    Status,
    describe_corpus,
    describe_plan,
    describe_rejections,
    describe_step,
    describe_validation,
    describe_warning,
    duration,
)
from jumok.cli.writing import discard
from jumok.errors import WriteError


class Watcher(Protocol):
    """Shows a training to somebody."""

    status: Status

    def __call__(self, event: Event) -> None:
        """Something happened."""


@contextmanager
def watching(title: str, *, quiet: bool = False, as_json: bool = False) -> Iterator[Watcher]:
    """The watcher that suits where the output goes."""
    if as_json:
        yield JsonLines()
    elif quiet:
        yield Warnings()
    elif Console().is_terminal:
        with LivePanel(title) as panel:
            yield panel
    else:
        yield PlainLines()


class Warnings:
    """Says only what must be said."""

    def __init__(self) -> None:
        self.status = Status()

    def __call__(self, event: Event) -> None:
        self.status.take(event)
        if warning := describe_warning(event):
            say(f"jumok: warning: {warning}")


class JsonLines(Warnings):
    """Every event as a line of JSON."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        _undisturbed(lambda: print_json(event))


class PlainLines(Warnings):
    """For files, pipes and logs: a line when something happens."""

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        _undisturbed(lambda: [print(line, flush=True) for line in _lines(event, self.status)])


class LivePanel:
    """For a terminal: what was decided scrolls by, where it stands is redrawn in place."""

    def __init__(self, title: str, console: Console | None = None) -> None:
        self.status = Status()
        self._title = title
        self._console = console or Console(highlight=False)
        self._phase = "Reading the corpus …"
        self._live = Live(get_renderable=self.draw, console=self._console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def __call__(self, event: Event) -> None:
        self.status.take(event)
        kind = event["event"]
        if warning := describe_warning(event):
            self._console.print(f"[yellow]warning:[/] {escape(warning)}")
        if kind in ("corpus", "plan", "resumed", "already_done"):
            for line in _lines(event, self.status):
                self._console.print(escape(line))
        phases = {"corpus": "Measuring this machine …", "settings": "Training", "done": "Done"}
        self._phase = phases.get(kind, self._phase)
        self._live.refresh()

    def draw(self) -> RenderableType:
        """The panel as it should look now."""
        status = self.status
        if not status.total or not status.step:
            left = "" if status.remaining is None else f", about {duration(status.remaining)} to go"
            body: RenderableType = Text(f"{self._phase}{left}  {duration(status.elapsed)}")
        else:
            body = Group(self._bar(), self._numbers(), *self._samples())
        # Not the whole width: the terminal writes ^C behind it, which must not begin a new line.
        width = self._console.width - 3
        return Panel(body, title=escape(self._title), title_align="left", border_style="cyan", width=width)

    def _bar(self) -> RenderableType:
        status = self.status
        row = Table.grid(expand=True, padding=(0, 1))
        row.add_column(ratio=1)
        row.add_column(justify="right")
        share = status.step / status.total
        row.add_row(ProgressBar(total=status.total, completed=status.step), f"{share:4.0%}")
        return row

    def _numbers(self) -> RenderableType:
        status = self.status
        finishing = "done" if self._phase == "Done" else "finishing"
        left = finishing if status.step >= status.total else duration(status.remaining)
        cells = {
            "step": f"{status.step:,}/{status.total:,}",
            "epoch": str(status.epoch or "–"),
            "loss": _number(status.loss, ".3f"),
            "learning rate": _number(status.rate, ".2e"),
            f"{status.learned}/s": _number(status.speed, ",.0f"),
            **(status.metrics or {"validation": "–"}),
            "best": next(iter(status.best.values()), "–"),
            "elapsed": duration(status.elapsed),
            "time left": left,
        }
        table = Table.grid(expand=True, padding=(0, 2, 0, 0))
        names = list(cells)
        for start in range(0, len(names), 5):
            table.add_row(*(f"[dim]{name}[/]\n[bold]{cells[name]}[/]" for name in names[start : start + 5]))
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


def _lines(event: Event, status: Status) -> Iterator[str]:
    kind = event["event"]
    if kind == "corpus":
        yield from describe_corpus(event)
        yield from describe_rejections(event)
    elif kind == "plan":
        yield from describe_plan(event)
    elif kind == "resumed":
        yield f"going on from step {event['step']:,} of {status.total:,}"
    elif kind == "already_done":
        yield f"This training was finished before, at step {event['step']:,}. --fresh starts again."
    elif kind == "train":
        yield describe_step(status)
    elif kind == "valid":
        yield from describe_validation(event)
    elif kind == "finished" and "certificate" in event:
        equal, probes = event["certificate"]["equal"], event["certificate"]["sources"]
        yield f"exported to CTranslate2; {equal} of {probes} probes answered as by PyTorch"


def _one_line(text: str, style: str) -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


def _number(value: float | None, form: str) -> str:
    return "–" if value is None else format(value, form)


def _undisturbed(write: Callable[[], object]) -> None:
    """Writes, if that is possible: a training does not end because `| head` has seen enough, or a disk is full."""
    try:
        write()
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout.fileno())
    except WriteError as error:
        say(f"jumok: warning: {error} The training goes on without it.")
