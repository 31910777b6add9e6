"""Texts with labels: tables, JSONL, or a directory for each class with one text a file.

The header says which column holds the label; without one, it is the column with few different values. A line with more
or fewer columns than the others is left out: a separator or line end inside its text has moved its cells.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from statistics import median_high
from typing import Any

from jumok.data.examples import Column, Example, FileLayout, Paths, Rejections
from jumok.data.reading import formats, lines
from jumok.data.reading.columns import (
    NOT_AS_MOST_LINES,
    NOT_AS_THE_HEADER,
    SampleRows,
    TableColumns,
    ask_for_columns,
    chosen_columns,
    filled,
    sample_rows,
    usual_width,
)
from jumok.data.reading.delimited import LOOKED_AT
from jumok.data.reading.encodings import encoding_by_bom, shown_name
from jumok.data.reading.headers import is_name_of
from jumok.data.reading.lines import EMPTY, Damage, Row, Side, text_of
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.reading.tables import table_rows, text_lines
from jumok.errors import InputError

# Of several columns with the name of a label or a text, the first of these is taken.
_FIRST_CHOICE = {"label": ("label", "class", "category", "sentiment", "target"), "text": ("text", "review", "sentence")}
NO_LABEL = Damage("no label")
EMPTY_CLASS = "a directory of a class without files"
HEADER = Damage("looks like a header")
MOST_TEXT_BYTES = 10_000_000  # of one file in a directory of texts
TOO_LARGE = Damage(f"text larger than {MOST_TEXT_BYTES:,} bytes")

Labelled = tuple[str, int, Side, Side]
"""File, line, label and text."""


def read_labelled(
    paths: Paths, rejections: Rejections, known: Collection[str] = (), *, options: ReadingOptions = DEFAULT
) -> Iterator[Example]:
    """The usable texts with their labels, in order; others are rejected. `known` labels help to find their column.
    `options.columns` are that of the text and that of the label. How each file was read is added to the layouts."""
    found = False
    records = (_records(path, known, options, rejections) for path in paths)
    for name, number, label_side, text_side in chain.from_iterable(records):
        where = f"{name}:{number}"
        label, text = label_of(label_side), text_of(text_side)
        rejections.not_meant += text is EMPTY and label is NO_LABEL
        if isinstance(text, Damage):
            rejections.add("empty text" if text is EMPTY else text.reason, where)
        elif isinstance(label, Damage):
            rejections.add(label.reason, where)
        else:
            found = True
            yield Example((text,), where, label)
    if not found:
        why = f"every line was left out:\n{rejections.render()}" if rejections.total else "there are no lines."
        raise InputError(f"{', '.join(map(lines.display_name, paths))}: no text with a label; {why}")


def label_of(side: Side) -> str | Damage:
    """The label in a cell, or the reason why it cannot be used."""
    label = text_of(side)
    if isinstance(label, str):
        return _in_one_line(label)
    if label in (lines.NOT_UNICODE, lines.HAS_NUL):
        return Damage(f"label: {label.reason}")
    return NO_LABEL if label is EMPTY else label


def class_name(directory: Path) -> str:
    """The label of what is in the directory of a class."""
    return lines.escaped(_in_one_line(directory.name))


def _in_one_line(label: str) -> str:
    """With single spaces: names of classes are written in lines and columns."""
    return " ".join(label.split())


def _records(
    path: str | Path, known: Collection[str], options: ReadingOptions, rejections: Rejections
) -> Iterator[Labelled]:
    if Path(path).is_dir():
        return _directory_records(Path(path), options.encoding, rejections)
    layout = FileLayout(lines.display_name(path))
    rejections.layouts.append(layout)
    if lines.format_of(path) in formats.JSON_LINES:
        return _jsonl_records(path, options, layout)
    return _table_records(path, known, options, layout)


def _directory_records(path: Path, encoding: str | None, rejections: Rejections) -> Iterator[Labelled]:
    """Records of a directory with one directory a class and one text a file."""
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir())
    if not classes:
        raise InputError(f"{path}: contains no directories. Give it one for each class, with one text in each file.")
    for directory in classes:
        files = sorted(entry for entry in directory.rglob("*") if entry.is_file())
        if not files:
            rejections.add_not_meant(EMPTY_CLASS, lines.display_name(directory))
        for file in files:
            yield lines.display_name(file), 1, class_name(directory), _whole_text(file, encoding)


def _whole_text(file: Path, encoding: str | None) -> Side:
    text = bytearray()
    for chunk in lines.byte_chunks(file):
        text += chunk
        if len(text) > MOST_TEXT_BYTES:
            return TOO_LARGE
    encoding = encoding_by_bom(bytes(text[:4])) or encoding or "utf-8"
    try:
        return bytes(text) if encoding == "utf-8" else text.decode(encoding)
    except UnicodeError:
        return Damage(f"not valid {shown_name(encoding)}")


def _jsonl_records(path: str | Path, options: ReadingOptions, layout: FileLayout) -> Iterator[Labelled]:
    chosen = dict(zip(("text", "label"), options.columns, strict=False))
    for number, line in enumerate(text_lines(path, options, layout), 1):
        value = formats.json_value(line)
        if isinstance(value, Damage):
            yield layout.file, number, value, value
        else:
            label, text = (_field(value, role, chosen.get(role), layout) for role in ("label", "text"))
            yield layout.file, number, label, text


def _field(value: dict[str, Any], role: str, chosen: str | None, layout: FileLayout) -> Side:
    """The label or text of an object: under the key that was chosen, or under those that are called so."""
    usable = {str(key): content for key, content in value.items() if content is not None}
    keys = [chosen] if chosen else _named(role, list(usable))
    found = [(key, usable[key]) for key in keys if key in usable]
    for key, content in found:
        if isinstance(content, str | int):
            layout.columns.setdefault(role, Column(None, key))
            return str(content).lower() if isinstance(content, bool) else str(content)
    return Damage(f"a {role} that is neither text nor an integer" if found else f"no {role}")


def _named(role: str, names: Sequence[str]) -> list[str]:
    """Those of the names that columns with the label or the text have, the most usual first."""
    choice = _FIRST_CHOICE[role]
    found = [name for name in names if is_name_of(role, name)]
    return sorted(found, key=lambda name: choice.index(name.lower()) if name.lower() in choice else len(choice))


@dataclass(frozen=True)
class _Layout:
    """Where a table has label and text, and how many columns its rows have."""

    label: int
    text: int
    width: int  # columns of every row
    named: int = 0  # how many of the two columns the first row names

    def fits(self, row: Sequence[Side]) -> bool:
        """Whether a row has this number of columns; blank ones at its end, as spreadsheets add them, do not count."""
        return len(row) >= self.width and filled(row) <= self.width

    def cells(self, row: Row) -> tuple[Side, Side]:
        """Label and text of a row."""
        cells = row[1]
        if isinstance(cells, Damage):
            return cells, cells
        if not any(cells):
            return EMPTY, EMPTY
        if not self.fits(cells):
            damage = NOT_AS_THE_HEADER if self.named == 2 else NOT_AS_MOST_LINES
            return damage, damage
        return cells[self.label], cells[self.text]

    def describe(self, file: FileLayout, header: Sequence[str]) -> None:
        """Write which columns are read, and which are not, into the layout of the file."""
        TableColumns((self.text, self.label), self.width, header).describe(file, ("text", "label"))


def _table_records(
    path: str | Path, known: Collection[str], options: ReadingOptions, file: FileLayout
) -> Iterator[Labelled]:
    rows = table_rows(path, options, file)
    first = list(islice(rows, LOOKED_AT))
    sample = sample_rows(first)
    whole = [cells for _, cells in sample]
    layout = _chosen(options.columns, sample, file.file) if options.columns else _layout(sample, file.file, known)
    held_back = None  # the first row, if it may be a header: until its label comes again, which a header's does not
    if whole and (layout.named == 2 or (not options.columns and _may_be_header(whole, layout, known))):
        header = first.pop(next(place for place, (number, _) in enumerate(first) if number == sample[0][0]))
        held_back = None if layout.named == 2 else header
    layout.describe(file, whole[0] if layout.named == 2 or held_back else ())
    for row in chain(first, rows):
        cells = layout.cells(row)
        if held_back and label_of(cells[0]) == whole[0][layout.label]:
            yield file.file, held_back[0], *layout.cells(held_back)
            held_back = None
        yield file.file, row[0], *cells
    if held_back:
        yield file.file, held_back[0], HEADER, HEADER


def _chosen(columns: Sequence[str], rows: SampleRows, name: str) -> _Layout:
    """The columns of text and label that the user chose."""
    if not rows:
        return _Layout(label=1, text=0, width=2)
    found = chosen_columns(columns, rows, name)
    text, label = found.places
    return _Layout(label, text, found.width, named=2 if found.header else 0)


def _may_be_header(rows: Sequence[Sequence[str]], layout: _Layout, known: Collection[str]) -> bool:
    """Whether no other row has the first row's label, and it names a column or all other labels occur repeatedly."""
    labels = [row[layout.label] for row in rows if layout.fits(row)]
    if not layout.fits(rows[0]) or not labels[0] or labels[0] in known:
        return False
    counts = Counter(labels[1:])
    return labels[0] not in counts and (layout.named > 0 or (len(labels) > 4 and min(counts.values()) > 1))


def _layout(sample: SampleRows, name: str, known: Collection[str]) -> _Layout:
    if not sample:
        return _Layout(label=0, text=1, width=2)
    rows = [cells for _, cells in sample]
    header = rows[0]
    labels, texts = ([header.index(each) for each in _named(role, header)] for role in ("label", "text"))
    if labels and texts and len(header) >= usual_width(rows):
        return _Layout(labels[0], texts[0], filled(header), named=2)
    width = _usual_width(rows, name)
    cells = [row for row in rows if len(row) == width]
    for columns in (labels, texts):  # a single name may be a label or a text itself; then it occurs again
        if columns and (len(header) != width or sum(row[columns[0]] == rows[0][columns[0]] for row in cells) > 1):
            columns.clear()
    columns = labels[:1] or [column for column in range(width) if column not in texts]
    label = _label_column(cells, columns, known)
    others = [column for column in range(width) if column != label]
    text = max(texts[:1] or others, key=lambda column: sum(len(row[column]) for row in cells))
    if width > 2 and not known and len(_columns_of_classes(cells, columns)) > 1:
        raise InputError(ask_for_columns(sample, name, "the text and the label", (text, label)))
    # Nameless columns at the end that are empty in most lines do not count: they hold the rest of a text with a tab.
    width = max(label + 1, text + 1, filled(rows[0][:width]), median_high(map(filled, cells)))
    return _Layout(label, text, width, bool(labels) + bool(texts))


def _label_column(rows: Sequence[Sequence[str]], columns: Sequence[int], known: Collection[str]) -> int:
    """Of these columns the one with the most known labels, or else with the fewest different values.
    A column with one value, such as the origin of the texts, holds the labels only if no other column can: one whose
    values occur twice each on average, beside a column that can be the text."""
    classes = _columns_of_classes(rows, columns)

    def rank(column: int) -> tuple[int, bool, int, int]:
        cells = [row[column] for row in rows if row[column]]
        kinds = len(set(cells)) or len(rows)
        return -sum(cell in known for cell in cells), column not in classes, kinds, column

    return min(columns, key=rank)


def _columns_of_classes(rows: Sequence[Sequence[str]], columns: Sequence[int]) -> list[int]:
    """Those of the columns that can hold labels: several values, which occur twice each on average, beside a column
    that can be the text."""
    # The first row may be a header.
    varied = [column for column in range(len(rows[0])) if len({row[column] for row in rows[1:]} - {""}) > 1]
    filled_cells = {column: [row[column] for row in rows if row[column]] for column in columns}
    return [
        column
        for column, cells in filled_cells.items()
        if len(varied) > 1 and column in varied and 2 * len(set(cells)) <= len(cells)
    ]


def _usual_width(rows: Sequence[Sequence[str]], name: str) -> int:
    """The number of columns that more than half of the lines have; empty lines do not count."""
    widths = Counter(len(row) for row in rows if any(row))
    [(width, count)] = widths.most_common(1) or [(1, 0)]
    if width > 1 and count * 2 <= widths.total():
        raise InputError(
            f"{name}: its lines have {', '.join(map(str, sorted(widths)))} columns, and none of these numbers is that "
            "of most lines. Write no tabs in the texts (in a .csv file, put texts with commas in quotes), or name the "
            "columns in a first line: label, text and any others."
        )
    if width < 2:
        raise InputError(
            f"{name}: has one column in most lines. Give a label and a text in each, with a tab between them (or a "
            "comma, in a .csv file)."
        )
    return width
