"""Files that hold source and target: tables, JSONL, TMX → records, neither decoded nor checked."""

import json
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jumok.data.examples import Column, FileLayout, Rejections
from jumok.data.reading import lines
from jumok.data.reading.columns import pair_columns, sample_rows, without_title
from jumok.data.reading.delimited import LOOKED_AT
from jumok.data.reading.headers import language_of, side_of
from jumok.data.reading.languages import Languages, only_two, same_language
from jumok.data.reading.lines import Damage, Record, Side, format_of
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.tables import TABLES, table_rows, text_lines
from jumok.data.reading.tmx import tmx_records
from jumok.errors import InputError

JSON_LINES = (".jsonl", ".ndjson", ".json")
BAD_JSON = Damage("not valid JSON")
REPEATED_KEY = Damage("a key that occurs twice in a JSON object")
NO_OBJECT = Damage("not a JSON object, {…}; one object a line is wanted")


def read_single_file(path: str | Path, options: ReadingOptions, rejections: Rejections) -> Iterator[Record]:
    """The records of a file that holds both sides. Its name says the format; if it is none we know, it is TSV."""
    if format_of(path) in JSON_LINES:
        return _jsonl_records(path, options, rejections)
    if format_of(path) == ".tmx":
        layout = FileLayout(lines.display_name(path))
        rejections.layouts.append(layout)
        return tmx_records(path, options, layout)
    return _table_records(path, options, rejections)


def holds_both_sides(path: str | Path) -> bool:
    """Whether a file's name says that both sides of a corpus stand in it: a table, JSONL or TMX, also compressed."""
    return format_of(path) in (*TABLES, ".jsonl", ".ndjson", ".tmx")


def _table_records(path: str | Path, options: ReadingOptions, rejections: Rejections) -> Iterator[Record]:
    layout = FileLayout(lines.display_name(path))
    rows = table_rows(path, options, layout)
    first = list(islice(rows, LOOKED_AT))
    sample = sample_rows(first)
    if format_of(path) not in TABLES and sample and all(len(cells) == 1 for _, cells in sample):
        raise InputError(
            f"{layout.file}: has one text in each line; the file with their translations is missing. Give both, line n "
            "of one the translation of line n of the other; or one table, JSONL or TMX file with both sides."
        )
    readable = without_title(sample)  # a damaged or blank line or a title may come before the header
    columns = pair_columns(readable, layout.file, options)
    columns.describe(layout, ("source", "target"))
    rejections.layouts.append(layout)
    skipped = {number for number, _ in sample[: len(sample) - len(readable) + 1]} if columns.header else ()
    for number, cells in chain(first, rows):
        if number not in skipped:  # titles and the header
            source, target = columns.cells(cells)
            yield number, source, target


def _jsonl_records(path: str | Path, options: ReadingOptions, rejections: Rejections) -> Iterator[Record]:
    layout = FileLayout(lines.display_name(path))
    rejections.layouts.append(layout)
    keys: Languages | None = None
    for number, line in enumerate(text_lines(path, options, layout), 1):
        value = json_value(line)
        if isinstance(value, Damage):
            yield number, value, value
            continue
        nested = value.get("translation")
        texts = nested if isinstance(nested, dict) else value
        keys = keys or _keys_of_sides(texts, options, f"{layout.file}:{number}", nested=texts is nested)
        if keys and not layout.columns:
            layout.columns = {
                side: Column(None, key, language_of(key)) for side, key in zip(("source", "target"), keys, strict=True)
            }
        yield number, *_texts_under(keys, texts, chosen=texts is nested and options.languages is not None)


def _keys_of_sides(texts: dict[str, Any], options: ReadingOptions, where: str, *, nested: bool) -> Languages | None:
    """The keys of source and target: as chosen, or by what they are called; None if this object has none."""
    if options.languages or options.columns:
        chosen = options.languages or options.columns
        return chosen[0], chosen[1]
    names = [key for key, text in texts.items() if isinstance(text, str)]
    if nested:
        return only_two(names, where)
    sources, targets = ([name for name in names if side_of(name) == side] for side in ("source", "target"))
    if sources and targets:
        return sources[0], targets[0]
    languages = [name for name in names if language_of(name)]
    return only_two(languages, where) if len(languages) > 1 else None


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


def _texts_under(keys: Languages | None, texts: dict[str, Any], *, chosen: bool) -> tuple[Side, Side]:
    if keys is not None:
        source, target = (_value_under(key, texts) for key in keys)
        if isinstance(source, str) and isinstance(target, str):
            return source, target
        if chosen and None in (source, target):
            return lines.OTHER_LANGUAGES, lines.OTHER_LANGUAGES
    return lines.NO_TEXTS, lines.NO_TEXTS


def _value_under(name: str, texts: dict[str, Any]) -> Any:
    if name in texts:
        return texts[name]
    return next((text for key, text in texts.items() if same_language(language_of(key) or key, name)), None)
