"""Refuses options that apply to none of the files they are given for. Ignored, they would mislead in silence."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from jumok.data.examples import Paths
from jumok.data.reading.formats import JSON_LINES
from jumok.data.reading.idx import read_idx_header
from jumok.data.reading.lines import STANDARD_INPUT, display_name, format_of
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.tables import TABLES
from jumok.data.reading.workbook import WORKBOOKS
from jumok.errors import ConfigError

# What an option needs, and the formats that have it.
_NEEDS = {
    "columns": ("a table or JSONL file", ("workbook", "table", "keys")),
    "separator": ("a CSV or TSV file", ("table",)),
    "sheet": ("an Excel workbook (.xlsx)", ("workbook",)),
    "encoding": ("a text file: a workbook states its own encoding", ("table", "keys", "text")),
}


def refuse_unused_options(
    options: ReadingOptions,
    paths: Paths,
    valid: Paths | None = None,
    *,
    unnamed: Literal["table", "text"],
    without_text: Paths = (),
) -> None:
    """Raises ConfigError if an option applies to none of the files. `unnamed` is how a file is read whose name says no
    format; to files `without_text` no option applies."""
    files = [*paths, *(valid or ())]
    formats = {_format(path, unnamed) for path in files if path not in without_text}
    for name, (needed, having) in _NEEDS.items():
        if getattr(options, name) and files and not formats.intersection(having):
            raise ConfigError(f"`{name}=` has no effect: {_none_of(files)} {needed}. Leave it out.")


def refuse_unused_for_pairs(options: ReadingOptions, paths: Paths, valid: Paths | None = None) -> None:
    """The same for sentence pairs: a single file is a table, two are texts, unless their names say otherwise."""
    unnamed: Literal["table", "text"] = "table" if 1 in (len(paths), len(valid or ())) else "text"
    refuse_unused_options(options, paths, valid, unnamed=unnamed)


def refuse_unused_for_pictures(options: ReadingOptions, paths: Paths, valid: Paths | None = None) -> None:
    """The same for pictures: directories and IDX files hold no text."""
    files = [Path(path) for path in (*paths, *(valid or ()))]
    pictures = [path for path in files if path.is_dir() or (path.is_file() and read_idx_header(path))]
    refuse_unused_options(options, files, unnamed="table", without_text=pictures)


def _format(path: str | Path, unnamed: str) -> str:
    found = format_of(path)
    if str(path) != STANDARD_INPUT and os.path.isdir(path):  # not Path.is_dir: it fails if a name is too long
        return "text"
    if found in WORKBOOKS:
        return "workbook"
    if found in TABLES:
        return "table"
    return "keys" if found in (*JSON_LINES, ".tmx") else unnamed


def _none_of(files: Sequence[str | Path]) -> str:
    names = [display_name(file) for file in files]
    return f"{names[0]} is not" if len(names) == 1 else f"none of {', '.join(names)} is"
