"""Files, plain or compressed, → lines of bytes, in bounded memory whatever the file contains.
Only the byte `\\n` ends a line: U+2028, U+0085, form feeds and the like stay inside.
One `\\r` before it and a byte-order mark at the start of the file are removed; nothing else is changed in UTF-8.
Other encodings become UTF-8 here, so that everything after works with UTF-8 alone."""

import gzip
import lzma
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from itertools import chain
from pathlib import Path
from typing import BinaryIO, TypeAlias, cast

import zstandard

from jumok.data.reading import encodings
from jumok.errors import InputError

STANDARD_INPUT = "-"
COMPRESSIONS = (".gz", ".xz", ".zst")
MAX_LINE_BYTES = 1_000_000
_CHUNK_BYTES = 1 << 18
_HEAD_BYTES = 4  # at least: the longest byte-order mark
_BOM = b"\xef\xbb\xbf"

_ZIP = b"PK\x03\x04"
# Kinds of files that are often given by mistake.
_SIGNATURES = {
    b"\x89PNG": "is a PNG image, not text.",
    b"\xff\xd8\xff": "is a JPEG image, not text.",
    b"RIFF": "is a WebP image, a sound or a video, not text.",
    b"%PDF-": "is a PDF document; save its text as UTF-8 first.",
    _ZIP: "is a ZIP archive, as .xlsx, .ods and .docx are; name a workbook .xlsx, or save its text as UTF-8.",
    b"\xd0\xcf\x11\xe0": "is an old or encrypted Office document; save its table as .xlsx, or its text as UTF-8.",
    b"\x1f\x8b": "is compressed by gzip; give it a name that ends in .gz.",
    b"\xfd7zXZ\0": "is compressed by xz; give it a name that ends in .xz.",
    b"\x28\xb5\x2f\xfd": "is compressed by zstd; give it a name that ends in .zst.",
}
# "BM", the size of the file, and four bytes that are always zero: "BM" alone may begin a text.
_BMP = re.compile(rb"BM.{4}\0{4}", re.DOTALL)
_NOT_IN_A_LINE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_UNREADABLE = re.compile("[\x00-\x08\x0e-\x1f\x7f\ufffd]")
_SNIFFED_BYTES = 1 << 16
_SNIFF_AT_LEAST = 256  # characters; a share of fewer says nothing
_UNREADABLE_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Damage:
    """Takes the place of a text that cannot be used, and says why."""

    reason: str


@dataclass(frozen=True, slots=True)
class TooLong(Damage):
    """A line over the limit. Its quotes are counted, because a CSV field may open or close in it."""

    reason: str = f"line longer than {MAX_LINE_BYTES:,} bytes"
    quotes: int = 0


EMPTY = Damage("empty side")
NOT_UNICODE = Damage("not valid UTF-8")
HAS_NUL = Damage("NUL character")
NO_TEXT = Damage("no text")
NO_TEXTS = Damage("no text for both sides")
OTHER_LANGUAGES = Damage("not in both languages")  # that were chosen: the record is not meant

Side: TypeAlias = bytes | str | Damage
Row: TypeAlias = tuple[int, Sequence[Side] | Damage]  # of a table: number of its first line, cells
Record: TypeAlias = tuple[int, Side, Side]  # number of its first line, source, target


def display_name(path: str | Path) -> str:
    """The name of a file in messages and in records of what was read."""
    return "standard input" if str(path) == STANDARD_INPUT else escaped(str(path))


def escaped(name: str) -> str:
    """The name of a file with backslash escapes for what a line of UTF-8 cannot hold: control characters, and bytes in
    another encoding, as in Korean ZIP archives. They can be written then, but no longer opened."""
    return _NOT_IN_A_LINE.sub(lambda found: found[0].encode("unicode_escape").decode(), name)


def without_compression(path: str | Path) -> Path:
    """`a.tsv.gz` → `a.tsv`."""
    path = Path(path)
    return path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path


def format_of(path: str | Path) -> str:
    """The suffix that says the format: `.tsv` for `A.TSV.gz`."""
    return without_compression(path).suffix.lower()


def byte_lines(path: str | Path, encoding: str | None = None) -> Iterator[bytes | Damage]:
    """The lines of a file as UTF-8, without line ends. A line over the limit, or one that is not valid in its encoding
    (other than UTF-8), is replaced by a `Damage`. Without an `encoding`: UTF-8, or what a byte-order mark says."""
    head, chunks = _with_head(byte_chunks(path))
    encoding = encodings.agreed(encodings.encoding_by_bom(head), encoding, display_name(path))
    if head.startswith(_ZIP) and format_of(path) in (".xlsx", ".xlsm"):
        raise InputError(f"{path}: is a workbook; text is read here, a line at a time. Save the column as a text file.")
    _refuse_binary(display_name(path), head, encoding)
    if encodings.is_wide(encoding):
        lines: Iterator[bytes | Damage] = _split(encodings.utf8_chunks(chunks, encoding))
    else:
        lines = _split(chunks)
        if encoding != "utf-8":
            lines = _decoded(_split(chunks), encoding)
    first = next(lines, None)
    if first is not None:
        yield first.removeprefix(_BOM) if isinstance(first, bytes) else first
        yield from lines


def raw_lines(path: str | Path) -> Iterator[bytes | TooLong]:
    """The lines of a file as they are in it, whatever it is."""
    return _split(byte_chunks(path))


def is_other_kind(head: bytes) -> bool:
    """Whether a file begins like one of a kind that is not text."""
    return head.startswith(tuple(_SIGNATURES)) or _BMP.match(head) is not None


def _with_head(chunks: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes, enough to tell what a file is, and all chunks."""
    first = []
    for chunk in chunks:
        first.append(chunk)
        if sum(map(len, first)) >= _HEAD_BYTES:
            break
    return b"".join(first), chain(first, chunks)


def byte_chunks(path: str | Path) -> Iterator[bytes]:
    """The decompressed bytes of a file, at most 256 kB at a time. InputError if it cannot be read."""
    name = display_name(path)
    try:
        yield from _decompressed(path)
    except (gzip.BadGzipFile, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError) as error:
        raise InputError(
            f"{name}: damaged, cut off, or not what its name says ({error}). Copy or download the file again."
        ) from error
    except FileNotFoundError:
        raise InputError(f"{name}: no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{name}: a directory; give a file.") from None
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}.") from error


def is_not_meant(source: str | Damage, target: str | Damage) -> bool:
    """Whether nothing is lost if this record is left out: it is blank, or in other languages than those chosen."""
    is_blank = source is EMPTY and target is EMPTY
    return is_blank or source is OTHER_LANGUAGES or target is OTHER_LANGUAGES


def text_of(side: Side) -> str | Damage:
    """The text of a line or a field, or the reason why it cannot be used."""
    if isinstance(side, Damage):
        return side
    try:
        # JSON and CSV can contain lone surrogates, which are not text.
        text = (side if isinstance(side, bytes) else side.encode()).decode()
    except UnicodeError:
        return NOT_UNICODE
    if "\0" in text:
        return HAS_NUL
    return text if text and not text.isspace() else EMPTY


def _split(chunks: Iterable[bytes]) -> Iterator[bytes | TooLong]:
    pending = b""  # a line that has not ended yet
    skipped: TooLong | None = None  # takes its place once it is over the limit
    for chunk in chunks:
        lines = chunk.split(b"\n")
        lines[0] = pending + lines[0]
        if len(lines[0]) > MAX_LINE_BYTES or skipped:  # only the first can be that long: chunks are smaller
            skipped = TooLong(quotes=lines[0].count(b'"') + (skipped.quotes if skipped else 0))
            lines[0] = b""
        pending = lines.pop()
        if not lines:
            continue
        if skipped:
            yield skipped
            skipped = None
            del lines[0]
        if b"\r\n" in chunk:
            lines = [line.removesuffix(b"\r") for line in lines]
        elif lines:  # the "\r" may have been the last byte of the chunk before
            lines[0] = lines[0].removesuffix(b"\r")
        yield from lines
    if skipped or pending:
        yield skipped or pending.removesuffix(b"\r")


def _decoded(source: Iterator[bytes | TooLong], encoding: str) -> Iterator[bytes | Damage]:
    """Lines in an encoding that extends ASCII, as UTF-8."""
    bad = Damage(f"not valid {encodings.shown_name(encoding)}")
    for line in source:
        if isinstance(line, bytes) and not line.isascii():
            try:
                yield line.decode(encoding).encode()
            except UnicodeError:
                yield bad
        else:
            yield line


def _refuse_binary(name: str, head: bytes, encoding: str) -> None:
    for signature, verdict in _SIGNATURES.items():
        if head.startswith(signature):
            raise InputError(f"{name} {verdict}")
    if _BMP.match(head):
        raise InputError(f"{name} is a BMP image, not text.")
    if encodings.is_wide(encoding):
        return
    text = head[:_SNIFFED_BYTES].decode(encoding, "replace")
    if len(text) >= _SNIFF_AT_LEAST and len(_UNREADABLE.findall(text)) > _UNREADABLE_SHARE * len(text):
        raise InputError(
            f"{name} is not {encodings.shown_name(encoding)} text. If it is text in another encoding, say which, for "
            'example: `encoding="cp949"`.'
        )


def _decompressed(path: str | Path) -> Iterator[bytes]:
    if str(path) == STANDARD_INPUT:
        # read1 returns what is available, so that the lines of a pipe are read as they are written.
        pipe = cast(BufferedReader, sys.stdin.buffer)
        yield from iter(lambda: pipe.read1(_CHUNK_BYTES), b"")
        return
    suffix = Path(path).suffix.lower()
    with open(path, "rb") as file:
        if suffix == ".zst":
            yield from _zstd_chunks(file)
        elif suffix in (".gz", ".xz"):
            with gzip.open(file) if suffix == ".gz" else lzma.open(file) as stream:
                yield from iter(lambda: stream.read(_CHUNK_BYTES), b"")
        else:
            yield from iter(lambda: file.read1(_CHUNK_BYTES), b"")


def _zstd_chunks(file: BinaryIO) -> Iterator[bytes]:
    """Decompress all frames. zstandard's own reader ends silently after the first frame, and in a truncated file."""
    frame: zstandard.ZstdDecompressionObj | None = None
    while data := file.read(256):  # small, since each byte can expand to 32 kB
        while data:
            frame = frame or zstandard.ZstdDecompressor().decompressobj()
            text = frame.decompress(data)
            for start in range(0, len(text), _CHUNK_BYTES):
                yield text[start : start + _CHUNK_BYTES]
            data = frame.unused_data
            if frame.eof:
                frame = None
    if frame is not None:
        raise EOFError("the file ends in the middle")
