"""Plain text in passages: the examples of a language model. A blank line ends a passage, and so does the end of a line
when the passage is about as long as the context of a small model: memory stays bounded."""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from jumok.data.examples import Example, Paths, Rejections
from jumok.data.reading.lines import EMPTY, Damage, byte_lines, display_name, text_of
from jumok.errors import InputError

LONG_ENOUGH = 1_000  # characters


def read_passages(paths: Paths, rejections: Rejections) -> Iterator[Example]:
    """The passages of text files, one file after another. Lines that are not text are added to the rejections."""
    found = False
    for example in chain.from_iterable(_passages(path, rejections) for path in paths):
        found = True
        yield example
    if not found:
        raise InputError(f"{', '.join(map(display_name, paths))}: contains no text.\n{rejections.render()}".rstrip())


def _passages(path: str | Path, rejections: Rejections) -> Iterator[Example]:
    name = display_name(path)
    lines: list[str] = []
    first = size = 0
    for number, line in enumerate(chain(byte_lines(path), [b""]), 1):
        text = text_of(line)
        if isinstance(text, str):
            first = first if lines else number
            lines.append(text)
            rejections.lines_used += 1
            size += len(text) + 1
        elif text is not EMPTY:
            rejections.add(text.reason, f"{name}:{number}")
        if lines and (size >= LONG_ENOUGH or isinstance(text, Damage)):
            yield from _cut("\n".join(lines), f"{name}:{first}")
            lines, size = [], 0


def _cut(text: str, where: str) -> Iterator[Example]:
    """Split a passage that is one very long line into several, at spaces if it has any."""
    while len(text) > 2 * LONG_ENOUGH:
        cut = text.rfind(" ", 1, LONG_ENOUGH)
        cut = cut if cut > 0 else LONG_ENOUGH
        yield Example((text[:cut],), where)
        text = text[cut:]
    if text.strip():
        yield Example((text,), where)
