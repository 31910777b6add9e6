"""Text in: pairs never shift, nothing is lost without being counted, and no file can exhaust memory."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any
from xml.sax.saxutils import escape

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from jumok.data.examples import Example, Rejections
from jumok.data.reading import lines, tmx
from jumok.data.reading.options import ReadingOptions, reading_options
from jumok.data.reading.pairs import UnequalLengthError, read_lines, read_pairs, read_records
from jumok.errors import InputError

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 8
COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.compress,
}


def pairs_of(*paths: Path | str, **options: Any) -> tuple[list[tuple[str, str]], Rejections]:
    rejections = Rejections()
    pairs = read_pairs(paths, rejections, options=reading_options(**options))
    return [(pair.inputs[0], pair.inputs[1]) for pair in pairs], rejections


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, bytes | str], Path]:
    def write_file(name: str, content: bytes | str) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


@pytest.fixture
def short_limit(monkeypatch: pytest.MonkeyPatch) -> int:
    """A limit of 100 bytes a line and chunks of 50, so that small files meet both."""
    for module in (lines, tmx):
        monkeypatch.setattr(module, "MAX_LINE_BYTES", 100)
    monkeypatch.setattr(lines, "_CHUNK_BYTES", 50)
    return 100


# ---------------------------------------------------------------- pairs never shift

_LIMIT = 200
_inside = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n\0"), max_size=12)
_ODD = ["\u2028", "\u2029", "\u0085", "\x0b", "\x0c", "\x1c", "\r", "\ufeff", "\t", "é", "한"]
_EMPTY = [b"", b" ", b" \t ", "\u2028".encode(), b"\x0c"]
_DAMAGE = [
    (b"\xff", "not valid UTF-8"),
    (b"\xed\xa0\x80", "not valid UTF-8"),  # an encoded surrogate
    (b"\xc3", "not valid UTF-8"),  # a sequence cut off
    (b"\0", "NUL character"),
    (b"x" * _LIMIT, "line longer than 1,000,000 bytes"),
]
_PLANES = [range(1, 0x80), range(0x80, 0x800), range(0x800, 0xD800), range(0xE000, 0x10000), range(0x10000, 0x110000)]


def _characters(draw: Random) -> str:
    """Up to 12 characters of 1 to 4 bytes, none of which ends a line."""
    codes = [draw.choice(draw.choice(_PLANES)) for _ in range(draw.randrange(13))]
    return "".join(map(chr, codes)).replace("\n", "")


def _side(draw: Random, key: bytes) -> tuple[bytes, str]:
    """Bytes of a line, and why it must be rejected ("" if it must not)."""
    kind = draw.choice(["text", "text", "text", "empty", "damage"])
    if kind == "empty":
        return draw.choice(_EMPTY), "empty side"
    text = key + f"{_characters(draw)}{draw.choice(_ODD)}{_characters(draw)}.".encode()
    bad, reason = draw.choice(_DAMAGE) if kind == "damage" else (b"", "")
    return text + bad, reason


def _corpus(seed: int) -> list[tuple[tuple[bytes, str], tuple[bytes, str]]]:
    """Up to 12 pairs of lines. Drawn here: Hypothesis would take 5 times as long as all of the reading."""
    draw = Random(seed)
    keys = [b"%d:" % number for number in range(draw.randrange(13))]
    return [(_side(draw, key), _side(draw, key)) for key in keys]


def _file(rows: Sequence[bytes], end: bytes, last_end: bool, bom: bool) -> bytes:
    body = end.join(rows) + (end if rows and (last_end or not rows[-1]) else b"")
    return (b"\xef\xbb\xbf" if bom else b"") + body


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all examples."""
    return tmp_path_factory.mktemp("pairs")


@settings(max_examples=2000, deadline=None)
@given(
    corpus=st.integers(0, 2**32).map(_corpus),
    ends=st.tuples(st.sampled_from([b"\n", b"\r\n"]), st.sampled_from([b"\n", b"\r\n"])),
    flags=st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    chunk=st.integers(1, 60),
    surplus=st.integers(-2, 2),
)
def test_pairs_never_shift(
    folder: Path,
    corpus: list[tuple[tuple[bytes, str], tuple[bytes, str]]],
    ends: tuple[bytes, bytes],
    flags: tuple[bool, bool, bool, bool],
    chunk: int,
    surplus: int,
) -> None:
    sources, targets = [left for (left, _), _ in corpus], [right for _, (right, _) in corpus]
    (sources if surplus > 0 else targets).extend([b"more"] * abs(surplus))
    paths = folder / "a.en", folder / "a.ko"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "_CHUNK_BYTES", chunk)
        patch.setattr(lines, "MAX_LINE_BYTES", _LIMIT)
        paths[0].write_bytes(_file(sources, ends[0], flags[0], flags[1] and bool(corpus)))
        paths[1].write_bytes(_file(targets, ends[1], flags[2], flags[3] and bool(corpus)))
        rejections = Rejections()
        accepted: list[Example] = []
        problem: InputError | None = None
        try:
            accepted.extend(read_pairs(paths, rejections))
        except InputError as error:
            problem = error

    expected = [
        Example((left.decode(), right.decode()), f"{paths[0]}:{number}")
        for number, ((left, left_reason), (right, right_reason)) in enumerate(corpus, 1)
        if not left_reason and not right_reason
    ]
    # list.extend keeps what came before an exception, so this also holds when the lengths turn out unequal.
    assert accepted == expected
    assert all(pair.inputs[0].split(":")[0] == pair.inputs[1].split(":")[0] for pair in accepted)
    assert len(accepted) + rejections.total == len(corpus)
    for number, ((_, left_reason), (_, right_reason)) in enumerate(corpus, 1):
        reason, path = (left_reason, paths[0]) if left_reason else (right_reason, paths[1])
        if reason and rejections.counts[reason] <= 5:
            assert f"{path}:{number}" in rejections.examples[reason]
    if surplus:
        assert isinstance(problem, UnequalLengthError)
        assert problem.lines == (len(sources), len(targets))
    else:
        assert (problem is None) == bool(expected)


# ---------------------------------------------------------------- formats

_XML_TEXT = st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co"])
_PAIR_TEXTS = st.lists(
    st.tuples(*[st.text(_XML_TEXT, min_size=1, max_size=20).filter(lambda text: bool(text.strip()))] * 2),
    min_size=1,
    max_size=8,
)


def _as_csv(pairs: Sequence[tuple[str, str]]) -> str:
    out = io.StringIO()
    csv.writer(out).writerows(pairs)
    return out.getvalue()


def _as_tmx(pairs: Sequence[tuple[str, str]]) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{escape(source)}</seg></tuv>\n'
        f'<tuv xml:lang="ko"><seg>{escape(target)}</seg></tuv></tu>\n'
        for source, target in pairs
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4"><header/><body>\n{units}</body></tmx>'


WRITERS: dict[str, Callable[[Sequence[tuple[str, str]]], str]] = {
    "tsv": lambda pairs: "src\ttgt\n" + "".join(f"{source}\t{target}\n" for source, target in pairs),
    "csv": lambda pairs: "src,tgt\n" + _as_csv(pairs),
    "jsonl": lambda pairs: "".join(json.dumps({"src": source, "tgt": target}) + "\n" for source, target in pairs),
    "hf.jsonl": lambda pairs: "".join(json.dumps({"translation": {"en": s, "ko": t}}) + "\n" for s, t in pairs),
    "tmx": _as_tmx,
}


@settings(max_examples=30, deadline=None)
@given(pairs=_PAIR_TEXTS, kind=st.sampled_from(sorted(WRITERS)), compression=st.sampled_from(sorted(COMPRESS)))
def test_every_format_gives_back_what_was_written(pairs: list[tuple[str, str]], kind: str, compression: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"corpus.{kind}{compression}")
        path.write_bytes(COMPRESS[compression](WRITERS[kind](pairs).encode()))
        assert pairs_of(path) == (pairs, Rejections())


@settings(max_examples=50, deadline=None)
@given(pairs=st.lists(st.tuples(*[st.text(st.sampled_from('ab",\n '), max_size=9).map("x{}".format)] * 2), min_size=1))
def test_csv_fields_may_hold_quotes_commas_and_newlines(pairs: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.csv")
        path.write_text(_as_csv(pairs), newline="")
        assert pairs_of(path) == (pairs, Rejections())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.tsv", "one\thana\t \t\n"),
        ("a.txt", "one\thana\n"),
        ("a.tsv", "target\tid\tsource\nhana\t1\tone\n"),
        ("a.tsv", "en\tko\none\thana\n"),
        ("a.tsv", "number\teng_Latn\tkor_Hang\n7\tone\thana\n"),
        ("a.csv", "\ufeffEN,KO\r\none,hana\r\n"),
        ("a.csv", '"Source","Target"\n"one","hana"\n'),
        ("a.ndjson", '{"source": "one", "target": "hana"}\n'),
    ],
)
def test_columns_are_found(write: Callable[..., Path], name: str, content: str) -> None:
    assert pairs_of(write(name, content))[0] == [("one", "hana")]


def test_a_first_sentence_is_not_taken_for_a_header(write: Callable[..., Path]) -> None:
    assert pairs_of(write("a.tsv", "No\tIt\nGo\tVa\n"))[0] == [("No", "It"), ("Go", "Va")]


def test_languages_are_chosen_by_name(write: Callable[..., Path]) -> None:
    table = write("a.tsv", "de\ten-US\tko\neins\tone\thana\n")
    record = write("a.jsonl", '{"translation": {"de": "eins", "en": "one", "ko": "hana"}}\n')
    memory = write(
        "a.tmx",
        '<tmx><body><tu><tuv xml:lang="DE"><seg>eins</seg></tuv><tuv lang="EN-us"><seg>one</seg></tuv>'
        '<tuv xml:lang="ko"><seg>hana</seg></tuv></tu></body></tmx>',
    )
    for path in (table, record, memory):
        assert pairs_of(path, languages=("en", "ko"))[0] == [("one", "hana")]
    for path in (record, memory):
        with pytest.raises(
            InputError,
            match=r'3 languages \((de, en, ko|DE, EN-us, ko)\).*`languages=\("de", "en"\)`|\("DE", "EN-us"\)',
        ):
            pairs_of(path)
    with pytest.raises(InputError, match='no language "fr"; there are: de, en-US, ko'):
        pairs_of(table, languages=("en", "fr"))
    with pytest.raises(InputError, match="not in two text files"):
        read_records([write("a.en", "x\n"), write("a.ko", "y\n")], ReadingOptions(languages=("en", "ko")))


@pytest.mark.parametrize(
    "line",
    [
        '{"translation": {"en-US": "one", "ko_KR": "hana", "de": "eins"}}',
        '{"en_us": "one", "de": "eins", "KO": "hana"}',
    ],
)
def test_keys_of_jsonl_may_name_a_region(write: Callable[..., Path], line: str) -> None:
    path = write("a.jsonl", f"{line}\n" * 3)
    assert pairs_of(path, languages=("en", "ko")) == ([("one", "hana")] * 3, Rejections())
    with pytest.raises(InputError, match=r"3 × (no text for both sides|not in both languages)"):
        pairs_of(path, languages=("en-GB", "ko"))


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize("before", ["x" * 150, "", '"a" "b\rc'])
def test_a_damaged_or_blank_line_does_not_hide_the_header(write: Callable[..., Path], before: str) -> None:
    path = write("a.csv", f"{before}\nde,en-US,ko\neins,one,hana\n")
    assert pairs_of(path, languages=("en", "ko"))[0] == [("one", "hana")]
    assert pairs_of(path, columns=("de", "en"))[0] == [("eins", "one")]
    with pytest.raises(InputError, match=r'a\.csv:2: no language "fr"; there are: de, en-US, ko'):
        pairs_of(path, languages=("en", "fr"))


def test_a_tab_inside_a_text_does_not_cut_it(write: Callable[..., Path]) -> None:
    rows = ["one\thana", "two\tdul\tor more", "three\tset\t", "four\tnet\t \t"]
    for header, reason in (("", "than most lines have"), ("en\tko\n", "than the header")):
        path = write("a.tsv", header + "\n".join(rows))
        pairs, rejections = pairs_of(path)
        assert pairs == [("one", "hana"), ("three", "set"), ("four", "net")]
        line = 2 + bool(header)
        assert rejections.examples == {f"another number of columns {reason}": [f"{path}:{line}"]}
        assert rejections.layouts[0].unused == []


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            "number\ten\tko\tnote\n1\tone\thana\tx\n2\ttwo\tdul\n3\tthree\tset\ty\n",
            'source = column 2 "en", target = column 3 "ko"; not used: column 1 "number", column 4 "note"',
        ),
        (
            "id\tsource\ttarget\n1\tone\thana\n2\ttwo\tdul\n3\tthree\tset\n",
            'source = column 2 "source", target = column 3 "target"; not used: column 1 "id"',
        ),
        ("one\thana\ntwo\tdul\nthree\tset\n", "source = column 1, target = column 2; no header"),
    ],
)
def test_what_was_taken_and_what_was_not_is_said(write: Callable[..., Path], content: str, said: str) -> None:
    path = write("a.tsv", content)
    pairs, rejections = pairs_of(path)
    assert pairs == [("one", "hana"), ("two", "dul"), ("three", "set")]
    assert rejections.total == 0
    assert [layout.describe() for layout in rejections.layouts] == [f"{path}: {said}"]


def test_the_order_of_languages_in_a_later_record_does_not_swap_sides(write: Callable[..., Path]) -> None:
    rows = '{"translation": {"en": "one", "ko": "hana"}}\n{"translation": {"ko": "dul", "en": "two"}}\n'
    assert pairs_of(write("a.jsonl", rows))[0] == [("one", "hana"), ("two", "dul")]


def test_bad_records_are_counted_and_the_others_kept(write: Callable[..., Path]) -> None:
    deep = "[" * 100_000
    rows = [
        "{",
        '{"src": "a"}',
        '{"src": 1, "tgt": "b"}',
        "[]",
        deep,
        '{"src":"\\ud800","tgt":"b"}',
        '{"src":"a\\u0000","tgt":"b"}',
    ]
    pairs, rejections = pairs_of(write("a.jsonl", "\n".join([*rows, '{"src":"a","tgt":"b"}', ""])))
    assert pairs == [("a", "b")]
    assert rejections.counts == {
        "not valid JSON": 2,
        "no text for both sides": 2,
        "not a JSON object, {…}; one object a line is wanted": 1,
        "not valid UTF-8": 1,
        "NUL character": 1,
    }
    pairs, rejections = pairs_of(write("a.tsv", b"a\tb\nonly one\n\xff\tb\nc\td\t\xff\n"))
    assert pairs == [("a", "b")]
    assert rejections.counts == {
        "fewer columns than needed": 1,
        "not valid UTF-8": 1,
        "another number of columns than most lines have": 1,
    }
    pairs, rejections = pairs_of(write("a.csv", b'a,b\n"x\ny",\xff\nu\rv,w\nc,d\n'))
    assert pairs == [("a", "b"), ("c", "d")]
    assert [where.rsplit(":")[-1] for where in rejections.examples["not valid UTF-8"]] == ["2"]
    assert [where.rsplit(":")[-1] for where in rejections.examples["not valid CSV"]] == ["4"]


@pytest.mark.usefixtures("short_limit")
def test_an_overlong_line_in_a_csv_field_spoils_only_its_own_record(write: Callable[..., Path]) -> None:
    long = "x" * 150
    content = f'a,b\n"{long}\nstill, the field",t\n{long},u\n"v\n{long}",w\nc,d\n'
    pairs, rejections = pairs_of(write("a.csv", content))
    assert pairs == [("a", "b"), ("c", "d")]
    assert rejections.total == 3


@pytest.mark.usefixtures("short_limit")
@pytest.mark.parametrize("rest", ["e,f\n", "e,f\n" * 100, 'e,"f"\n', '"e",f\n"g\nh",i\n'])
def test_a_missing_closing_quote_costs_its_own_row(write: Callable[..., Path], rest: str) -> None:
    path = write("a.csv", 'a,b\n"c,d\n' + rest)
    pairs, rejections = pairs_of(path)
    assert pairs == [("a", "b"), *pairs_of(write("b.csv", rest))[0]]
    assert rejections.examples == {"a quote opens here and is not closed": [f"{path}:2"]}


# ---------------------------------------------------------------- TMX


def test_tmx_reads_text_and_leaves_out_markup(write: Callable[..., Path]) -> None:
    content = """<?xml version="1.0"?>
<!DOCTYPE tmx SYSTEM "tmx14.dtd">
<tmx version="1.4"><header srclang="en"/><body>
<tu><note>no text</note>
<tuv xml:lang="en"><seg>Click <bpt i="1">&lt;b&gt;</bpt>he<hi>re</hi><ept i="1">&lt;/b&gt;</ept>.</seg></tuv>
<tuv xml:lang="ko"><seg>누르세요 &amp; 보세요.</seg></tuv></tu>
<tu><tuv xml:lang="en"><seg>alone</seg></tuv></tu>
<tu><tuv xml:lang="ko"><seg>둘</seg></tuv><tuv xml:lang="en"><seg>two</seg></tuv></tu>
</body></tmx>"""
    for encoding in ("utf-8", "utf-16"):
        pairs, rejections = pairs_of(write("a.tmx", content.encode(encoding)))
        assert pairs == [("Click here.", "누르세요 & 보세요."), ("two", "둘")]
        assert rejections.counts == {"no text for both sides": 1}
        assert rejections.examples["no text for both sides"][0].endswith("a.tmx:7")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('<!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><tmx>&b;</tmx>', "declares entities"),
        ('<!DOCTYPE t [<!ENTITY x SYSTEM "file:///etc/passwd">]><tmx>&x;</tmx>', "declares entities"),
        ('<!DOCTYPE t SYSTEM "t.dtd" [<!ATTLIST tu a CDATA "x">]><tmx/>', "declares entities"),
        ("<tmx><body><tu>", "a.tmx:1: not well-formed TMX"),
        ("<tmx><body>\n</tmx>", "a.tmx:2: not well-formed TMX: mismatched tag"),
        ("<html></html>", "no pair of sentences"),
        ("", "not well-formed TMX"),
    ],
)
def test_unsafe_or_broken_tmx_is_refused(write: Callable[..., Path], content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        pairs_of(write("a.tmx", content))


@pytest.mark.usefixtures("short_limit")
def test_a_huge_tmx_segment_is_rejected_and_a_huge_comment_refused(write: Callable[..., Path]) -> None:
    pairs, rejections = pairs_of(write("a.tmx", _as_tmx([("x" * 500, "y"), ("a", "b")])))
    assert pairs == [("a", "b")]
    assert rejections.total == 1
    with pytest.raises(InputError, match="a tag or comment of more than"):
        pairs_of(write("a.tmx", f"<tmx><!--{'x' * 1000}--></tmx>"))


# ---------------------------------------------------------------- files that cannot be used


def test_unequal_files_name_both_counts_and_the_remedy(write: Callable[..., Path]) -> None:
    with pytest.raises(UnequalLengthError, match=r"a\.en has 3 lines but .*a\.ko has 2.*`jumok check`"):
        pairs_of(write("a.en", "1\n2\n3\n"), write("a.ko", "1\n2\n"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "there are no lines"),
        (b"\n\n \n", r"every line was left out:\n3 × empty side"),
        (PNG, "is a PNG image"),
        (b"PK\x03\x04" + bytes(99), "is a ZIP archive"),
        (gzip.compress(b"a\n", mtime=0), "ends in .gz"),
        (bytes(range(256)) * 8, "is not UTF-8 text"),
    ],
)
def test_files_that_hold_no_pairs_are_refused(write: Callable[..., Path], content: bytes, message: str) -> None:
    bad, good = write("bad.en", content), write("good.ko", "하나\n" * content.count(b"\n"))
    with pytest.raises(InputError, match=message):
        pairs_of(bad, good)
    with pytest.raises(InputError, match=message):
        pairs_of(good, bad)


def test_paths_that_are_no_corpus_are_refused(write: Callable[..., Path], tmp_path: Path) -> None:
    good = write("a.en", "one\n")
    refused: list[tuple[list[Path | str], str]] = [
        ([good, tmp_path / "missing.ko"], r"missing\.ko: no such file"),
        ([good, tmp_path], "a directory"),
        ([tmp_path], "a directory"),
        ([good], r"a\.en: has one text in each line; the file with their translations is missing"),
        ([write("a.tsv", "one\n")], "fewer columns than needed(.|\n)*Give two text files"),
        ([good, good, good], "one or two files, not 3"),
        ([], "one or two files, not 0"),
        (["-", "-"], "standard input can be one side only"),
        ([good, write("b.tsv", "a\tb\n")], "holds both sides by itself"),
    ]
    for paths, message in refused:
        with pytest.raises(InputError, match=message):
            pairs_of(*paths)


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_damaged_compression_is_an_error_not_a_shorter_file(write: Callable[..., Path], suffix: str) -> None:
    whole = COMPRESS[suffix](b"one\ttwo %d\n" * 5_000)
    for content in (whole[:-9], b"plainly not compressed\n"):
        with pytest.raises(InputError, match="damaged, cut off, or not what its name says"):
            pairs_of(write(f"a.tsv{suffix}", content))
    twice = write(f"b.tsv{suffix}", COMPRESS[suffix](b"a\tb\n") + COMPRESS[suffix](b"c\td\n"))
    assert pairs_of(twice)[0] == [("a", "b"), ("c", "d")]


def test_standard_input_is_tsv_or_one_side(monkeypatch: pytest.MonkeyPatch, write: Callable[..., Path]) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("one\t하나\n\tleer\n".encode())))
    pairs, rejections = pairs_of("-")
    assert pairs == [("one", "하나")]
    assert rejections.examples == {"empty side": ["standard input:2"]}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\n")))
    assert pairs_of("-", write("a.ko", "하나\n"))[0] == [("one", "하나")]


def test_rejections_read_well_and_are_plain_values() -> None:
    rejections = Rejections()
    assert rejections.render() == ""
    for line in range(1, 8):
        rejections.add("empty side", f"a.en:{line}")
    rejections.add("NUL character", "a.ko:9")
    assert rejections.render().splitlines() == [
        "7 × empty side: a.en:1, a.en:2, a.en:3, a.en:4, a.en:5, …",
        "1 × NUL character: a.ko:9",
    ]
    assert json.loads(json.dumps(rejections.to_json()))["reasons"]["empty side"]["count"] == 7
    assert rejections.to_json()["total"] == 8


def test_every_rejection_is_logged_not_only_the_first_few() -> None:
    logged: list[tuple[str, str]] = []
    rejections = Rejections(log=lambda reason, where: logged.append((reason, where)))
    for line in range(1, 10):
        rejections.add("empty side", f"a.en:{line}")
    assert logged == [("empty side", f"a.en:{line}") for line in range(1, 10)]
    silent = Rejections()
    for reason, where in logged:
        silent.add(reason, where)
    assert rejections == silent


# ---------------------------------------------------------------- memory, and lines alone


@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_an_absurdly_long_line_is_one_rejection_in_bounded_memory(tmp_path: Path, suffix: str) -> None:
    long_line = b"first\n" + b"a" * 60_000_000 + b"\nlast\n"
    (tmp_path / f"a.en{suffix}").write_bytes(COMPRESS[suffix](long_line))
    (tmp_path / "a.ko").write_text("하나\n둘\n셋\n", encoding="utf-8")
    del long_line
    tracemalloc.start()
    pairs, rejections = pairs_of(tmp_path / f"a.en{suffix}", tmp_path / "a.ko")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert pairs == [("first", "하나"), ("last", "셋")]
    assert rejections.counts == {"line longer than 1,000,000 bytes": 1}
    assert peak < 40_000_000


def test_a_line_of_exactly_the_limit_is_kept(tmp_path: Path, write: Callable[..., Path]) -> None:
    source = write("a.en", b"a" * lines.MAX_LINE_BYTES + b"\n" + b"b" * (lines.MAX_LINE_BYTES + 1))
    pairs, rejections = pairs_of(source, write("a.ko", "x\ny\n"))
    assert [len(pair[0]) for pair in pairs] == [lines.MAX_LINE_BYTES]
    assert rejections.examples == {"line longer than 1,000,000 bytes": [f"{tmp_path}/a.en:2"]}


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(_inside.filter(lambda text: not text.endswith("\r") and not text.startswith("\ufeff"))))
def test_read_lines_drops_nothing(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.txt")
        path.write_bytes("".join(text + "\n" for text in texts).encode())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines, "_CHUNK_BYTES", 50)
            assert list(read_lines(path)) == texts


@pytest.mark.parametrize(
    ("line", "message"),
    [(b"\xff", "not valid UTF-8"), (b"a\0b", "NUL character"), (b"x" * 101, "line longer than")],
)
@pytest.mark.usefixtures("short_limit")
def test_read_lines_names_the_line_it_cannot_read(write: Callable[..., Path], line: bytes, message: str) -> None:
    texts: Iterator[str] = read_lines(write("a.txt", b"good\n\n" + line + b"\n"))
    assert [next(texts), next(texts)] == ["good", ""]
    with pytest.raises(InputError, match=rf"a\.txt:3: {message}"):
        next(texts)


def test_json_under_names_of_languages_is_read_if_there_are_two(write: Callable[..., Path]) -> None:
    record = write("a.jsonl", '{"id": 1, "en-US": "one", "ko-KR": "hana"}\n{"ko-KR": "dul", "en-US": "two"}\n')
    pairs, rejections = pairs_of(record)
    assert pairs == [("one", "hana"), ("two", "dul")]
    assert rejections.layouts[0].describe() == f'{record}: source = "en-US", target = "ko-KR"'
    with pytest.raises(InputError, match=r'no text for both sides.*\n.*\n.*`languages=\("en", "ko"\)`'):
        pairs_of(write("b.jsonl", '{"one": "one", "two": "hana"}\n'))
