"""Tables, JSONL and TMX with the damage that plain text files get: it costs its record, never another one."""

from __future__ import annotations

import csv
import io
import json
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from xml.sax.saxutils import escape

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.examples import Example, Rejections
from jumok.data.reading import lines, tmx
from jumok.data.reading.pairs import read_pairs
from jumok.errors import InputError

LIMIT = 400  # bytes of a line, instead of a million
MARK = "@"  # where the damage goes; texts have none

# What may be inserted into a text, and the reason that is given then ("" if the text is still usable).
BYTES = {
    b"\xff": "not valid UTF-8",
    b"\xed\xa0\x80": "not valid UTF-8",  # an encoded surrogate
    b"\xc3": "not valid UTF-8",  # a sequence cut off
    b"\0": "NUL character",
    b"x" * LIMIT: "line longer than 1,000,000 bytes",
    b"\x1f": "",
    b"\r": "",
    "\u2028\u0085\ufeff".encode(): "",
}
OWN_DAMAGE: dict[str, dict[bytes, str]] = {
    ".tsv": {b"\t": "another number of columns than the header"},
    ".csv": {},
    ".semicolons.csv": {},
    ".jsonl": {
        b'", "src": "again': "a key that occurs twice in a JSON object",
        b'"': "not valid JSON",
        b"\\": "not valid JSON",
        b"\\ud800": "not valid UTF-8",
        b"\\u0000": "NUL character",
        b'"}  {"': "not valid JSON",
        b"\x1f": "not valid JSON",
        b"\r": "not valid JSON",
    },
    ".tmx": {
        b"&#0;": "NUL character",
        b"&#xFFFE;": "not valid UTF-8",
        b"&what;": "entity &what; is not defined",
        b"&#xB;": "",
    },
}
DAMAGES = {suffix: sorted({**BYTES, **own}.items()) for suffix, own in OWN_DAMAGE.items()}
DAMAGES[".tmx"].remove((b"\r", ""))  # XML reads it as the end of a line
# Records that are wrong as a whole.
WHOLE: dict[str, dict[bytes, str]] = {
    ".tsv": {b"no tab": "fewer columns than needed", b"": "empty side", b"\t": "empty side"},
    ".csv": {b"no comma": "fewer columns than needed", b"": "empty side", b'"",""': "empty side"},
    ".semicolons.csv": {b"no semicolon": "fewer columns than needed", b'"";""': "empty side"},
    ".jsonl": {
        b"": "empty side",
        b"[]": "not a JSON object, {…}; one object a line is wanted",
        b"null": "not a JSON object, {…}; one object a line is wanted",
        b'{"src": 1, "tgt": "x"}': "no text for both sides",
        b'{"src": ["x"], "tgt": {"x": "x"}}': "no text for both sides",
        b'{"src": null, "tgt": "x"}': "no text for both sides",
        b'{"tgt": "x"}': "no text for both sides",
        b'{"src": "x", "tgt": "x"': "not valid JSON",
        b"[" * 300: "not valid JSON",
    },
    ".tmx": {
        b"<tu></tu>": "no text for both sides",
        b"<tu>text</tu>": "no text for both sides",
        b'<tu><tuv xml:lang="en"><seg>x</seg></tuv></tu>': "no text for both sides",
        b'<tu><tuv xml:lang="en"><seg/></tuv><tuv xml:lang="ko"><seg/></tuv></tu>': "empty side",
    },
}


@dataclass(frozen=True)
class Record:
    """What is written, and what must be read: the two texts, or the reason why not."""

    content: bytes
    texts: tuple[str, str] = ("", "")
    reason: str = ""


def _csv(source: str, target: str) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="").writerow((source, target))
    return out.getvalue()


def _tmx(source: str, target: str) -> str:
    return "<tu>{}</tu>".format(
        "".join(
            f'<tuv xml:lang="{language}"><seg>{escape(text)}</seg></tuv>'
            for language, text in (("en", source), ("ko", target))
        )
    )


WRITERS: dict[str, Callable[[str, str], str]] = {
    ".tsv": lambda source, target: f"{source}\t{target}",
    ".csv": _csv,
    ".semicolons.csv": lambda source, target: _csv(source, target).replace('","', '";"'),
    ".jsonl": lambda source, target: json.dumps({"src": source, "tgt": target}, ensure_ascii=False),
    ".tmx": _tmx,
}
FRAMES = {
    ".tsv": (b"src\ttgt\n", b""),
    ".csv": (b"src,tgt\n", b""),
    ".semicolons.csv": (b"src;tgt\n", b""),
    ".jsonl": (b"", b""),
    ".tmx": (b'<?xml version="1.0"?><tmx><body>\n', b"</body></tmx>\n"),
}
_TEXT = st.text(st.sampled_from("ab é한\"',;<&{}[]\\"), max_size=8)


@st.composite
def _records(draw: st.DrawFn, suffix: str, number: int) -> Record:
    kind = draw(st.sampled_from(["text", "text", "bytes", "whole"]))
    if kind == "whole":
        content, reason = draw(st.sampled_from(sorted(WHOLE[suffix].items())))
        return Record(content, reason=reason)
    texts = [f"{number}:{draw(_TEXT)}." for _ in range(2)]
    if kind == "text":
        return Record(WRITERS[suffix](*texts).encode(), (texts[0], texts[1]))
    side = draw(st.integers(0, 1))
    texts[side] += MARK + "end"
    damage, reason = draw(st.sampled_from(DAMAGES[suffix]))
    content = WRITERS[suffix](*texts).encode().replace(MARK.encode(), damage)
    texts[side] = texts[side].replace(MARK, "\x0b" if damage == b"&#xB;" else damage.decode("utf-8", "replace"))
    return Record(content, (texts[0], texts[1]), reason)


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, list[Record]]:
    suffix = draw(st.sampled_from(sorted(WRITERS)))
    # So that something can be read; the separator of a CSV file is the one by which most rows have two columns.
    count = 12 if suffix == ".semicolons.csv" else 1
    records = [
        Record(WRITERS[suffix](text, text).encode(), (text, text)) for text in map("0:first {}.".format, range(count))
    ]
    return suffix, records + [draw(_records(suffix, number)) for number in range(1, draw(st.integers(1, 8)))]


def _read(path: Path) -> tuple[list[Example], Rejections, InputError | None]:
    accepted: list[Example] = []
    rejections = Rejections()
    try:
        accepted.extend(read_pairs([path], rejections))
    except InputError as error:
        return accepted, rejections, error
    return accepted, rejections, None


@settings(max_examples=500, deadline=None)
@given(file=_files(), chunk=st.integers(1, 60), end=st.sampled_from([b"\n", b"\r\n"]))
def test_a_damaged_record_is_left_out_and_named_and_no_other_is_changed(
    file: tuple[str, list[Record]], chunk: int, end: bytes
) -> None:
    suffix, records = file
    head, tail = FRAMES[suffix]
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_CHUNK_BYTES", chunk)
        for module in (lines, tmx):
            patch.setattr(module, "MAX_LINE_BYTES", LIMIT)
        path = Path(folder, "a" + suffix)
        path.write_bytes(head + b"".join(record.content + end for record in records) + tail)
        accepted, rejections, error = _read(path)
    assert error is None
    numbered = list(enumerate(records, 1 + head.count(b"\n")))
    assert [(pair.inputs, pair.where) for pair in accepted] == [
        (record.texts, f"{path}:{line}") for line, record in numbered if not record.reason
    ]
    left_out = {reason: [] for _, record in numbered if (reason := record.reason)}
    for line, record in numbered:
        if record.reason:
            left_out[record.reason].append(f"{path}:{line}")
    assert rejections.examples == {reason: places[:5] for reason, places in left_out.items()}
    assert rejections.counts == {reason: len(places) for reason, places in left_out.items()}


@pytest.mark.parametrize("separator", [",", ";"])
@pytest.mark.parametrize("quote", range(4))
def test_a_missing_quote_costs_no_more_than_its_record(tmp_path: Path, separator: str, quote: int) -> None:
    pairs = [(f"{n}: one{separator} a", f"{n}: 둘, b; c") for n in range(6)]
    rows = [f'"{source}"{separator}"{target}"' for source, target in pairs]
    path = tmp_path / "a.csv"
    for damaged in range(6):
        place = [index for index, character in enumerate(rows[damaged]) if character == '"'][quote]
        changed = [*rows]
        changed[damaged] = rows[damaged][:place] + rows[damaged][place + 1 :]
        path.write_text(f"src{separator}tgt\n" + "\n".join(changed) + "\n", encoding="utf-8")
        accepted, rejections, error = _read(path)
        assert error is None
        assert [pair.inputs for pair in accepted if pair.where != f"{path}:{damaged + 2}"] == [
            pair for number, pair in enumerate(pairs) if number != damaged
        ]
        changed_texts = [pair.where for pair in accepted if pair.inputs not in pairs]
        assert [*changed_texts, *chain(*rejections.examples.values())] == [f"{path}:{damaged + 2}"]


@pytest.mark.parametrize("suffix", sorted(WRITERS))
def test_a_file_cut_off_anywhere_gives_what_was_before_or_an_error_that_names_the_place(
    tmp_path: Path, suffix: str
) -> None:
    pairs = [(f'{n}: a, "b" é', f"{n}: <다> & 라") for n in range(3)]
    head, tail = FRAMES[suffix]
    content = head + b"".join(WRITERS[suffix](*pair).encode() + b"\n" for pair in pairs) + tail
    path = tmp_path / ("a" + suffix)
    for size in range(len(head), len(content)):
        path.write_bytes(content[:size])
        accepted, rejections, error = _read(path)
        read = [pair.inputs for pair in accepted]
        whole = read[:-1] if suffix == ".tsv" else read  # that a text of a TSV file is cut off cannot be seen
        assert whole == pairs[: len(whole)]
        assert len(accepted) + rejections.total >= content[:size].count(b"\n") - head.count(b"\n") or error
        if error is not None:
            assert re.search(rf"a\{suffix}(:\d+: |: no pair of sentences)", str(error)), str(error)
