"""How files are to be read, where it shall not be left to what they look like."""

import codecs
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from jumok.data.reading.encodings import is_wide
from jumok.data.reading.languages import Languages
from jumok.errors import ConfigError

Columns: TypeAlias = Sequence[str | int]
"""Columns of a table, each by its name or by its number, counted from 1."""

_SEPARATORS = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}

_LETTERS = bytes(byte for byte in range(0x20, 0x7F) if chr(byte) not in "\\~")  # these two differ in East Asia


@dataclass(frozen=True)
class ReadingOptions:
    """What a user said about the files. Nothing: it is found out, and said."""

    languages: Languages | None = None  # of the source and the target, in a file that names its languages
    columns: tuple[str, ...] = ()  # of a table; those of JSON objects are their keys
    separator: str | None = None  # of the columns of a CSV file
    sheet: str | None = None  # of a workbook, by name or number
    encoding: str | None = None  # of text files

    @property
    def variant(self) -> tuple[str, ...]:
        """What distinguishes a corpus that is read in this way from one read without options, for its fingerprint."""
        rest = {"separator": self.separator, "sheet": self.sheet, "encoding": self.encoding}
        named = [text for name, value in rest.items() if value is not None for text in (name, value)]
        return (*(self.languages or ()), *(("columns", *self.columns) if self.columns else ()), *named)

    def to_json(self) -> dict[str, object]:
        """The options that were given, as plain values."""
        values = {
            "languages": self.languages and list(self.languages),
            "columns": list(self.columns),
            "separator": self.separator,
            "sheet": self.sheet,
            "encoding": self.encoding,
        }
        return {name: value for name, value in values.items() if value}


DEFAULT = ReadingOptions()


def reading_options(
    *,
    languages: Languages | None = None,
    columns: Columns | str | int | None = None,
    count: int = 2,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
) -> ReadingOptions:
    """Check what a user said. `columns` must be so many as `count` says; a single one may be given by itself."""
    if languages is not None and (isinstance(languages, str) or len(languages) != 2):
        raise ConfigError(f'languages is {languages!r}; give two, as in `languages=("en", "ko")`.')
    chosen = (columns,) if isinstance(columns, str | int) else tuple(columns or ())
    if chosen and len(chosen) != count:
        example = '`columns=("English", "German")`' if count == 2 else '`columns="text"`'
        raise ConfigError(f"columns is {columns!r}; give {count}, as in {example}.")
    if languages and chosen:
        raise ConfigError("Both languages and columns are chosen. Give `languages=` or `columns=`, not both.")
    if separator is not None:
        separator = _SEPARATORS.get(separator.lower(), separator)
        if len(separator) != 1 or separator in '"\r\n':
            raise ConfigError(f'separator is {separator!r}; give one character, as in `separator=";"`, or "tab".')
    return ReadingOptions(
        languages=languages and (languages[0], languages[1]),
        columns=tuple(map(str, chosen)),
        separator=separator,
        sheet=None if sheet is None else str(sheet),
        encoding=None if encoding is None else _encoding_name(encoding),
    )


def _encoding_name(name: str) -> str:
    """The name of an encoding as Python spells it. What browsers and offices call Latin-1 or EUC-KR is more."""
    try:
        found = codecs.lookup(name).name
        "".encode(found)  # not all codecs are encodings of text
    except (LookupError, ValueError):
        raise ConfigError(
            f'There is no encoding {name!r}. Usual ones are "utf-8", "utf-16", "cp1252" (Windows), "cp949" (Korean).'
        ) from None
    if _LETTERS.decode(found, "replace") != _LETTERS.decode() and not is_wide(found):
        raise ConfigError(f"Text in {name} is not read, because it does not extend ASCII. Convert the file to UTF-8.")
    return {"iso8859-1": "cp1252", "euc_kr": "cp949", "gb2312": "gb18030", "gbk": "gb18030"}.get(found, found)
