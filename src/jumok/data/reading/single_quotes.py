"""CSV whose fields are enclosed in single quotes, as database tools write it."""

import re
from collections.abc import Sequence

from jumok.data.reading.headers import is_number

_SWAPPED = bytes.maketrans(b"'\"", b"\"'")
_MOST_PLAIN = 0.1  # share of fields without quotes, beside numbers, in a file that encloses all of them


def swap_quotes(text: bytes) -> bytes:
    """Single quotes for double ones, and the other way round, so that one parser reads both."""
    return text.translate(_SWAPPED)


def is_single_quoted(sample: Sequence[bytes], separators: Sequence[str]) -> bool:
    """Whether fields are enclosed in single quotes, with one of these separators: nearly all that are not numbers, or
    those alone that need it, so that every row has the same number of columns with it, and not without it."""
    return any(_is_single_quoted(sample, separator.encode()) for separator in separators)


def _is_single_quoted(sample: Sequence[bytes], separator: bytes) -> bool:
    rows = _rows(sample, separator)
    below = rows[1:] or rows  # a header may be without quotes
    enclosed = sum(is_enclosed for row in below for _, is_enclosed in row)
    plain = sum(not is_enclosed and not _is_value(text) for row in below for text, is_enclosed in row)
    if enclosed > 1 and plain <= _MOST_PLAIN * enclosed:
        return True
    widths = {len(row) for row in rows}
    starts_quoted = any(text.lstrip().startswith(b"'") for row in rows for text, is_enclosed in row if not is_enclosed)
    widths_without = {line.count(separator) + 1 for line in sample if line}
    return enclosed > 1 and not starts_quoted and len(widths) == 1 < len(widths_without) and widths != {1}


def _rows(sample: Sequence[bytes], separator: bytes) -> list[list[tuple[bytes, bool]]]:
    """Fields and whether they are enclosed, of every row. A field that is enclosed may have several lines."""
    sign = re.escape(separator)
    field = re.compile(rb"(\A|\n|%b)(?: *'((?:[^']++|'')*+)' *(?=%b|\n|\Z)|([^%b\n]*))" % (sign, sign, sign))
    rows: list[list[tuple[bytes, bool]]] = []
    for found in field.finditer(b"\n".join(line for line in sample if line)):
        before, enclosed, plain = found.groups()
        if before != separator:
            rows.append([])
        rows[-1].append((plain, False) if enclosed is None else (enclosed, True))
    return rows


def _is_value(text: bytes) -> bool:
    """Whether a field needs no quotes even where all texts have them."""
    shown = text.decode("utf-8", "replace").strip()
    return not shown or shown.upper() == "NULL" or is_number(shown)
