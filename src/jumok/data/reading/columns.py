"""Which columns of a table hold what: as chosen by the user, by the header, or the only ones there are. Else we ask."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from jumok.data.examples import Column, FileLayout, printable
from jumok.data.reading.headers import is_header, is_number, language_of, side_of
from jumok.data.reading.languages import is_language_code, same_language
from jumok.data.reading.lines import EMPTY, Damage, Row, Side
from jumok.data.reading.options import ReadingOptions
from jumok.errors import InputError, counted

SampleRows = Sequence[tuple[int, Sequence[str]]]
"""The first rows of a table that are not damaged or blank: line and cells."""

_IDENTIFIER = re.compile(r"(?=\S*(\d|\w[._:]\w))\S+")
TOO_FEW_COLUMNS = Damage("fewer columns than needed")
NOT_AS_THE_HEADER = Damage("another number of columns than the header")
NOT_AS_MOST_LINES = Damage("another number of columns than most lines have")
NOT_RECOGNISED = (
    "{where}: is not valid UTF-8, and its encoding was not recognised. Say which it is, for example: "
    '`encoding="cp1252"`.'
)
_EXAMPLE_CHARACTERS = 40


@dataclass(frozen=True)
class TableColumns:
    """Where a table has what is read, and how many columns its rows have."""

    places: tuple[int, ...]
    width: int
    header: Sequence[str] = ()  # empty: there is none

    def cells(self, row: Sequence[Side] | Damage) -> tuple[Side, ...]:
        """The cells that are read, or why the row cannot be used."""
        if isinstance(row, Damage):
            return (row,) * len(self.places)
        if not any(row):
            return (EMPTY,) * len(self.places)
        if len(row) > self.width and filled(row) > self.width:
            # A tab or comma inside a text has moved the cells after it: what is left of the text is not all of it.
            return (NOT_AS_THE_HEADER if self.header else NOT_AS_MOST_LINES,) * len(self.places)
        if len(row) <= max(self.places):
            return (TOO_FEW_COLUMNS,) * len(self.places)
        return tuple(row[place] for place in self.places)

    def describe(self, layout: FileLayout, roles: Sequence[str]) -> None:
        """Write into the layout which columns are read, and which are not."""
        layout.columns = {role: self._column(place) for role, place in zip(roles, self.places, strict=True)}
        layout.unused = [self._column(place) for place in range(self.width) if place not in self.places]
        layout.has_header = bool(self.header)

    def _column(self, place: int) -> Column:
        name = self.header[place] if place < len(self.header) else ""
        return Column(place + 1, name, language_of(name) if name else None)


def pair_columns(rows: SampleRows, name: str, options: ReadingOptions) -> TableColumns:
    """Source and target of a table: as chosen, or by its header, or its only two columns. Else InputError."""
    if not rows:
        return TableColumns((0, 1), width=2)
    number, names = rows[0]
    if options.languages:
        places = tuple(_place_of_language(language, names, f"{name}:{number}") for language in options.languages)
        return _below_header(places, rows, name)
    if options.columns:
        return chosen_columns(options.columns, rows, name)
    texts = [cells for _, cells in rows]
    sides = _sides_by_header(texts)
    if sides:
        return _below_header(sides, rows, name)
    width = usual_width(texts)
    if width > 2:
        raise InputError(ask_for_columns(rows, name, "source and target", longest_columns(texts, 2)))
    known = [cell for cell in names if side_of(cell) or (language_of(cell) and not is_language_code(cell))]
    if len(names) == 2 and len(known) == 1 and len(rows) > 1:
        if "\ufffd" in "".join(names):
            raise InputError(NOT_RECOGNISED.format(where=f"{name}:{number}"))
        raise InputError(
            f'{name}:{number}: "{names[0]}" and "{names[1]}" may be the names of the columns, or a pair. If they are '
            f"names, say so: `columns={literal(names)}`; if they are a pair: `columns=(1, 2)`."
        )
    return TableColumns((0, 1), width=max(2, width))


def chosen_columns(wanted: Sequence[str], rows: SampleRows, name: str) -> TableColumns:
    """The columns that were chosen, by names or numbers. Names are those of the first row."""
    _, names = rows[0]
    by_name = not all(map(str.isdigit, wanted))
    places = tuple(_place_of(each, rows, name) for each in wanted)
    if len(set(places)) < len(places):
        raise InputError(f"{name}: column {places[0] + 1} was chosen twice. Choose different ones.")
    texts = [cells for _, cells in rows]
    if by_name:
        return _below_header(places, rows, name)
    width = max(usual_width(texts), *(place + 1 for place in places))
    named = _sides_by_header(texts) or is_header(texts) or _names_languages(names)
    return TableColumns(places, width, names if named else ())


def _names_languages(names: Sequence[str]) -> bool:
    """Whether every column is named after another language, as in a table of more than two."""
    return len(names) > 2 and None not in (found := {language_of(name) for name in names}) and len(found) == len(names)


def _below_header(places: tuple[int, ...], rows: SampleRows, name: str) -> TableColumns:
    """Columns that the first row names. InputError if it names fewer than every row has: then they may be shifted."""
    number, names = rows[0]
    widths = [filled(cells) for _, cells in rows[1:]]
    width = usual_width([cells for _, cells in rows[1:]] or [names])
    if len(widths) > 1 and min(widths) > len(names):
        raise InputError(
            f"{name}:{number}: names {counted(len(names), 'column')}, but the rows have {width}. Correct this line, "
            f"or give the numbers of columns, counted from 1: `columns=`.\n{list_columns(rows)}"
        )
    return TableColumns(places, max(filled(names), min(width, len(names))), names)


def _place_of(wanted: str, rows: SampleRows, name: str) -> int:
    """The place of a column with this number or name; a language finds the column that is named after it."""
    number, names = rows[0]
    if wanted.isdigit():
        if not 1 <= int(wanted) <= max(len(cells) for _, cells in rows):
            raise InputError(f"{name}: has no column {wanted}.\n{list_columns(rows)}")
        return int(wanted) - 1
    plain = [" ".join(cell.lower().split()) for cell in names]
    tests: tuple[Callable[[int], bool], ...] = (
        lambda n: names[n] == wanted,
        lambda n: plain[n] == " ".join(wanted.lower().split()),
        lambda n: (tag := language_of(names[n])) is not None and same_language(tag, wanted),
    )
    for test in tests:
        found = [n for n in range(len(names)) if test(n)]
        if len(found) == 1:
            return found[0]
        if found:
            raise InputError(
                f'{name}:{number}: {len(found)} columns are named "{wanted}". Give the number of one: '
                f"{', '.join(str(n + 1) for n in found)}."
            )
    raise InputError(f'{name}:{number}: no column is named "{wanted}".\n{list_columns(rows)}')


def _place_of_language(language: str, names: Sequence[str], where: str) -> int:
    for index, name in enumerate(names):
        if same_language(language_of(name) or name, language):
            return index
    raise InputError(f'{where}: no language "{language}"; there are: {printable(", ".join(names)) or "none"}.')


def _sides_by_header(rows: Sequence[Sequence[str]]) -> tuple[int, int] | None:
    """Source and target if the first row says which they are: by these words, or by two languages."""
    names = rows[0]
    sources, targets = ([n for n, name in enumerate(names) if side_of(name) == side] for side in ("source", "target"))
    sources, targets = ([n for n in each if len(each) == 1 or not _holds_codes(rows, n)] for each in (sources, targets))
    languages = [n for n, name in enumerate(names) if language_of(name) and not side_of(name)]
    # "ID" is Indonesian, or the name of the row; "No" is Norwegian, or its number
    languages = [n for n in languages if not (is_language_code(names[n].strip()) and _holds_identifiers(rows, n))]
    if len(sources) == 1 and len(targets) == 1:
        return sources[0], targets[0]
    if len(languages) == 1 and len(sources) + len(targets) == 1:
        return (sources or languages)[0], (targets or languages)[0]
    different = len({language_of(names[n]) for n in languages}) == 2
    if len(languages) == 2 and different and not sources and not targets:
        return languages[0], languages[1]
    return None


def _holds_codes(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether a column names the languages of the texts, as "source_lang" may."""
    return all(is_language_code(row[place]) for row in rows[1:] if len(row) > place)


def _holds_identifiers(rows: Sequence[Sequence[str]], place: int) -> bool:
    """Whether a column holds numbers, or single words with a digit or joined by signs: "P-00001", "menu.file"."""
    cells = [row[place].strip() for row in rows[1:] if len(row) > place and row[place].strip()]
    return bool(cells) and all(is_number(cell) or _IDENTIFIER.fullmatch(cell) for cell in cells)


def longest_columns(rows: Sequence[Sequence[str]], count: int) -> list[int]:
    """So many columns with the most different words, in their order: probably what is meant."""
    width = max(map(len, rows))
    words = [{word for row in rows if len(row) > n for word in row[n].split() if word.isalpha()} for n in range(width)]
    return sorted(sorted(range(width), key=lambda n: -sum(map(len, words[n])))[:count])


def ask_for_columns(rows: SampleRows, name: str, roles: str, places: Sequence[int]) -> str:
    """The message that lists the columns, and names the option that chooses among them, with some for example."""
    texts = [cells for _, cells in rows]
    is_named = is_header(texts) or _names_languages(rows[0][1])
    names = [rows[0][1][place] for place in places if place < len(rows[0][1])] if is_named else []
    if any("\ufffd" in name for name in rows[0][1]):
        return NOT_RECOGNISED.format(where=f"{name}:{rows[0][0]}")
    by_name = all(names) and len(set(names)) == len(places)
    width = usual_width(texts)
    if width < len(places):
        return (
            f"{name}: has {counted(width, 'column')} in most rows, but {len(places)} are needed: {roles}.\n"
            f"{list_columns(rows)}\n"
            'Add what is missing; if it is there, give what separates columns, for example: `separator=";"`.'
        )
    choice: Sequence[str | int] = names if by_name else [place + 1 for place in places]
    return (
        f"{name}: has {counted(width, 'column')}, and it is not certain which of them are {roles}:\n"
        f"{list_columns(rows)}\n"
        f"Choose by names or numbers, for example: `columns={literal(choice)}`."
    )


def list_columns(rows: SampleRows) -> str:
    """Number, first cell and an example of each column, one line each."""
    first, *others = [cells for _, cells in rows]
    lines = []
    for place in range(max(len(first), usual_width([first, *others]))):
        example = next((cells[place] for cells in others if len(cells) > place and cells[place].strip()), "")
        cell = first[place] if place < len(first) else ""
        then = f", then for example: {_clipped(example)}" if example else ""
        lines.append(f'  {place + 1}  "{_clipped(cell)}"{then}')
    return "\n".join(lines)


def _clipped(text: str) -> str:
    text = " ".join(text.split())
    return printable(text if len(text) <= _EXAMPLE_CHARACTERS else text[:_EXAMPLE_CHARACTERS] + "…")


def without_title(rows: SampleRows) -> SampleRows:
    """The rows without those at the top that fill one cell only, such as the title of a table."""
    titles = next((n for n, (_, cells) in enumerate(rows) if sum(map(bool, cells)) > 1), 0)
    return rows[titles:]


def usual_width(rows: Sequence[Sequence[str]]) -> int:
    """The number of filled columns that most rows have; of two numbers equally frequent, the larger."""
    widths = Counter(map(filled, rows))
    return max(widths, key=lambda width: (widths[width], width))


def filled(row: Sequence[Side]) -> int:
    """Number of cells of a row without the blank ones at its end, as spreadsheets add them."""
    return max((n for n, cell in enumerate(row, 1) if isinstance(cell, Damage) or cell.strip()), default=0)


def sample_rows(rows: Iterable[Row]) -> SampleRows:
    """The rows that are neither damaged nor blank, as texts, with U+FFFD for bytes that are not UTF-8."""
    return [
        (number, [_in_one_line(cell) for cell in cells])
        for number, cells in rows
        if not isinstance(cells, Damage) and any(cells)
    ]


def _in_one_line(cell: Side) -> str:
    if isinstance(cell, Damage):
        return ""
    return " ".join((cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell).split())


def literal(values: Sequence[str | int]) -> str:
    """Values of an argument as they are written in Python, for messages."""
    texts = [printable(json.dumps(value, ensure_ascii=False)) for value in values]
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
