"""Plain text in passages: what a language model learns from.

A blank line ends a passage. Where there are none, one ends at a line's end when it is long enough: memory stays
bounded, and a passage is about as long as what a small model can look back on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from jumok.data.examples import Example, Rejections
from jumok.data.reading.lines import EMPTY, Damage, byte_lines, display_name, text_of
from jumok.errors import InputError

LONG_ENOUGH = 1_000  # characters


def read_passages(paths: Sequence[str | Path], rejections: Rejections) -> Iterator[Example]:
    """The passages of some text files, one file after another. A line that is not text is counted, with file:line."""
    found = False
    for path in paths:
        for example in _passages(path, rejections):
            found = True
            yield example
    if not found:
        raise InputError(f"{', '.join(map(display_name, paths))}: there is no text in it.\n{rejections.render()}")


def _passages(path: str | Path, rejections: Rejections) -> Iterator[Example]:
    name = display_name(path)
    lines: list[str] = []
    first = size = 0
    for number, line in enumerate(byte_lines(path), 1):
        text = text_of(line)
        if isinstance(text, Damage):
            if text is not EMPTY:
                rejections.add(text.reason, f"{name}:{number}")
        else:
            first = first if lines else number
            lines.append(text)
            size += len(text) + 1
        if lines and (size >= LONG_ENOUGH or isinstance(text, Damage)):
            yield from _cut("\n".join(lines), f"{name}:{first}")
            lines, size = [], 0
    if lines:
        yield from _cut("\n".join(lines), f"{name}:{first}")


def _cut(text: str, where: str) -> Iterator[Example]:
    """A passage that is one very long line becomes several, cut at spaces where there are some."""
    while len(text) > 2 * LONG_ENOUGH:
        cut = text.rfind(" ", 1, LONG_ENOUGH)
        cut = cut if cut > 0 else LONG_ENOUGH
        yield Example((text[:cut],), where)
        text = text[cut:]
    if text.strip():
        yield Example((text,), where)
