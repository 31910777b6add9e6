"""The simplest displays: warnings only, and plain lines."""

import sys
from collections.abc import Callable
from typing import TypeAlias

from jumok.display.messages import describe, describe_warning
from jumok.display.status import Event, Status

Wording: TypeAlias = Callable[[str], str]  # may change how a message names arguments


class Display:
    """Shows the progress of a training. This one shows only warnings, on standard error."""

    def __init__(self, wording: Wording = str) -> None:
        self.status = Status()
        self._wording = wording

    def __call__(self, event: Event) -> None:
        """Show an event."""
        self.status.update(event)
        if warning := describe_warning(event):
            self.warn(self._wording(warning))

    def describe(self, event: Event) -> list[str]:
        """The event in lines of text."""
        return [self._wording(line) for line in describe(event, self.status)]

    def warn(self, warning: str) -> None:
        """Show a warning."""
        print(f"jumok: warning: {warning}", file=sys.stderr, flush=True)


class PlainLines(Display):
    """For files, pipes and logs: lines of text for most events. `write` gets the lines of one event."""

    def __init__(self, write: Callable[[list[str]], None], wording: Wording = str) -> None:
        super().__init__(wording)
        self._write = write

    def __call__(self, event: Event) -> None:
        super().__call__(event)
        if lines := self.describe(event):
            self._write(lines)
