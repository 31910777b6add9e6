"""Tables as text, CSV and TSV, → rows. Finds the separator, and keeps a quote that is not closed from costing more than
its own row."""

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TypeAlias

from jumok.data.examples import FileLayout
from jumok.data.reading import lines
from jumok.data.reading.columns import sample_rows
from jumok.data.reading.headers import says_what_it_is
from jumok.data.reading.languages import is_language_code
from jumok.data.reading.lines import Damage, Row, TooLong
from jumok.data.reading.single_quotes import is_single_quoted, swap_quotes
from jumok.errors import InputError

Line: TypeAlias = tuple[int, bytes | Damage]

BAD_CSV = Damage("not valid CSV")
OPEN_QUOTE = Damage("a quote opens here and is not closed")
LOOKED_AT = 200  # rows that decide what the columns of a table are
_SEPARATORS = ",;\t|"
_NAMES = {"\t": "tab"}
_SEP_LINE = re.compile(rb'"?sep=(.)"?', re.IGNORECASE)
_ENCLOSED = re.compile(rb'"(?:[^"\n]|"")*"')
_OPENS = re.compile(rb' *"')
_QUOTED = re.compile(rb' *"((?:[^"]++|"")*+)" *')
_MOST_TRIES = 200  # to find the end of a record; a cell of a spreadsheet has at most 32,767 characters
_PUNCTUATION_SHARE = 0.5


def delimited_rows(
    numbered: Iterator[Line], layout: FileLayout, separator: str | None, *, is_csv: bool
) -> Iterator[Row]:
    """The numbered rows of a CSV or TSV file. `separator`: as the user said; else as the file looks like."""
    source = _PushBack(numbered)
    if is_csv and (said := _said_in_first_line(source)):
        separator = separator or said
    head = list(islice(source, LOOKED_AT))
    if is_csv and len(head) == 1 and isinstance(head[0][1], bytes) and b"\r" in head[0][1]:
        head = list(enumerate(head[0][1].split(b"\r"), 1))  # "CSV (Macintosh)", as Excel still offers it
    source.push_back(head)
    sample = [line for _, line in head if isinstance(line, bytes)]
    if is_csv and is_single_quoted(sample, separator or _SEPARATORS):
        layout.quotes = "single"
        swapped = _PushBack((number, _swapped(line)) for number, line in source)
        rows = _rows_of(swapped, list(map(swap_quotes, sample)), layout, separator, is_csv=True)
        return (
            (number, cells if isinstance(cells, Damage) else list(map(swap_quotes, cells))) for number, cells in rows
        )
    return _rows_of(source, sample, layout, separator, is_csv=is_csv)


def _rows_of(
    source: "_PushBack", sample: Sequence[bytes], layout: FileLayout, separator: str | None, *, is_csv: bool
) -> Iterator[tuple[int, list[bytes] | Damage]]:
    """The rows of a file whose quotes are double ones. `sample` are its first lines."""
    if separator is None and is_csv:
        separator = _find_separator(sample, layout.file)
    if separator is None and not _has_quoted_fields(sample):
        return ((number, line if isinstance(line, Damage) else line.split(b"\t")) for number, line in source)
    separator = separator or "\t"
    layout.separator = _NAMES.get(separator, separator)
    return _quoted_rows(source, separator.encode(), layout.suspicious_lines)


def _swapped(line: bytes | Damage) -> bytes | Damage:
    """A line with its kinds of quotes swapped. Of one that is too long, only the double quotes were counted."""
    if isinstance(line, bytes):
        return swap_quotes(line)
    return TooLong() if isinstance(line, TooLong) else line


class _PushBack(Iterator[Line]):
    """Numbered lines that can be given back."""

    def __init__(self, numbered: Iterator[Line]) -> None:
        self._returned: deque[Line] = deque()
        self._rest = numbered

    def __next__(self) -> Line:
        return self._returned.popleft() if self._returned else next(self._rest)

    def push_back(self, numbered: Sequence[Line]) -> None:
        self._returned.extendleft(reversed(numbered))


def _said_in_first_line(source: _PushBack) -> str | None:
    """The separator of a first line `sep=;`, as spreadsheets write and read it. The line is taken out."""
    first = next(source, None)
    if first is None:
        return None
    said = _SEP_LINE.fullmatch(first[1]) if isinstance(first[1], bytes) else None
    if said is None:
        source.push_back([first])
        return None
    return said[1].decode("latin-1")


def _quoted_rows(
    source: _PushBack, separator: bytes, suspicious: list[int]
) -> Iterator[tuple[int, list[bytes] | Damage]]:
    for number, line in source:
        if isinstance(line, TooLong) and line.quotes % 2:
            # The text is dropped, but a quoted field that opened in it ends where the next line with a quote says.
            yield number, _skip_to_closing_quote(source) or line
        elif isinstance(line, Damage):
            yield number, line
        elif b'"' not in line:
            yield number, BAD_CSV if b"\r" in line else line.split(separator)
        else:
            cells, taken = _record(line, source, separator)
            if taken and not isinstance(cells, Damage) and _swallows_rows(cells, separator):
                suspicious.append(number)
            yield number, cells


def _skip_to_closing_quote(source: _PushBack) -> Damage | None:
    skipped: list[Line] = []
    size = 0
    for number, line in source:
        skipped.append((number, line))
        quotes = line.quotes if isinstance(line, TooLong) else line.count(b'"') if isinstance(line, bytes) else 0
        size += len(line) if isinstance(line, bytes) else 0
        if quotes % 2:
            return None
        if size > lines.MAX_LINE_BYTES:
            break
    source.push_back(skipped)
    return OPEN_QUOTE


def _record(line: bytes, source: _PushBack, separator: bytes) -> tuple[list[bytes] | Damage, int]:
    """The cells of a record and how many further lines it takes. If it does not end as it should, these are given back:
    an open quote costs its own line."""
    taken: list[Line] = []
    parts, size, tries = [line], len(line), 0
    cells = _cells(line, separator)
    while cells is None and tries < _MOST_TRIES:  # a quoted field is open at the end of the line
        following = next(source, None)
        if following is None:
            break
        taken.append(following)
        if isinstance(following[1], Damage):
            if isinstance(following[1], TooLong) and following[1].quotes % 2:  # the field ended in this line
                return following[1], len(taken)
            continue
        parts.append(following[1])
        size += len(following[1])
        if size > lines.MAX_LINE_BYTES:
            break
        if b'"' in following[1]:
            tries += 1
            cells = _cells(b"\n".join(parts), separator)
    if cells is BAD_CSV:
        return BAD_CSV, len(taken)
    if cells is None or isinstance(cells, Damage):
        source.push_back(taken)
        return OPEN_QUOTE, 0
    if any(isinstance(each, Damage) for _, each in taken):
        return next(each for _, each in taken if isinstance(each, Damage)), len(taken)
    return cells, len(taken)


def _cells(text: bytes, separator: bytes) -> list[bytes] | Damage | None:
    """The cells of a record; None if a quoted field is open at its end, OPEN_QUOTE if one ends where it should not,
    having run over lines. Within a line, a quote that does not enclose a field is a character like others."""
    cells, place = [], 0
    while True:
        opens = _OPENS.match(text, place)
        quoted = _QUOTED.match(text, place) if opens else None
        if quoted and text[quoted.end() : quoted.end() + 1] in (b"", separator):
            cells.append(quoted[1].replace(b'""', b'"'))
            end = quoted.end()
        elif quoted and b"\n" in quoted[0]:
            return OPEN_QUOTE
        elif opens and not quoted:
            return None
        else:
            end = text.find(separator, place)
            end = len(text) if end < 0 else end
            cells.append(text[place:end])
            if b"\r" in cells[-1]:
                return BAD_CSV
        if end >= len(text):
            return cells
        place = end + 1


def _swallows_rows(cells: Sequence[bytes], separator: bytes) -> bool:
    """Whether a cell of several lines looks like a quote that was closed only in a later row: its further lines have as
    many separators as a row."""
    return any(
        all(part.count(separator) == len(cells) - 1 for part in cell.split(b"\n")[1:])
        for cell in cells
        if b"\n" in cell
    )


def _find_separator(sample: Sequence[bytes], name: str) -> str:
    """The separator by which most rows have the same number of columns, two at least; a comma if there is none."""
    fits: dict[str, tuple[bool, float]] = {}
    for separator in _SEPARATORS:
        rows = _sample_rows(sample, separator.encode())
        widths = Counter(map(len, rows))
        [(width, count)] = widths.most_common(1) or [(1, 0)]
        if width >= 2 and count * 2 > len(rows) and not _is_punctuation(sample, separator):
            named = sum(says_what_it_is(cell) or is_language_code(cell) for cell in rows[0]) >= 2
            fits[separator] = named, count / len(rows)
    best = sorted(fits, key=lambda separator: fits[separator], reverse=True)
    if len(best) > 1 and fits[best[0]] == fits[best[1]]:
        shown = " or ".join(f'"{_NAMES.get(each, each)}"' for each in best if fits[each] == fits[best[0]])
        raise InputError(f'{name}: the columns may be separated by {shown}. Say which: `separator="{best[0]}"`.')
    return best[0] if best else ","


def _sample_rows(sample: Sequence[bytes], separator: bytes) -> list[Sequence[str]]:
    rows = _quoted_rows(_PushBack(iter(list(enumerate(sample, 1)))), separator, [])
    return [cells for _, cells in sample_rows(rows)]


def _is_punctuation(sample: Sequence[bytes], separator: str) -> bool:
    """Whether a character is mostly followed by a space or stands between digits, as in texts, not between columns."""
    text = _ENCLOSED.sub(b'""', b"\n".join(sample))
    sign = re.escape(separator.encode())
    in_texts = re.findall(sign + rb" (?! *\")|(?<=\d)" + sign + rb"(?=\d)", text)
    return len(in_texts) > _PUNCTUATION_SHARE * text.count(separator.encode())


def _has_quoted_fields(sample: Sequence[bytes]) -> bool:
    """Whether a TSV file encloses fields in quotes, as spreadsheets do: every field that begins with a quote is closed,
    and one of them contains a doubled quote or a line end, or all fields that are not numbers are enclosed."""
    source = _PushBack(iter(list(enumerate(sample, 1))))
    plain = signs = enclosed = 0
    for _, line in source:
        assert isinstance(line, bytes)
        cells, taken = _record(line, source, b"\t") if b'"' in line else ([], 0)
        if isinstance(cells, Damage) or any(b"\t" in cell for cell in cells):
            return False  # these are quotation marks, which may well be closed in a later row
        written = [] if taken else [cell for cell in line.split(b"\t") if cell and not cell.isdigit()]
        quoted = [cell for cell in written if cell.startswith(b'"')]
        if not all(map(_QUOTED.fullmatch, quoted)):
            return False
        signs += bool(taken) or any(b'""' in cell[1:-1] for cell in quoted)
        enclosed += len(quoted)
        plain += len(written) - len(quoted)
    return bool(signs or (enclosed and not plain and len(sample) > 1))
