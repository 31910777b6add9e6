"""XML that a parser can read although some of its characters are damaged: these are replaced by characters that no text
contains, and restored in what the parser returns, so that a bad byte spoils one text and not the file."""

import codecs
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from jumok.data.examples import FileLayout
from jumok.data.reading.encodings import shown_name
from jumok.data.reading.lines import byte_chunks
from jumok.errors import InputError

_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_UTF16_STARTS = {b"<\0": "utf-16-le", b"\0<": "utf-16-be"}  # without a byte-order mark
_DECLARATION = re.compile(r"\s*<\?xml\b[^>]*?\?>")
_DECLARED = re.compile(rb"""\s*<\?xml\b[^>]*?\bencoding\s*=\s*["']([\w.:-]+)["']""")
_WIDE = (b"utf-16", b"utf16", b"ucs-2", b"iso-10646")  # not in a file that begins with single bytes, whatever it says
_HEAD_BYTES = 1_000  # the declaration is in these

# XML forbids control characters, also as references such as &#x1F;. They become U+FDD0 to U+FDEF, which are reserved
# for use inside programs. Bytes that cannot be decoded, and what is forbidden otherwise, become U+1FFFE.
_CONTROLS = {number: 0xFDD0 + number for number in range(0x20) if chr(number) not in "\t\n\r"}
_DAMAGED = "\U0001fffe"
_MARK_DAMAGE = "jumok-mark-damage"
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufdd0-\ufdef\ufffe\uffff\ud800-\udfff\U0001fffe]")
_REFERENCE = re.compile(r"&#(x[0-9a-fA-F]{1,8}|[0-9]{1,9});")
_CUT_OFF_REFERENCE = re.compile(r"&[#\w]{0,40}$")
_RESTORED = {place: chr(number) for number, place in _CONTROLS.items()} | {ord(_DAMAGED): "\udcff"}


def xml_chunks(path: str | Path, encoding: str | None, layout: FileLayout) -> Iterator[bytes]:
    """The content of an XML file as UTF-8, without its declaration, in chunks. The encoding is the one given, or else
    the one that the file shows or declares; it is said in the layout."""
    decoder: codecs.IncrementalDecoder | None = None
    head, text = b"", ""
    for chunk in byte_chunks(path):
        if decoder is not None:
            text += decoder.decode(chunk)
        elif len(head := head + chunk) >= _HEAD_BYTES:
            decoder = _decoder(head, encoding, layout)
            text = _without_declaration(decoder.decode(head))
        cut = _CUT_OFF_REFERENCE.search(text[-50:])  # a reference may continue in the next chunk
        end = len(text) - (len(cut[0]) if cut else 0)
        yield _readable(text[:end])
        text = text[end:]
    if decoder is None:
        decoder = _decoder(head, encoding, layout)
        text = _without_declaration(decoder.decode(head))
    yield _readable(text + decoder.decode(b"", True))


def restored(text: str) -> str:
    """A text as it was in the file, with U+DCFF for what could not be decoded."""
    return text.translate(_RESTORED)


def _decoder(head: bytes, given: str | None, layout: FileLayout) -> codecs.IncrementalDecoder:
    """For the given encoding, or that which the first bytes show, or else declare; UTF-8 if they do neither."""
    shown = next((name for bom, name in _BOMS.items() if head.startswith(bom)), _UTF16_STARTS.get(head[:2]))
    name = given or shown
    declared = _DECLARED.match(head)
    if name is None and declared and not declared[1].lower().startswith(_WIDE):
        name = declared[1].decode()
    try:
        b"x".decode(name or "utf-8", "replace")  # refuses codecs that are no encodings of text, such as zlib
        found = codecs.lookup(name or "utf-8")
    except LookupError:
        raise InputError(
            f'{layout.file}:1: declares the encoding "{name}", which is not known. Convert the file to UTF-8.'
        ) from None
    layout.encoding = "" if found.name in ("utf-8", "ascii") else shown_name(found.name)
    return codecs.getincrementaldecoder(found.name)(_MARK_DAMAGE)


def _mark_damage(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _DAMAGED, error.end


codecs.register_error(_MARK_DAMAGE, _mark_damage)


def _without_declaration(text: str) -> str:
    """Without the byte-order mark and the declaration, but with as many lines: some programs write a line before it."""
    text = text.removeprefix("\ufeff")
    declaration = _DECLARATION.match(text)
    return "\n" * declaration[0].count("\n") + text[declaration.end() :] if declaration else text


def _readable(text: str) -> bytes:
    if _FORBIDDEN.search(text):
        text = _FORBIDDEN.sub(lambda found: _in_place_of(ord(found[0])), text)
    if "&#" in text:
        text = _REFERENCE.sub(_checked_reference, text)
    return text.encode()


def _checked_reference(found: re.Match[str]) -> str:
    number = int(found[1][1:], 16) if found[1].startswith("x") else int(found[1])
    is_allowed = number <= sys.maxunicode and not _FORBIDDEN.match(chr(number))
    return found[0] if is_allowed else _in_place_of(number)


def _in_place_of(forbidden: int) -> str:
    return chr(_CONTROLS[forbidden]) if forbidden in _CONTROLS else _DAMAGED
