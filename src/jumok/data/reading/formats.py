"""Files that hold source and target: TSV, CSV, JSONL, TMX → records, neither decoded nor checked."""

import csv
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from jumok.data.examples import Rejections
from jumok.data.reading import lines
from jumok.data.reading.languages import Languages, is_language_code, only_two, same_language
from jumok.data.reading.lines import EMPTY, Damage, Record, Side, format_of
from jumok.data.reading.tmx import tmx_records
from jumok.errors import InputError

Row: TypeAlias = tuple[int, Sequence[bytes] | Sequence[str] | Damage]

JSON_LINES = (".jsonl", ".ndjson", ".json")
LOOKED_AT = 200  # rows that decide what the columns of a table are
TOO_FEW_COLUMNS = Damage("fewer columns than needed")
NOT_AS_THE_HEADER = Damage("another number of columns than the header")
NOT_AS_MOST_LINES = Damage("another number of columns than most lines have")
BAD_CSV = Damage("not valid CSV")
BAD_JSON = Damage("not valid JSON")
REPEATED_KEY = Damage("a key that occurs twice in a JSON object")
NO_OBJECT = Damage("not a JSON object, {…}; one object a line is wanted")

_ROLE_NAMES = (("src", "tgt"), ("src", "trg"), ("source", "target"))


def read_single_file(path: str | Path, languages: Languages | None, rejections: Rejections) -> Iterator[Record]:
    """The records of a file that holds both sides. Its name says the format; if it is none we know, it is TSV."""
    if format_of(path) in JSON_LINES:
        return _jsonl_records(path, languages)
    if format_of(path) == ".tmx":
        return tmx_records(path, languages)
    return _table_records(path, languages, rejections)


def holds_both_sides(path: str | Path) -> bool:
    """Whether a file's name says that both sides of a corpus stand in it: a table, JSONL or TMX, also compressed."""
    return format_of(path) in (".tsv", ".csv", ".jsonl", ".ndjson", ".tmx")


def table_rows(path: str | Path) -> Iterator[Row]:
    """The numbered rows of a table: CSV if it is named .csv, else TSV."""
    if format_of(path) == ".csv":
        return _csv_rows(path)
    numbered = enumerate(lines.byte_lines(path), 1)
    return ((number, line if isinstance(line, Damage) else line.split(b"\t")) for number, line in numbered)


@dataclass(frozen=True)
class _PairColumns:
    """Where a table has source and target, and how many columns its rows have."""

    source: int
    target: int
    width: int
    header: Sequence[str] = ()
    chosen: bool = False  # by name, so that other columns are unused on purpose

    def sides(self, cells: Sequence[bytes] | Sequence[str] | Damage) -> tuple[Side, Side]:
        if isinstance(cells, Damage):
            return cells, cells
        if not any(cells):
            return EMPTY, EMPTY
        if len(cells) > self.width and filled(cells) > self.width:
            # A tab or comma inside a text has moved the cells after it: what is left of the text is not all of it.
            damage = NOT_AS_THE_HEADER if self.header else NOT_AS_MOST_LINES
            return damage, damage
        if len(cells) <= max(self.source, self.target):
            return TOO_FEW_COLUMNS, TOO_FEW_COLUMNS
        return cells[self.source], cells[self.target]

    def unused(self) -> list[str]:
        """Number, and name if there is one, of each column that is neither, unless source and target were named."""
        others = [] if self.chosen else [n for n in range(self.width) if n not in (self.source, self.target)]
        return [f'{n + 1} ("{self.header[n]}")' if self.header else str(n + 1) for n in others]


def _table_records(path: str | Path, languages: Languages | None, rejections: Rejections) -> Iterator[Record]:
    rows = table_rows(path)
    first = list(islice(rows, LOOKED_AT))
    readable = [  # a damaged or blank line may come before the header
        (number, [lenient(cell).strip() for cell in cells])
        for number, cells in first
        if not isinstance(cells, Damage) and any(cells)
    ]
    columns = _pair_columns(readable, lines.display_name(path), languages)
    rejections.unused_columns += columns.unused()
    header_line = readable[0][0] if columns.header else None
    for number, cells in chain(first, rows):
        if number != header_line:
            yield number, *columns.sides(cells)


def _pair_columns(rows: Sequence[tuple[int, Sequence[str]]], name: str, languages: Languages | None) -> _PairColumns:
    """Source and target by the header, if the first row is one; else the first two columns."""
    if not rows:
        return _PairColumns(0, 1, width=2)
    number, names = rows[0]
    width = filled(names)
    lowered = [each.lower() for each in names]
    if languages:
        source, target = (_index_of(language, names, f"{name}:{number}") for language in languages)
        return _PairColumns(source, target, width, names, chosen=True)
    for roles in _ROLE_NAMES:
        if set(roles) <= set(lowered):
            return _PairColumns(lowered.index(roles[0]), lowered.index(roles[1]), width, names, chosen=True)
    codes = [index for index, each in enumerate(names) if is_language_code(each)]
    if len(codes) >= 2 and lowered[codes[0]] != lowered[codes[1]]:
        return _PairColumns(codes[0], codes[1], width, names)
    widths = Counter(filled(cells) for _, cells in rows)
    return _PairColumns(0, 1, width=max(2, max(widths, key=lambda width: (widths[width], width))))


def _index_of(language: str, names: Sequence[str], where: str) -> int:
    for index, name in enumerate(names):
        if same_language(name, language):
            return index
    raise InputError(f'{where}: no language "{language}"; there are: {", ".join(names) or "none"}.')


def filled(row: Sequence[str | bytes]) -> int:
    """Number of cells of a row without the blank ones at its end, as spreadsheets add them."""
    return max((place for place, cell in enumerate(row, 1) if cell.strip()), default=0)


def lenient(cell: bytes | str) -> str:
    """A cell as text, with U+FFFD for bytes that are not UTF-8: for comparisons, not to be kept."""
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell


def _csv_rows(path: str | Path) -> Iterator[Row]:
    # The limit is that of the process, so that it is only ever raised; _CsvLines stops before it is reached.
    csv.field_size_limit(max(csv.field_size_limit(), lines.MAX_LINE_BYTES + 1))
    source = _CsvLines(path)
    rows = csv.reader(source)
    while True:
        source.begin_record()
        try:
            row: Sequence[str] | Damage = next(rows)
        except StopIteration:
            return
        except csv.Error:
            row = BAD_CSV
        yield source.start, source.damage or row


class _CsvLines(Iterator[str]):
    """Lines for the csv module, which does not say where a record begins, or that a quoted field has no end."""

    def __init__(self, path: str | Path) -> None:
        self._lines = lines.byte_lines(path)
        self._name = lines.display_name(path)
        self._number = 0
        self.begin_record()

    def begin_record(self) -> None:
        self.start = self._number + 1
        self.damage: Damage | None = None
        self._bytes = 0

    def __next__(self) -> str:
        line = next(self._lines, None)
        if line is None and self._number < self.start:
            raise StopIteration
        if line is None or self._bytes > lines.MAX_LINE_BYTES:
            raise InputError(
                f"{self._name}:{self.start}: a quoted field begins here and has no end "
                f"{'in the file' if line is None else f'within {lines.MAX_LINE_BYTES:,} bytes'}. Close its quotes."
            )
        self._number += 1
        if isinstance(line, lines.TooLong):
            # The text is dropped, but whether quotes are open after it decides how the next lines are read.
            self.damage = line
            return '"\n' if line.quotes % 2 else "\n"
        self._bytes += len(line) + 1
        return line.decode("utf-8", "surrogateescape") + "\n"


def _jsonl_records(path: str | Path, languages: Languages | None) -> Iterator[Record]:
    for number, line in enumerate(lines.byte_lines(path), 1):
        value = json_value(line)
        if isinstance(value, Damage):
            yield number, value, value
        elif isinstance(texts := value.get("translation"), dict):
            languages = languages or only_two(list(texts), f"{lines.display_name(path)}:{number}")
            yield number, *_texts_under((languages,), texts)
        else:
            yield number, *_texts_under((languages,) if languages else _ROLE_NAMES, value)


def json_value(line: bytes | Damage) -> dict[str, Any] | Damage:
    """The object in a line of JSON."""
    text = lines.text_of(line)
    if isinstance(text, Damage):
        return text
    try:
        value = json.loads(text, object_pairs_hook=_unique_keys)
    except _RepeatedKeyError:  # which of the two is meant is not known
        return REPEATED_KEY
    except (ValueError, RecursionError):
        return BAD_JSON
    return value if isinstance(value, dict) else NO_OBJECT


class _RepeatedKeyError(Exception):
    pass


def _unique_keys(items: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(items)
    if len(value) < len(items):
        raise _RepeatedKeyError
    return value


def _texts_under(names: Sequence[Languages], texts: dict[str, Any]) -> tuple[Side, Side]:
    for pair in names:
        source, target = (_value_under(name, texts) for name in pair)
        if isinstance(source, str) and isinstance(target, str):
            return source, target
    return lines.NO_TEXTS, lines.NO_TEXTS


def _value_under(name: str, texts: dict[str, Any]) -> Any:
    if name in texts:
        return texts[name]
    return next((text for key, text in texts.items() if same_language(key, name)), None)
