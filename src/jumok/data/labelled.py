"""Texts with labels: TSV, CSV, JSONL, or a directory for each class with a text a file.

Which column holds the label is seen from the header, or else from the columns themselves: there are few
different labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jumok.data.corpora import Rejections
from jumok.data.formats import TOO_FEW_COLUMNS, Row, json_value, lenient, table_rows
from jumok.data.held_out import Example
from jumok.data.lines import (
    EMPTY,
    HAS_NUL,
    NOT_UNICODE,
    Damage,
    Side,
    byte_chunks,
    byte_lines,
    display_name,
    text_of,
    without_compression,
)
from jumok.data.prepared import Kind
from jumok.errors import InputError

LABEL_NAMES = ("label", "class", "category", "sentiment", "target", "y")
TEXT_NAMES = ("text", "review", "sentence", "document", "content", "body", "comment", "x")
LARGEST_VOCABULARY = 4000  # runs of pieces tell more than rare pieces do
LOOKED_AT = 200  # rows from which the label's column is guessed
NO_LABEL = Damage("no label")
HEADER = Damage("a header, by the look of it")
MOST_TEXT_BYTES = 10_000_000  # of one file in a directory of texts
TOO_LARGE = Damage(f"text larger than {MOST_TEXT_BYTES:,} bytes")

Labelled = tuple[str, int, Side, Side]
"""File, line, label and text."""


def read_labelled(
    paths: Sequence[str | Path], rejections: Rejections, known: Collection[str] = ()
) -> Iterator[Example]:
    """The usable texts with their labels, in their order. What is not usable is counted by reason, with file:line.

    `known` labels, where there are some, help to find the column of the labels.
    """
    found = False
    for name, number, label_side, text_side in chain.from_iterable(_records(path, known) for path in paths):
        where = f"{name}:{number}"
        label, text = _label_of(label_side), text_of(text_side)
        if isinstance(text, Damage):
            rejections.add("empty text" if text is EMPTY else text.reason, where)
        elif isinstance(label, Damage):
            rejections.add(label.reason, where)
        else:
            found = True
            yield Example((text,), where, label)
    if not found:
        why = f"every line was left out:\n{rejections.render()}" if rejections.total else "there is nothing in it."
        raise InputError(f"{', '.join(map(display_name, paths))}: no text with a label; {why}")


TEXTS_WITH_LABELS = Kind(
    name="texts",
    columns=("text",),
    read=read_labelled,
    files="TSV, CSV or JSONL files with a label and a text in each line, or a directory with one directory a class",
    largest_vocabulary=LARGEST_VOCABULARY,
    labelled=True,
)


def _label_of(side: Side) -> str | Damage:
    label = text_of(side)
    if isinstance(label, str):
        return _in_one_line(label)
    if label in (NOT_UNICODE, HAS_NUL):
        return Damage(f"label: {label.reason}")
    return NO_LABEL if label is EMPTY else label


def _in_one_line(label: str) -> str:
    """White space as single spaces: the name of a class stands in lines and columns of what is written."""
    return " ".join(label.split())


def _records(path: str | Path, known: Collection[str]) -> Iterator[Labelled]:
    if Path(path).is_dir():
        return _directory_records(Path(path))
    suffix = without_compression(path).suffix.lower()
    if suffix in (".jsonl", ".ndjson", ".json"):
        return _jsonl_records(path)
    return _table_records(path, known)


def _directory_records(path: Path) -> Iterator[Labelled]:
    """A directory for each class, a text in each file."""
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir())
    if not classes:
        raise InputError(f"{path}: has no directories in it. Give it one for each class, with a text in each file.")
    for directory in classes:
        for file in sorted(entry for entry in directory.rglob("*") if entry.is_file()):
            yield str(file), 1, directory.name, _whole_text(file)


def _whole_text(file: Path) -> Side:
    text = bytearray()
    for chunk in byte_chunks(file):
        text += chunk
        if len(text) > MOST_TEXT_BYTES:
            return TOO_LARGE
    return bytes(text)


def _jsonl_records(path: str | Path) -> Iterator[Labelled]:
    name = display_name(path)
    for number, line in enumerate(byte_lines(path), 1):
        value = json_value(line)
        if isinstance(value, Damage):
            yield name, number, value, value
        else:
            yield name, number, _field(value, "label", LABEL_NAMES), _field(value, "text", TEXT_NAMES)


def _field(value: dict[str, Any], what: str, names: Sequence[str]) -> Side:
    lowered = {str(key).lower(): content for key, content in value.items()}
    found = [lowered[name] for name in names if lowered.get(name) is not None]
    for content in found:
        if isinstance(content, bool):
            return str(content).lower()
        if isinstance(content, (str, int)):
            return str(content)
    return Damage(f"a {what} that is neither words nor a whole number" if found else f"no {what}")


def _table_records(path: str | Path, known: Collection[str]) -> Iterator[Labelled]:
    name = display_name(path)
    rows = table_rows(path)
    first = list(islice(rows, LOOKED_AT))
    whole = [[_in_one_line(lenient(cell)) for cell in row] for _, row in first if not isinstance(row, Damage)]
    label, text, named = _columns(whole, name, known)
    held_back = None  # a row that may be a header, until its label comes again: then it is none
    if whole and (named == 2 or _may_be_header(whole, label, text, known, named=named > 0)):
        header = first.pop(next(place for place, (_, row) in enumerate(first) if not isinstance(row, Damage)))
        held_back = None if named == 2 else header
    for row in chain(first, rows):
        cells = _cells(row, label, text)
        if held_back and _label_of(cells[0]) == whole[0][label]:
            yield name, held_back[0], *_cells(held_back, label, text)
            held_back = None
        yield name, row[0], *cells
    if held_back:
        yield name, held_back[0], HEADER, HEADER


def _cells(row: Row, label: int, text: int) -> tuple[Side, Side]:
    cells = row[1]
    if isinstance(cells, Damage):
        return cells, cells
    if len(cells) <= max(label, text):
        return TOO_FEW_COLUMNS, TOO_FEW_COLUMNS
    return cells[label], cells[text]


def _may_be_header(
    rows: Sequence[Sequence[str]], label: int, text: int, known: Collection[str], *, named: bool
) -> bool:
    """Whether the first row's label is nobody else's, and it names a column or all the other labels come again."""
    labels = [row[label] for row in rows if len(row) > max(label, text)]
    if len(rows[0]) <= max(label, text) or not labels[0] or labels[0] in known:
        return False
    counts = Counter(labels[1:])
    return labels[0] not in counts and (named or (len(labels) > 4 and min(counts.values()) > 1))


def _columns(rows: Sequence[Sequence[str]], name: str, known: Collection[str]) -> tuple[int, int, int]:
    """The column of the label, that of the text, and how many of the two the first row names."""
    if not rows:
        return 0, 1, 0
    header = [cell.lower() for cell in rows[0]]
    labels = [header.index(each) for each in LABEL_NAMES if each in header]
    texts = [header.index(each) for each in TEXT_NAMES if each in header]
    if labels and texts:
        return labels[0], texts[0], 2
    width = max(map(len, rows))
    if width < 2:
        raise InputError(
            f"{name}: has one column. Give a label and a text in each line, with a tab between them (or a comma, in a "
            ".csv file)."
        )
    cells = [row for row in rows if len(row) == width]
    # A name alone may be a label or a text itself; then it comes again.
    labels, texts = (
        [column for column in columns[:1] if sum(row[column] == rows[0][column] for row in cells) < 2]
        for columns in (labels, texts)
    )
    kinds = [len({row[column] for row in cells if row[column]}) or len(cells) for column in range(width)]
    label = min(
        labels or (column for column in range(width) if column not in texts),
        key=lambda column: (-sum(row[column] in known for row in cells), kinds[column], column),
    )
    others = [column for column in range(width) if column != label]
    text = max(texts or others, key=lambda column: sum(len(row[column]) for row in cells))
    return label, text, len(labels) + len(texts)
