"""Tables and JSON lines that name pictures: which column holds the paths, and which the labels or captions."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from jumok.data.examples import Column, FileLayout, Rejections
from jumok.data.reading.columns import (
    SampleRows,
    TableColumns,
    ask_for_columns,
    chosen_columns,
    sample_rows,
    usual_width,
)
from jumok.data.reading.delimited import LOOKED_AT
from jumok.data.reading.formats import JSON_LINES, json_value
from jumok.data.reading.headers import is_name_of
from jumok.data.reading.labelled import label_of
from jumok.data.reading.lines import Damage, Side, display_name, format_of, text_of
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.tables import table_rows, text_lines
from jumok.errors import InputError
from jumok.pictures import PICTURE_SUFFIXES

NamedPicture = tuple[str, str | Damage, str | Damage]
"""Where it stands, the path of a picture, and its label or caption."""

_CAPTIONS = frozenset({"caption", "captions", "description", "title", "prompt", "alt", "캡션", "설명", "제목", "说明"})


def has_paths_of_pictures(path: Path, options: ReadingOptions) -> bool:
    """Whether most rows of a table, or most objects of a file of JSON lines, name a picture."""
    layout = FileLayout(str(path))
    try:
        if format_of(path) in JSON_LINES:
            return _key_of_paths(_first_objects(path, options, layout)) is not None
        return bool(_columns_of_paths(sample_rows(islice(table_rows(path, options, layout), LOOKED_AT))))
    except InputError:
        return False  # the reader of texts says what is wrong


def paths_with_labels(
    path: Path, options: ReadingOptions, rejections: Rejections, role: str = "label"
) -> Iterator[NamedPicture]:
    """The paths of pictures with their labels, or with captions if that is the `role` of the other column.
    InputError if it is not certain which columns hold them."""
    layout = FileLayout(display_name(path))
    rejections.layouts.append(layout)
    found = _in_json if format_of(path) in JSON_LINES else _in_table
    for number, picture, label in found(path, options, layout, role):
        yield f"{layout.file}:{number}", text_of(picture), label_of(label) if role == "label" else text_of(label)


def _in_table(path: Path, options: ReadingOptions, layout: FileLayout, role: str) -> Iterator[tuple[int, Side, Side]]:
    rows = table_rows(path, options, layout)
    first = list(islice(rows, LOOKED_AT))
    sample = sample_rows(first)
    if not sample:
        return
    columns = _columns(sample, options, str(path), role)
    columns.describe(layout, ("picture", role))
    for number, row in chain(first, rows):
        if not (columns.header and number == sample[0][0]):
            picture, label = columns.cells(row)
            yield number, picture, label


def _columns(rows: SampleRows, options: ReadingOptions, name: str, role: str) -> TableColumns:
    """The columns of paths and labels: as chosen, or by what they hold, and of several labels by the header."""
    names = rows[0][1]
    if options.columns:
        places = chosen_columns(options.columns, rows, name).places
    else:
        paths = _columns_of_paths(rows)
        others = [place for place in range(usual_width([row for _, row in rows])) if place not in paths]
        header = names if paths and not _names_picture(_cell(names, paths[0])) else []
        named = [place for place in others if _is_name_of(role, _cell(header, place))]
        if len(paths) != 1 or len(named or others) != 1:
            example = list(dict.fromkeys((*paths[:1], *named, *others, 0, 1)))[:2]
            raise InputError(ask_for_columns(rows, name, f"the picture and the {role}", example))
        places = paths[0], (named or others)[0]
    has_header = not _names_picture(_cell(names, places[0]))
    width = max(usual_width([row for _, row in rows]), *(place + 1 for place in places))
    return TableColumns(places, width, names if has_header else ())


def _is_name_of(role: str, name: str) -> bool:
    if role == "label":
        return is_name_of("label", name)
    return name.strip().lower() in _CAPTIONS or is_name_of("text", name)


def _cell(row: Sequence[str], place: int) -> str:
    return row[place] if place < len(row) else ""


def _columns_of_paths(rows: SampleRows) -> list[int]:
    """The columns in which most cells name a picture."""
    if not rows:
        return []
    cells = [row for _, row in rows]
    named = [sum(_names_picture(_cell(row, place)) for row in cells) for place in range(usual_width(cells))]
    return [place for place, count in enumerate(named) if 2 * count > len(rows)]


def _names_picture(cell: object) -> bool:
    return isinstance(cell, str) and cell.strip().lower().endswith(PICTURE_SUFFIXES)


def _in_json(path: Path, options: ReadingOptions, layout: FileLayout, role: str) -> Iterator[tuple[int, Side, Side]]:
    keys = tuple(options.columns) or _keys(_first_objects(path, options, layout), str(path), role)
    layout.columns = {name: Column(None, key) for name, key in zip(("picture", role), keys, strict=True)}
    for number, line in enumerate(text_lines(path, options, layout), 1):
        value = json_value(line)
        if isinstance(value, Damage):
            yield number, value, value
        else:
            picture, label = (_text_under(key, value) for key in keys)
            yield number, picture, label


def _text_under(key: str, value: dict[str, Any]) -> Side:
    found = value.get(key)
    if isinstance(found, bool):
        return str(found).lower()
    return str(found) if isinstance(found, str | int) else Damage(f'no text under "{key}"')


def _first_objects(path: Path, options: ReadingOptions, layout: FileLayout) -> list[dict[str, Any]]:
    lines = islice(text_lines(path, options, layout), LOOKED_AT)
    return [value for value in map(json_value, lines) if isinstance(value, dict)]


def _key_of_paths(values: Sequence[dict[str, Any]]) -> str | None:
    """The key under which most objects name a picture."""
    keys = dict.fromkeys(key for value in values for key in value)
    found = (key for key in keys if 2 * sum(_names_picture(value.get(key)) for value in values) > len(values))
    return next(found, None)


def _keys(values: Sequence[dict[str, Any]], name: str, role: str) -> tuple[str, str]:
    picture = _key_of_paths(values)
    others = list(dict.fromkeys(key for value in values for key in value if key != picture))
    labels = [key for key in others if _is_name_of(role, key)] or others
    if picture is None or len(labels) != 1:
        raise InputError(
            f"{name}: it is not certain under which keys the path of a picture and its {role} are. Choose them, "
            f'for example: `columns=("{picture or "path"}", "{labels[0] if labels else role}")`.'
        )
    return picture, labels[0]
