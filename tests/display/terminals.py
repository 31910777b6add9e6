"""A terminal for tests: a pty, whose other end is read in a thread as a terminal emulator would."""

import fcntl
import os
import pty
import struct
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO


class Terminal:
    """`stream` is the terminal; `text` is everything that was written to it, once it is closed."""

    def __init__(self) -> None:
        self._emulator, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
        self.stream: TextIO = open(terminal, "w", encoding="utf-8")  # noqa: SIM115
        self._chunks: list[bytes] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        try:
            while chunk := os.read(self._emulator, 65536):
                self._chunks.append(chunk)
        except OSError:  # the terminal is closed
            pass

    def close(self) -> None:
        self.stream.close()
        self._reader.join(10)
        os.close(self._emulator)

    @property
    def text(self) -> str:
        return b"".join(self._chunks).decode()


@contextmanager
def opened_terminal() -> Iterator[Terminal]:
    """A terminal of 100 columns; its text can be read afterwards."""
    terminal = Terminal()
    try:
        yield terminal
    finally:
        terminal.close()
