"""Text in passages: the examples of a language model. A blank line ends a passage, and so does the end of a line when
the passage is about as long as the context of a small model: memory stays bounded. In a table or JSONL, each text is a
passage."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from jumok.data.examples import Column, Example, FileLayout, Paths, Rejections
from jumok.data.reading.columns import (
    TableColumns,
    ask_for_columns,
    chosen_columns,
    longest_columns,
    sample_rows,
    usual_width,
)
from jumok.data.reading.delimited import LOOKED_AT
from jumok.data.reading.formats import JSON_LINES, json_value
from jumok.data.reading.headers import is_name_of
from jumok.data.reading.lines import EMPTY, NO_TEXT, Damage, Side, display_name, format_of, text_of
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.reading.tables import TABLES, table_rows, text_lines
from jumok.errors import InputError

LONG_ENOUGH = 1_000  # characters


def read_passages(paths: Paths, rejections: Rejections, *, options: ReadingOptions = DEFAULT) -> Iterator[Example]:
    """The passages of files, one file after another. Lines that are not text are added to the rejections, and how each
    file was read to their layouts. `options.columns` is that of the texts of a table."""
    found = False
    for example in chain.from_iterable(_of_file(path, rejections, options) for path in paths):
        found = True
        yield example
    if not found:
        raise InputError(f"{', '.join(map(display_name, paths))}: contains no text.\n{rejections.render()}".rstrip())


def _of_file(path: str | Path, rejections: Rejections, options: ReadingOptions) -> Iterator[Example]:
    layout = FileLayout(display_name(path))
    rejections.layouts.append(layout)
    if format_of(path) not in (*TABLES, *JSON_LINES):
        return _passages(text_lines(path, options, layout), layout.file, rejections)
    texts = _column if format_of(path) in TABLES else _json_texts
    return _single_texts(texts(path, options, layout), layout.file, rejections)


def _passages(source: Iterator[bytes | Damage], name: str, rejections: Rejections) -> Iterator[Example]:
    lines: list[str] = []
    first = size = 0
    for number, line in enumerate(chain(source, [b""]), 1):
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


def _single_texts(texts: Iterator[tuple[int, Side]], name: str, rejections: Rejections) -> Iterator[Example]:
    for number, side in texts:
        text = text_of(side)
        if isinstance(text, str):
            rejections.lines_used += 1
            yield from _cut(text, f"{name}:{number}")
        else:
            rejections.not_meant += text is EMPTY
            rejections.add("empty text" if text is EMPTY else text.reason, f"{name}:{number}")


def _column(path: str | Path, options: ReadingOptions, layout: FileLayout) -> Iterator[tuple[int, Side]]:
    """The column of a table that was chosen, that is called so, or that is the only one."""
    rows = table_rows(path, options, layout)
    first = list(islice(rows, LOOKED_AT))
    sample = sample_rows(first)
    columns = TableColumns((0,), 1)
    if sample:
        texts = [cells for _, cells in sample]
        named = [n for n, name in enumerate(texts[0]) if is_name_of("text", name)]
        if options.columns:
            columns = chosen_columns(options.columns, sample, layout.file)
        elif len(named) == 1:
            columns = TableColumns((named[0],), len(texts[0]), texts[0])
        elif usual_width(texts) > 1:
            raise InputError(ask_for_columns(sample, layout.file, "the texts", longest_columns(texts, 1)))
    columns.describe(layout, ("text",))
    for number, cells in chain(first, rows):
        if not columns.header or number != sample[0][0]:
            yield number, columns.cells(cells)[0]


def _json_texts(path: str | Path, options: ReadingOptions, layout: FileLayout) -> Iterator[tuple[int, Side]]:
    for number, line in enumerate(text_lines(path, options, layout), 1):
        value = json_value(line)
        if isinstance(value, Damage):
            yield number, value
            continue
        keys = options.columns or [key for key in value if is_name_of("text", key)]
        found = [(key, value[key]) for key in keys if isinstance(value.get(key), str)]
        if found:
            layout.columns.setdefault("text", Column(None, found[0][0]))
        yield number, found[0][1] if found else NO_TEXT


def _cut(text: str, where: str) -> Iterator[Example]:
    """Split a passage that is one very long line into several, at spaces if it has any."""
    while len(text) > 2 * LONG_ENOUGH:
        cut = text.rfind(" ", 1, LONG_ENOUGH)
        cut = cut if cut > 0 else LONG_ENOUGH
        yield Example((text[:cut],), where)
        text = text[cut:]
    if text.strip():
        yield Example((text,), where)
