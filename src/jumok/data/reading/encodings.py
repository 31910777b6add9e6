"""Encodings of text: names, byte-order marks, and conversion to UTF-8."""

import codecs
from collections.abc import Iterator

from jumok.errors import InputError

_SHOWN = {"cp949": "CP949 (EUC-KR)", "cp932": "Shift-JIS", "euc_jp": "EUC-JP", "gb18030": "GB18030", "big5": "Big5"} | {
    "mac_roman": "Mac Roman",
    "mac_cyrillic": "Mac Cyrillic",
}
_BOMS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def encoding_by_bom(head: bytes) -> str | None:
    """The encoding that a byte-order mark at the start of a file declares."""
    return next((name for bom, name in _BOMS.items() if head.startswith(bom)), None)


def agreed(by_bom: str | None, given: str | None, file: str) -> str:
    """The encoding of a file by its byte-order mark, or else the one given, or UTF-8; InputError if they disagree."""
    if by_bom and given and not given.startswith(by_bom):
        raise InputError(
            f"{file}: begins with the byte-order mark of {shown_name(by_bom)}, so that it cannot be "
            f"{shown_name(given)}. Leave `encoding=` out: the encoding of each file is detected."
        )
    return by_bom or given or "utf-8"


def shown_name(encoding: str) -> str:
    """The usual name of an encoding, in messages."""
    if encoding.startswith("cp125"):
        return f"Windows-{encoding[2:]}"
    shown = encoding.upper().replace("ISO8859", "ISO-8859").removesuffix("-LE").removesuffix("-BE")
    return _SHOWN.get(encoding, shown)


def is_wide(encoding: str) -> bool:
    """Whether even an ASCII character has more than one byte, so that lines cannot be found before decoding."""
    return encoding.startswith(("utf-16", "utf-32"))


def utf8_chunks(chunks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Text in UTF-16 or the like as UTF-8; what cannot be decoded becomes bytes that are not UTF-8 either."""
    decoder = codecs.getincrementaldecoder(encoding)("surrogatepass")
    for chunk in chunks:
        yield decoder.decode(chunk).encode("utf-8", "surrogatepass")
    try:
        yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        yield b"\xff"  # the file ends in the middle of a character
