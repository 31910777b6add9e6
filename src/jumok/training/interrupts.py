"""Ctrl-C, kill and a scheduler's warning, politely: the first asks to finish the step and save, the second leaves."""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Any

from jumok.system import STOP_SIGNALS


class Interrupts:
    """Within it, the first of these signals only sets `received`; a second ends the process with 128 + its number."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def requested(self) -> bool:
        """Has somebody asked to stop?"""
        return self.received is not None

    def __enter__(self) -> Interrupts:
        for number in STOP_SIGNALS:
            self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self.received is not None:
            os._exit(128 + number)  # at once: what is on disk is whole at every moment
        self.received = number
