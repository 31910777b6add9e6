"""Stop signals (Ctrl-C, kill, a scheduler's warning): the first lets a training save, the second ends it at once."""

import os
import signal
from types import FrameType
from typing import Any, Self

from jumok.system import STOP_SIGNALS


class Interrupts:
    """Context in which the first stop signal sets `received`, and a second exits with 128 + its number."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def requested(self) -> bool:
        """Return whether a stop signal was received."""
        return self.received is not None

    def __enter__(self) -> Self:
        self._before = {number: signal.signal(number, self._note) for number in STOP_SIGNALS}
        return self

    def __exit__(self, *_error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)  # safe: the files are complete at every moment
        self.received = number
