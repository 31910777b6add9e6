"""Translation memories as their specification and the usual programs write them, and damaged ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from jumok.data.examples import FileLayout, Rejections
from jumok.data.reading.lines import Damage, text_of
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.pairs import aligned_texts, read_pairs
from jumok.data.reading.tmx import tmx_records
from jumok.errors import InputError

Write = Callable[[str | bytes], Path]
Texts = list[tuple[int, str | Damage, str | Damage]]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes) -> Path:
        path = tmp_path / "a.tmx"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def texts_of(path: Path, languages: tuple[str, str] | None = None) -> Texts:
    records = tmx_records(path, ReadingOptions(languages=languages), FileLayout(str(path)))
    return [(number, text_of(source), text_of(target)) for number, source, target in records]


def unit(**segments: str) -> str:
    variants = (f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in segments.items())
    return f"<tu>{''.join(variants)}</tu>\n"


def memory(*units: str, header: str = '<header srclang="*all*"/>') -> str:
    return f'<?xml version="1.0"?>\n<tmx version="1.4">{header}<body>\n{"".join(units)}</body></tmx>'


# Written as the specification of TMX 1.4b shows (every inline element, sub-flows among them) and as these programs do;
# trados.tmx is in UTF-16.
FILES = Path(__file__).parent / "files"


def test_the_specification_s_elements(write: Write) -> None:
    assert texts_of(FILES / "specification.tmx") == [
        (11, "data (with a non-standard character: \ue004).", "données (avec un caractère spécial: \ue004)."),
        (
            17,
            'The black cat, see the <img alt="note"/>.',
            'Le chat noir, voir la <img alt="remarque"/>.',
        ),
    ]


def test_omegat(write: Write) -> None:
    expected = [(8, "Press Enter<x1/>& wait.", "엔터를 누르고<x1/>기다리세요."), (17, "a < b", "a < b")]
    whole = (FILES / "omegat.tmx").read_text(encoding="utf-8")
    for content in (whole, whole.replace("xml:lang", "lang"), "\n" + whole):
        shifted = content.startswith("\n")
        assert texts_of(write(content)) == [(line + shifted, *texts) for line, *texts in expected]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8", "utf-8-sig"])
def test_trados_in_utf_16_and_with_a_wrong_declaration(write: Write, encoding: str) -> None:
    content = (FILES / "trados.tmx").read_bytes()
    assert content.startswith(b"\xff\xfe<\0")
    source, target = "You have {1} new messages in {3}.", "Sie haben in {3} {1} neue Nachrichten."
    assert texts_of(write(content.decode("utf-16").encode(encoding))) == [(8, source, target)]


def test_memoq(write: Write) -> None:
    assert texts_of(FILES / "memoq.tmx") == [(6, "Hello {name},{} welcome!", "{name}님,{} 환영합니다!")]


@pytest.mark.parametrize("encoding", ["windows-1252", "iso-8859-1", "EUC-KR", "Shift_JIS", "US-ASCII"])
def test_declared_encodings(write: Write, encoding: str) -> None:
    text = {"EUC-KR": "안녕하세요", "Shift_JIS": "こんにちは", "US-ASCII": "hello"}.get(encoding, "déjà vu, schön")
    content = memory(unit(en="greeting", xx=text)).replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
    assert texts_of(write(content.encode(encoding))) == [(3, "greeting", text)]


def test_what_was_taken_is_said(write: Write) -> None:
    for content, languages, said in (
        ((FILES / "trados.tmx").read_bytes(), None, 'source = "en", target = "de"; encoding UTF-16'),
        ((FILES / "memoq.tmx").read_bytes(), None, 'source = "en", target = "ko"'),
        ((FILES / "memoq.tmx").read_bytes(), ("ko", "English"), 'source = "ko", target = "English"'),
    ):
        rejections, path = Rejections(), write(content)
        pairs = list(read_pairs([path], rejections, options=ReadingOptions(languages=languages)))
        assert len(pairs) == 1
        assert [layout.describe() for layout in rejections.layouts] == [f"{path}: {said}"]


def test_an_encoding_that_is_given_counts_more_than_the_declared_one(write: Write) -> None:
    path = write(memory(unit(en="hello", ko="안녕하세요")).encode("cp949"))
    records = tmx_records(path, ReadingOptions(encoding="cp949"), FileLayout("a.tmx"))
    assert list(records) == [(3, "hello", "안녕하세요")]


@pytest.mark.parametrize("encoding", ["klingon", "zlib", "rot13", "base64"])
def test_an_encoding_that_is_not_known_or_none_of_text_is_refused(write: Write, encoding: str) -> None:
    content = memory(unit(en="a", ko="b")).replace('"1.0"', f'"1.0" encoding="{encoding}"', 1)
    with pytest.raises(InputError, match=rf'a\.tmx:1: declares the encoding "{encoding}", which is not known'):
        texts_of(write(content))


def test_two_variants_of_a_language(write: Write) -> None:
    path = write(
        memory(
            unit(en_US="color", fr="couleur"),
            unit(en_GB="grey", fr_CA="gris"),
            unit(fr="bleu", en_GB="blue (GB)", en="blue", en_US="blue (US)"),
            unit(fr="vert", en_GB="green (GB)", en_US="green (US)"),
        )
    )
    english = ["color", "grey", "blue", "green (GB)"]
    assert [source for _, source, _ in texts_of(path)] == english
    assert [source for _, source, _ in texts_of(path, ("en", "fr"))] == english
    assert [target for _, _, target in texts_of(path, ("fr", "EN"))] == english
    american = texts_of(path, ("en-US", "fr"))
    assert [source for _, source, _ in american if isinstance(source, str)] == ["color", "blue (US)", "green (US)"]
    both = memory(unit(en_US="color", en_GB="colour"), unit(en_GB="grey", en_US="gray"))
    assert texts_of(write(both)) == [(3, "color", "colour"), (4, "gray", "grey")]
    with pytest.raises(InputError, match=r'3 languages \(en-US, en-GB, fr\).*`languages=\("en-US", "en-GB"\)`'):
        texts_of(write(memory(unit(en_US="color", en_GB="colour", fr="couleur"))))


@pytest.mark.parametrize("count", [1, 1000])
def test_a_language_that_is_not_there_is_told_which_are(write: Write, count: int) -> None:
    path = write(memory(*[unit(en_US="one", ko="하나"), unit(de="eins", ko="하나")] * count))
    with pytest.raises(InputError, match=r'a\.tmx: no language "fr"; there are: de, en-US, ko\.'):
        texts_of(path, ("en", "fr"))


def test_numbers_of_columns_are_told_what_tmx_has_instead(write: Write) -> None:
    with pytest.raises(InputError, match=r'no language "1"; there are: de, en\. TMX has .*`languages=\("de", "en"\)`'):
        list(tmx_records(write(memory(unit(en="one", de="eins"))), ReadingOptions(columns=("1", "2")), FileLayout("a")))


def test_evaluation_takes_the_units_in_the_languages_chosen(write: Write) -> None:
    path = write(memory(unit(en="one", ko="하나"), unit(en="two", fr="deux"), unit(en="three", ko="")))
    assert list(aligned_texts([path], ReadingOptions(languages=("en", "ko")))) == [("one", "하나"), ("three", "")]
    with pytest.raises(InputError, match='no language "de"; there are: en, fr, ko'):
        list(aligned_texts([path], ReadingOptions(languages=("en", "de"))))


def test_a_language_that_comes_late_is_found(write: Write) -> None:
    path = write(memory(*[unit(en="one", ko="하나")] * 1000, unit(en="last", fr="dernier")))
    texts = texts_of(path, ("en", "fr"))
    assert len(texts) == 1001
    assert texts[-1] == (1003, "last", "dernier")
    assert {target for _, _, target in texts[:-1]} == {Damage("not in both languages")}


def test_a_header_that_contradicts_the_first_unit_is_asked_about(write: Write) -> None:
    for language in ("en", "EN-GB"):
        header = f'<header srclang="{language}"/>'
        path = write(memory(unit(ko_KR="하나", en_US="one"), unit(en="two", ko="둘"), header=header))
        said = rf'a\.tmx:3: the header says .* "{language}", but "ko-KR" comes first.*`languages='
        with pytest.raises(InputError, match=said):
            texts_of(path)
        assert texts_of(path, ("ko", "en")) == [(3, "하나", "one"), (4, "둘", "two")]
    for language in ("ko", "KO-kp", "*all*", "de"):
        header = f'<header srclang="{language}"/>'
        assert texts_of(write(memory(unit(ko_KR="하나", en="one"), header=header))) == [(3, "하나", "one")]


DAMAGES = [
    (b"\xff", "not valid UTF-8"),
    (b"\xed\xa0\x80", "not valid UTF-8"),
    (b"\xec\x95", "not valid UTF-8"),
    (b"\0", "NUL character"),
    (b"&#0;", "NUL character"),
    (b"&#xD800;", "not valid UTF-8"),
    (b"&#xFFFF;", "not valid UTF-8"),
    (b"&#99999999;", "not valid UTF-8"),
    (b"&nonsense;", "entity &nonsense; is not defined"),
]


@pytest.mark.parametrize(("damage", "reason"), DAMAGES)
def test_a_bad_byte_costs_its_segment_and_not_the_file(write: Write, damage: bytes, reason: str) -> None:
    for header in (b"<tmx", b'<!DOCTYPE tmx SYSTEM "tmx14.dtd"><tmx'):
        units = [
            unit(en="one", ko="하나"),
            unit(en="tw@o", ko="둘"),
            unit(en="three", ko="셋"),
            unit(en="four", ko="@"),
        ]
        content = memory(*units).encode().replace(b"@", damage).replace(b"<tmx", header)
        assert texts_of(write(content)) == [
            (3, "one", "하나"),
            (4, Damage(reason), "둘"),
            (5, "three", "셋"),
            (6, "four", Damage(reason)),
        ]


def test_control_characters_and_html_s_entities_are_text_as_in_other_formats(write: Write) -> None:
    content = memory(unit(en="a\x0bb&#x1F;c&nbsp;d &eacute;", ko="&#44032;\ufeff"))
    assert texts_of(write(content)) == [(3, "a\x0bb\x1fc\xa0d é", "가\ufeff")]


def test_damage_outside_of_segments_is_named_with_its_line(write: Write) -> None:
    whole = memory(unit(en="one", ko="하나"), unit(en="two", ko="둘")).encode()
    for broken, line in (
        (whole.replace(b"<tu>", b"<t\xffu>", 1), 3),
        (whole.replace(b"</seg></tuv></tu>\n<tu>", b"</seg></tuv>\n<tu>"), 5),
        (whole.replace(b"two", b"t < wo"), 4),
        (whole.replace(b"two", b"t & wo"), 4),
        (whole[: whole.index(b"two")], 4),
    ):
        with pytest.raises(InputError, match=rf"a\.tmx:{line}: not well-formed TMX: .*Correct this place"):
            texts_of(write(broken))
