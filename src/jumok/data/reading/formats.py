"""One file that holds both sides: TSV, CSV, JSONL, TMX → numbered records of two sides, undecoded and unjudged."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jumok.data.reading.languages import Languages, is_language_code, only_two, same_language
from jumok.data.reading.lines import (
    MAX_LINE_BYTES,
    NO_TEXTS,
    Damage,
    Record,
    Side,
    TooLong,
    byte_lines,
    display_name,
    text_of,
    without_compression,
)
from jumok.data.reading.tmx import tmx_records
from jumok.errors import InputError

Row: TypeAlias = tuple[int, Sequence[bytes] | Sequence[str] | Damage]

TOO_FEW_COLUMNS = Damage("fewer columns than needed")
BAD_CSV = Damage("not valid CSV")
BAD_JSON = Damage("not valid JSON")
NO_OBJECT = Damage("not a JSON object, {…}; one object a line is wanted")

_ROLE_NAMES = (("src", "tgt"), ("src", "trg"), ("source", "target"))


def read_single_file(path: str | Path, languages: Languages | None) -> Iterator[Record]:
    """The records of a file that holds both sides. The format follows from the name; without one we know, it is TSV."""
    suffix = without_compression(path).suffix.lower()
    if suffix in (".jsonl", ".ndjson", ".json"):
        return _jsonl_records(path, languages)
    if suffix == ".tmx":
        return tmx_records(path, languages)
    return _table_records(table_rows(path), display_name(path), languages)


def table_rows(path: str | Path) -> Iterator[Row]:
    """The numbered rows of a CSV file, or of a TSV file: whatever is not named .csv."""
    return _csv_rows(path) if without_compression(path).suffix.lower() == ".csv" else _tsv_rows(path)


def _table_records(rows: Iterator[Row], name: str, languages: Languages | None) -> Iterator[Record]:
    source, target = 0, 1
    for number, cells in rows:
        if isinstance(cells, Damage):
            yield number, cells, cells
            continue
        if number == 1:
            header = _header_columns([lenient(cell) for cell in cells], name, languages)
            if header:
                source, target = header
                continue
        if len(cells) <= max(source, target):
            yield number, TOO_FEW_COLUMNS, TOO_FEW_COLUMNS
        else:
            yield number, cells[source], cells[target]


def _header_columns(cells: list[str], name: str, languages: Languages | None) -> tuple[int, int] | None:
    """Which columns the first line says are source and target, if it is a header."""
    names = [cell.strip() for cell in cells]
    if languages:
        return _index_of(languages[0], names, name), _index_of(languages[1], names, name)
    lowered = [each.lower() for each in names]
    for roles in _ROLE_NAMES:
        if set(roles) <= set(lowered):
            return lowered.index(roles[0]), lowered.index(roles[1])
    codes = [index for index, each in enumerate(names) if is_language_code(each)]
    if len(codes) >= 2 and lowered[codes[0]] != lowered[codes[1]]:
        return codes[0], codes[1]
    return None


def _index_of(language: str, names: Sequence[str], where: str) -> int:
    for index, name in enumerate(names):
        if same_language(name, language):
            return index
    raise InputError(f'{where}: no language "{language}"; there are: {", ".join(names) or "none"}.')


def lenient(cell: bytes | str) -> str:
    """A cell as text, however damaged: to look at, not to keep."""
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell


def _tsv_rows(path: str | Path) -> Iterator[Row]:
    for number, line in enumerate(byte_lines(path), 1):
        yield number, line if isinstance(line, Damage) else line.split(b"\t")


def _csv_rows(path: str | Path) -> Iterator[Row]:
    # The limit belongs to the whole process, hence it is only ever raised; _CsvLines stops before it is reached.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES + 1))
    lines = _CsvLines(path)
    rows = csv.reader(lines)
    while True:
        lines.begin_record()
        try:
            row: Sequence[str] | Damage = next(rows)
        except StopIteration:
            return
        except csv.Error:
            row = BAD_CSV
        yield lines.start, lines.damage or row


class _CsvLines(Iterator[str]):
    """Feeds the csv module and knows what it does not tell: where a record began, and that it has no end."""

    def __init__(self, path: str | Path) -> None:
        self._lines = byte_lines(path)
        self._name = display_name(path)
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
        if line is None or self._bytes > MAX_LINE_BYTES:
            raise InputError(
                f"{self._name}:{self.start}: a quoted field begins here and has no end "
                f"{'in the file' if line is None else f'within {MAX_LINE_BYTES:,} bytes'}. Close its quotes."
            )
        self._number += 1
        if isinstance(line, TooLong):
            # The text is gone, but whether quotes are open after it decides how the next lines are read.
            self.damage = line
            return '"\n' if line.quotes % 2 else "\n"
        self._bytes += len(line) + 1
        return line.decode("utf-8", "surrogateescape") + "\n"


def _jsonl_records(path: str | Path, languages: Languages | None) -> Iterator[Record]:
    for number, line in enumerate(byte_lines(path), 1):
        value = json_value(line)
        if isinstance(value, Damage):
            yield number, value, value
            continue
        texts = value.get("translation")
        if isinstance(texts, dict):
            languages = languages or only_two(list(texts), f"{display_name(path)}:{number}")
            yield number, *_texts_under((languages,), texts)
        else:
            yield number, *_texts_under((languages,) if languages else _ROLE_NAMES, value)


def json_value(line: bytes | Damage) -> dict[str, Any] | Damage:
    """The object in a line of JSON."""
    text = text_of(line)
    if isinstance(text, Damage):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return BAD_JSON
    return value if isinstance(value, dict) else NO_OBJECT


def _texts_under(names: Sequence[Languages], texts: dict[str, Any]) -> tuple[Side, Side]:
    for source_name, target_name in names:
        source, target = texts.get(source_name), texts.get(target_name)
        if isinstance(source, str) and isinstance(target, str):
            return source, target
    return NO_TEXTS, NO_TEXTS
