"""Sheets of Excel workbooks (.xlsx) → rows of texts."""

import datetime
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import chain, islice, repeat
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from jumok.data.examples import FileLayout
from jumok.data.reading.lines import COMPRESSIONS, Damage, byte_chunks, display_name
from jumok.errors import InputError

if TYPE_CHECKING:
    from openpyxl import Workbook

WORKBOOKS = (".xlsx", ".xlsm")
_NOT_READ = {".xls": "an old Excel workbook", ".ods": "an OpenDocument spreadsheet", ".xlsb": "a binary workbook"}
_OLE = b"\xd0\xcf\x11\xe0"
_ROWS_LOOKED_AT = 1_000  # to see whether there is anything on a sheet


def refuse_other_spreadsheets(path: str | Path) -> None:
    """Raises InputError for spreadsheets of formats that are not read."""
    kind = _NOT_READ.get(Path(path).suffix.lower())
    if kind:
        raise InputError(f"{path}: is {kind}, which is not read. Save it as .xlsx or CSV.")


def workbook_rows(path: str | Path, wanted: str | None, layout: FileLayout) -> Iterator[tuple[int, list[Any]]]:
    """The rows of a sheet that are not blank, with their numbers; each cell is a text or a Damage. `wanted` is the name
    or the number of the sheet; without it, there must be only one sheet with anything on it."""
    with _open(path) as file:
        values = _load(file, display_name(path), data_only=True)
        sheet = layout.sheet = _sheet_name(values, wanted, display_name(path))
        formulas: Iterator[Sequence[Any]] = iter(())
        try:
            if _has_formulas(file, values[sheet]):
                formulas = (
                    [cell.value for cell in row]
                    for row in _rows(_load(file, display_name(path), data_only=False)[sheet])
                )
            for number, row in enumerate(_rows(values[sheet]), 1):
                cells = list(map(_text, row, range(1, len(row) + 1), chain(next(formulas, ()), repeat(None))))
                if any(cells):
                    yield number, cells
        except _BROKEN as error:
            raise _broken(display_name(path), error) from error


def _rows(sheet: Any) -> Iterator[Sequence[Any]]:
    """All rows of a sheet. Its own statement of how many there are is not always right."""
    sheet.reset_dimensions()
    return iter(sheet.iter_rows())


def _open(path: str | Path) -> IO[bytes]:
    """The file, to be read at any place; one that is compressed again is decompressed into memory."""
    if Path(path).suffix.lower() in COMPRESSIONS or not Path(path).is_file():
        return BytesIO(b"".join(byte_chunks(path)))
    next(byte_chunks(path), b"")  # an InputError if it cannot be read
    return open(path, "rb")


# What openpyxl raises for files that are damaged; an error of XML is a SyntaxError.
_BROKEN = (
    zipfile.BadZipFile,
    zlib.error,
    LookupError,
    ValueError,
    TypeError,
    AttributeError,
    EOFError,
    OSError,
    SyntaxError,
)


def _load(file: IO[bytes], name: str, *, data_only: bool) -> "Workbook":
    from openpyxl import load_workbook
    from openpyxl.utils.exceptions import InvalidFileException

    file.seek(0)
    if file.read(4) == _OLE:
        raise InputError(
            f"{name}: is encrypted, or an old .xls workbook. Save it as .xlsx without a password, or as CSV."
        )
    file.seek(0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of styles and extensions, which do not matter here
            return load_workbook(file, read_only=True, data_only=data_only)
    except (*_BROKEN, InvalidFileException) as error:
        raise _broken(name, error) from error


def _broken(name: str, error: Exception) -> InputError:
    return InputError(f"{name}: cannot be read as an Excel workbook ({error}). Save it anew as .xlsx, or as CSV.")


def _sheet_name(workbook: "Workbook", wanted: str | None, name: str) -> str:
    sheets = workbook.worksheets
    titles = [sheet.title for sheet in sheets]
    listed = "\n".join(f"  {number}  {title}" for number, title in enumerate(titles, 1))
    if wanted is not None:
        if wanted in titles:
            return wanted
        if wanted.isdigit() and 1 <= int(wanted) <= len(titles):
            return titles[int(wanted) - 1]
        raise InputError(f'{name}: has no sheet "{wanted}". There are:\n{listed}')
    used = [sheet.title for sheet in sheets if sheet.sheet_state == "visible" and _has_content(sheet)]
    if len(used) > 1:
        raise InputError(
            f"{name}: has {len(used)} sheets with content:\n{listed}\n"
            f'Choose one by name or number: `sheet="{used[0]}"`.'
        )
    return used[0] if used else titles[0]


def _has_content(sheet: Any) -> bool:
    return any(cell.value is not None for row in islice(_rows(sheet), _ROWS_LOOKED_AT) for cell in row)


def _has_formulas(file: IO[bytes], sheet: Any) -> bool:
    """Whether a sheet contains formulas at all; if not, it need not be read twice."""
    part = sheet._worksheet_path.lstrip("/")
    with zipfile.ZipFile(file) as archive, archive.open(part) as xml:
        before = b""
        while chunk := xml.read(1 << 18):
            if re.search(rb"<(?:\w+:)?f[ />]", before + chunk):
                return True
            before = chunk[-16:]
    return False


def _text(cell: Any, column: int, written: object) -> str | Damage:
    """The value of a cell as text. A formula has the value that the spreadsheet program stored with it, if it did."""
    value = cell.value
    if value is None:
        is_formula = written is not None and (not isinstance(written, str) or written.startswith("="))
        return Damage(f"formula without a stored value in column {column}") if is_formula else ""
    if getattr(cell, "data_type", "") == "e":
        return Damage(f"error value {value} in column {column}")
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime.datetime) and value.time() == datetime.time():
        return value.date().isoformat()
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat(*(" ",) if isinstance(value, datetime.datetime) else ())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).replace("_x000D_", "")
