"""Files with columns, or with lines of text, → rows and lines: opened as the user said, or as they look like."""

from collections.abc import Iterator
from pathlib import Path

from jumok.data.examples import FileLayout
from jumok.data.reading.delimited import delimited_rows
from jumok.data.reading.detection import find_encoding
from jumok.data.reading.encodings import shown_name
from jumok.data.reading.lines import Damage, Row, byte_lines, format_of
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.workbook import WORKBOOKS, refuse_other_spreadsheets, workbook_rows

TABLES = (".tsv", ".csv", *WORKBOOKS)


def text_lines(path: str | Path, options: ReadingOptions, layout: FileLayout) -> Iterator[bytes | Damage]:
    """The lines of a text file, as UTF-8. An encoding that is not UTF-8 is written into the layout."""
    refuse_other_spreadsheets(path)
    encoding = options.encoding or find_encoding(path)
    layout.encoding = "" if encoding == "utf-8" else shown_name(encoding)
    return byte_lines(path, encoding)


def table_rows(path: str | Path, options: ReadingOptions, layout: FileLayout) -> Iterator[Row]:
    """The numbered rows of a table: a workbook or CSV if its name says so, else TSV."""
    if format_of(path) in WORKBOOKS:
        return workbook_rows(path, options.sheet, layout)
    lines = enumerate(text_lines(path, options, layout), 1)
    return delimited_rows(lines, layout, options.separator, is_csv=format_of(path) == ".csv")
