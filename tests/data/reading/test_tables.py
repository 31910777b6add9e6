"""Tables as people have them: which columns are taken, how files are written, what is asked instead of guessed."""

from __future__ import annotations

import csv
import gzip
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.data.examples import Rejections
from jumok.data.reading.delimited import OPEN_QUOTE
from jumok.data.reading.detection import find_encoding
from jumok.data.reading.headers import language_of, side_of
from jumok.data.reading.labelled import read_labelled
from jumok.data.reading.options import reading_options
from jumok.data.reading.pairs import aligned_texts, read_lines, read_pairs
from jumok.data.reading.passages import read_passages
from jumok.errors import ConfigError, InputError

FILES = Path(__file__).parent / "files"  # written by LibreOffice
Write = Callable[..., Path]
PAIRS = [("Good morning", "Guten Morgen"), ("The street, please", "Die Straße, bitte"), ("Thank you", "Danke schön")]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: bytes | str, encoding: str = "utf-8") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
        return path

    return write_file


def read(path: Path | str, **options: Any) -> tuple[list[tuple[str, ...]], Rejections]:
    rejections = Rejections()
    pairs = read_pairs([path], rejections, options=reading_options(**options))
    return [pair.inputs for pair in pairs], rejections


def said(rejections: Rejections) -> str:
    return rejections.layouts[0].describe().partition(": ")[2]


def rows(*header: str) -> str:
    lines = [f"{n},{source.replace(',', '')},{target.replace(',', '')},x" for n, (source, target) in enumerate(PAIRS)]
    return "\n".join([",".join(header), *lines]) + "\n"


WITHOUT_COMMAS = [(source.replace(",", ""), target.replace(",", "")) for source, target in PAIRS]

# ---------------------------------------------------------------- which columns


@pytest.mark.parametrize(
    "header",
    [
        ("ID", "English", "German", "Comment"),
        ("id", "en", "de", "note"),
        ("No.", "Source text", "Target text", "Status"),
        ("Nr", "Quelle", "Ziel", "Kommentar"),
        ("#", "src_text", "tgt_text", ""),
        ("번호", "원문", "번역", "비고"),
        ("번호", "영어", "독일어", "비고"),
        ("", "Englisch", "Deutsch", "x"),
        ("key", "eng_Latn", "deu_Latn", "domain"),
        ("key", "en_US", "de-DE", "domain"),
        ("key", "Source (EN)", "Translation (DE)", "domain"),
        ("key", "English", "Übersetzung", "domain"),
        ("key", "texte source", "texte cible", "domaine"),
        ("key", "sentence_en", "sentence_de", "x"),
        ("key", "sourceText", "targetText", "x"),
    ],
)
def test_source_and_target_are_found_by_the_names_of_columns(write: Write, header: tuple[str, ...]) -> None:
    pairs, rejections = read(write("a.csv", rows(*header)))
    assert pairs == WITHOUT_COMMAS
    assert said(rejections).startswith(f'source = column 2 "{header[1]}", target = column 3 "{header[2]}"; not used: ')


@pytest.mark.parametrize("numbering", ["P-0000{}", "menu.item_{}", "{}"])
@pytest.mark.parametrize("german", ["German", "Translation"])
def test_a_column_named_id_that_holds_identifiers_is_not_indonesian(write: Write, numbering: str, german: str) -> None:
    content = rows("ID", "English", german, "Comment")
    for number in range(3):
        content = content.replace(f"\n{number},", f"\n{numbering.format(number)},")
    assert read(write("a.csv", content))[0] == WITHOUT_COMMAS


@pytest.mark.parametrize(
    "header", [("one", "two", "three", "four"), ("de", "English", "German", "x"), ("en", "German", "French", "x")]
)
def test_columns_that_are_not_certain_are_listed_with_examples_and_the_option(
    write: Write, header: tuple[str, ...]
) -> None:
    content = rows(*header).replace("\n0", "\nnull").replace("\n1", "\neins").replace("\n2", "\nzwei")
    with pytest.raises(InputError) as caught:
        read(write("a.csv", content))
    assert "a.csv: has 4 columns, and it is not certain which of them are source and target:" in str(caught.value)
    assert f'\n  2  "{header[1]}", then for example: Good morning\n' in str(caught.value)
    assert "`columns=(" in str(caught.value)


def test_a_title_above_the_header_and_codes_beside_the_texts_are_no_columns(write: Write) -> None:
    table = "source_lang,target_lang,source,target\nen,de,yes,ja\nen,de,no,nein\n"
    assert read(write("a.csv", table))[0] == [("yes", "ja"), ("no", "nein")]
    pairs, rejections = read(write("b.csv", "Our words,,,\n,,,\n" + table))
    assert pairs == [("yes", "ja"), ("no", "nein")]
    assert rejections.total == 1  # the empty row; a title is not counted as a lost pair


def test_what_is_suggested_are_the_columns_with_texts(write: Write) -> None:
    licence = "CC-BY 2.0 (France) Attribution: example.org #123 (somebody) & #456 (somebody else)"
    path = write("a.tsv", "".join(f"{source}\t{target}\t{licence}\n" for source, target in PAIRS * 4))
    with pytest.raises(InputError, match=r"for example: `columns=\(1, 2\)`"):
        read(path)


def test_the_option_chooses_by_name_or_number_or_language(write: Write) -> None:
    path = write("a.csv", rows("ID", "English", "German", "Sprüche"))
    for columns in (("English", "German"), (2, 3), ("2", "3"), ("english", "GERMAN"), ("en", "de"), (2, "German")):
        pairs, rejections = read(path, columns=columns)
        assert pairs == WITHOUT_COMMAS, columns
        assert said(rejections).startswith('source = column 2 "English", target = column 3 "German"; not used')
    assert read(path, columns=("German", "English"))[0] == [pair[::-1] for pair in WITHOUT_COMMAS]
    for columns, message in (
        (("English", "French"), r'no column is named "French"\.\n  1  "ID", then for example: 0\n'),
        ((2, 9), r"a\.csv: has no column 9\.\n  1"),
        ((2, "English"), "column 2 was chosen twice"),
    ):
        with pytest.raises(InputError, match=message):
            read(path, columns=columns)
    twice = write("b.csv", rows("ID", "text", "text", "x"))
    with pytest.raises(InputError, match=r'2 columns are named "text"\. Give the number of one: 2, 3'):
        read(twice, columns=("ID", "text"))


def test_a_header_is_not_learned_and_a_first_pair_is_not_lost(write: Write) -> None:
    table = rows("id", "Ausdruck", "Bedeutung", "remark")
    assert read(write("a.csv", table), columns=(2, 3))[0] == WITHOUT_COMMAS  # numbers below "id", none in it
    headless = table.partition("\n")[2]
    pairs, rejections = read(write("b.csv", headless), columns=(2, 3))
    assert (pairs, rejections.layouts[0].has_header) == (WITHOUT_COMMAS, False)
    assert read(write("c.tsv", "Spanish\tEspañol\nGerman\tDeutsch\n"), columns=(1, 2))[0][0] == ("Spanish", "Español")
    with pytest.raises(InputError, match=r'may be the names.*`columns=\("English", "Wortlaut"\)`.*`columns=\(1, 2\)`'):
        read(write("d.tsv", "English\tWortlaut\nyes\tja\n"))
    assert read(write("d.tsv", "English\tWortlaut\nyes\tja\n"), columns=("English", "Wortlaut"))[0] == [("yes", "ja")]


def test_a_header_that_names_fewer_columns_than_there_are_is_not_believed(write: Write) -> None:
    path = write("a.csv", "English,German\n1,yes,ja\n2,no,nein\n3,maybe,vielleicht\n")
    for options in ({}, {"columns": ("English", "German")}):
        with pytest.raises(InputError, match=r"a\.csv:1: names 2 columns, but the rows have 3"):
            read(path, **options)
    assert read(path, columns=(2, 3))[0] == [("yes", "ja"), ("no", "nein"), ("maybe", "vielleicht")]


@pytest.mark.parametrize(
    ("name", "side", "language"),
    [
        ("Source", "source", None),
        ("Target (ko-KR)", "target", "ko-kr"),
        ("Texto de origem", "source", None),
        ("Portuguese (Brazil)", "", "pt"),
        ("한국어", "", "ko"),
        ("EN", "", "en"),
        ("de-AT", "", "de-at"),
        ("DA_DK", "", "da-dk"),
        ("The cat.", "", None),
        ("No", "", None),
        ("Go to", "", None),
        ("Where is the source of the river", "", None),
    ],
)
def test_names_of_columns_are_understood(name: str, side: str, language: str | None) -> None:
    assert (side_of(name), language_of(name)) == (side, language)


def test_options_that_cannot_be_are_refused() -> None:
    for options, message in (
        ({"columns": ("a", "b", "c")}, r"give 2, as in `columns=\(\"English\", \"German\"\)`"),
        ({"columns": "text"}, "give 2"),
        ({"columns": ("a", "b"), "languages": ("en", "de")}, "not both"),
        ({"encoding": "klingon"}, "no encoding 'klingon'"),
        ({"encoding": "base64"}, "no encoding 'base64'"),
        ({"separator": ";;"}, "give one character"),
    ):
        with pytest.raises(ConfigError, match=message):
            reading_options(**options)  # type: ignore[arg-type]
    assert reading_options(separator="tab").separator == "\t"
    assert reading_options(encoding="EUC-KR").encoding == "cp949"


# ---------------------------------------------------------------- how a table is written


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("form", ["{}", "sep={separator}\n{}", '\ufeff"sep={separator}"\r\n{}'])
def test_the_separator_of_csv_is_found(write: Write, separator: str, form: str) -> None:
    table = "".join(f'"{source}"{separator}"{target}"\n' for source, target in PAIRS)
    pairs, rejections = read(write("a.csv", form.format(table, separator=separator)))
    assert pairs == PAIRS
    assert f'separator "{"tab" if separator == chr(9) else separator}"' in said(rejections)


def test_csv_for_macintosh_has_other_line_ends(write: Write) -> None:
    table = "English;German\r" + "".join(f'{source};"{target}"\r' for source, target in PAIRS)
    assert read(write("a.csv", table, "mac_roman"))[0] == PAIRS


def test_a_comma_in_texts_is_no_separator_and_one_that_may_be_is_asked_about(write: Write) -> None:
    table = "".join(f"{source};{target}\n" for source, target in PAIRS * 3)
    assert read(write("a.csv", table))[0] == PAIRS * 3
    either = write("b.csv", "a,b;c,d\n" * 5)
    with pytest.raises(InputError, match=r'b\.csv: the columns may be separated by .* `separator="'):
        read(either)
    assert read(either, separator=";")[0] == [("a,b", "c,d")] * 5


def test_quotation_marks_in_tsv_are_text_but_those_of_spreadsheets_are_not(write: Write) -> None:
    texts = '"Come here.\t„Komm her.\nI will wait."\tIch warte.“\n"Yes," he said.\tja\n"No."\t"Nein."\n'
    assert [pair[0] for pair in read(write("a.tsv", texts))[0]] == [
        '"Come here.',
        'I will wait."',
        '"Yes," he said.',
        '"No."',
    ]
    spreadsheet = 'English\tGerman\n"He said ""no"""\tnein\n"two\nlines"\t"zwei\nZeilen"\n'
    assert read(write("b.tsv", spreadsheet))[0] == [('He said "no"', "nein"), ("two\nlines", "zwei\nZeilen")]


@given(
    good=st.lists(st.sampled_from(["a{},b", '"a{}, x","b"', '"a{}\nx",b', '"a{} ""x""",b']), min_size=1, max_size=6),
    place=st.integers(0, 6),
    bad=st.sampled_from(['"open,b', 'a,"open', '"a" b","open']),
)
def test_an_open_quote_costs_its_own_row_wherever_it_stands(good: list[str], place: int, bad: str) -> None:
    records = [each.format(number) for number, each in enumerate(good)]
    expected = [pair for record in records for pair in _read_bytes(record)[0]]
    pairs, rejections = _read_bytes("\n".join([*records[:place], bad, *records[place:]]))
    assert pairs == expected
    assert rejections.counts[OPEN_QUOTE.reason] == 1


def _read_bytes(content: str) -> tuple[list[tuple[str, ...]], Rejections]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        return read("-", separator=",")


def quoted(rows: list[tuple[str, ...]], separator: str = ",", *, minimal: bool = False) -> str:
    """As database tools write it, with single quotes."""
    file = io.StringIO()
    quoting = csv.QUOTE_MINIMAL if minimal else csv.QUOTE_NONNUMERIC
    csv.writer(file, delimiter=separator, quotechar="'", quoting=quoting).writerows(rows)
    return file.getvalue()


SPOKEN = [*PAIRS, ('It\'s me, "Jo"', "Ich bin's"), ("Two\nlines, 'so'", "Zwei\nZeilen")]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("header", [True, False])
def test_fields_in_single_quotes_are_read_and_said(write: Write, separator: str, header: bool) -> None:
    content = quoted([*([("English", "German")] if header else []), *SPOKEN], separator)
    pairs, rejections = read(write("a.csv", content))
    assert pairs == SPOKEN
    assert said(rejections).endswith("; fields in single quotes")
    assert read(write("b.csv", content), separator=separator)[0] == SPOKEN


def test_single_quotes_around_the_fields_that_need_them_are_read_too(write: Write) -> None:
    pairs, rejections = read(write("a.csv", quoted([("English", "German"), *SPOKEN], minimal=True)))
    assert (pairs, rejections.layouts[0].quotes) == (SPOKEN, "single")


@pytest.mark.parametrize(
    "content",
    [
        "'Hello' he said,'Hallo' sagte er\n'Tis late,Es ist spät\n'Yes','Ja'\n",
        "'Yes','Ja'\n'No','Nein'\nIt's me,Ich bin's\nGood night,Gute Nacht\nThanks,Danke\n",
        "\"'Yes', he said\",\"'Ja', sagte er\"\n\"'No'\",'Nein'\n",
    ],
    ids=["apostrophes", "quotations", "double quotes"],
)
def test_single_quotes_in_texts_stay_what_they_are(write: Write, content: str) -> None:
    pairs, rejections = read(write("a.csv", content))
    assert pairs == [tuple(row) for row in csv.reader(content.splitlines())]
    assert not rejections.layouts[0].quotes


# ---------------------------------------------------------------- encodings

TEXTS = {
    "cp1252": ["Wo ist die Straße?", "Schöne Grüße aus München!", "Das Café ist geöffnet – um 5 €."],
    "iso8859-15": [
        "Le cœur a cédé, très fatigué.",
        "L'été dernier à Orléans, désolée.",
        "Ça coûte 5 €, bien sûr, même là.",
    ],
    "mac_roman": ["Schöne Grüße", "Wo ist die Straße?", "Müller hört zu."],
    "cp1250": ["Příliš žluťoučký kůň.", "Děkuji za pomoc.", "Čtu zajímavou knihu."],
    "cp1251": ["Где находится вокзал?", "Я читаю книгу.", "Спасибо за помощь."],
    "cp949": ["안녕하세요, 반갑습니다.", "저는 학생입니다.", "역이 어디에 있나요?"],
    "cp932": ["こんにちは、お元気ですか。", "私は学生です。", "駅はどこですか。"],
    "euc_jp": ["こんにちは、お元気ですか。", "私は学生です。", "駅はどこですか。"],
    "gb18030": ["你好吗?我是学生。", "火车站在哪里?我不知道。", "他们明天会来这个城市。"],
    "utf-16": ["안녕하세요", "Wo ist die Straße?", "Да"],
    "utf-16-le": ["안녕하세요, 반갑습니다.", "저는 학생입니다.", "역이 어디에 있나요?"],
    "utf-16-be": ["Where is the station?", "I am a student.", "Thank you."],
}


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_encoding_of_either_file_is_found_and_said(write: Write, encoding: str, suffix: str) -> None:
    content = "".join(f"{text}\r\n" for text in TEXTS[encoding]).encode(encoding)
    source = write("a.en", "one\ntwo ’\nthree\n")
    target = write(f"a.xx{suffix}", gzip.compress(content) if suffix else content)
    rejections = Rejections()
    pairs = list(read_pairs([source, target], rejections))
    assert [pair.inputs[1] for pair in pairs] == TEXTS[encoding]
    assert rejections.layouts[0].describe() == ""
    assert rejections.layouts[1].describe().startswith(f"{target}: encoding ")


def test_utf8_with_some_bad_lines_stays_utf8(write: Write) -> None:
    path = write("a.tsv", "größer\tbigger\n".encode() * 3 + b"Stra\xdfe\tstreet\n" * 2 + b"caf\xe9\tcoffee\n")
    pairs, rejections = read(path)
    assert (len(pairs), rejections.counts) == (3, {"not valid UTF-8": 3})
    assert find_encoding(path) == "utf-8"


@pytest.mark.parametrize("word", ["L'œil", "Une œuvre", "Œuvres", "un œuf"])
def test_words_that_begin_with_a_ligature_are_read_in_iso_8859_15(write: Write, word: str) -> None:
    path = write("a.tsv", f"{word}\tx\nL'été dernier, très fatigué, désolé, à côté de là.\ty\n", "iso8859-15")
    assert read(path)[0][0] == (word, "x")


def test_fractions_and_accents_of_windows_1252_are_no_letters_of_iso_8859_15(write: Write) -> None:
    french = "L'été dernier, très fatigué, désolé, il a marché à côté de la forêt, près de là.\tx\n"
    texts = f"{3 * french}D´où vient le blé ? Après 2½ années, à Orléans, ça a été récolté.\ty\n"
    assert find_encoding(write("a.tsv", texts, "cp1252")) == "cp1252"
    with pytest.raises(InputError, match=r"not certain:\n  cp1252: (.|\n)*iso8859-15: "):
        find_encoding(write("b.tsv", texts.encode("cp1252") + "le cœur de la sœur\tz\n".encode("iso8859-15")))


def test_an_encoding_that_is_not_certain_is_asked_about_and_one_that_is_given_is_taken(write: Write) -> None:
    path = write("a.tsv", "Dziękuję.\tthanks\n", "cp1250")
    with pytest.raises(InputError, match=r"is not UTF-8, and its encoding is not certain:\n(.|\n)*`encoding=\"cp125"):
        read(path)
    assert read(path, encoding="cp1250")[0] == [("Dziękuję.", "thanks")]
    pairs, rejections = read(write("b.tsv", b"ein\x81\tone\nz\xf6lf\ttwelve\n"), encoding="cp1252")
    assert (pairs, rejections.counts) == ([("zölf", "twelve")], {"not valid Windows-1252": 1})


# ---------------------------------------------------------------- workbooks


def test_tables_written_by_libreoffice_are_read_alike() -> None:
    expected, _ = read(FILES / "terms.xlsx", sheet="Terms")
    assert len(expected) == 8
    assert expected[2] == ("Two lines\nin one cell", "Zwei Zeilen\nin einer Zelle")
    for name in ("semicolon-cp1252.csv", "tab-utf16.csv", "tab-utf16.tsv"):
        assert read(FILES / name)[0] == expected, name


def test_several_sheets_are_asked_about_and_cells_are_texts() -> None:
    with pytest.raises(
        InputError, match=r'has 2 sheets with content:\n  1  Terms\n  2  Values\n(.|\n)*`sheet="Terms"`'
    ):
        read(FILES / "terms.xlsx")
    with pytest.raises(InputError, match=r'has no sheet "Worte"\. There are:\n  1  Terms'):
        read(FILES / "terms.xlsx", sheet="Worte")
    pairs, rejections = read(FILES / "terms.xlsx", sheet=2)
    assert pairs == [("42", "2.5"), ("2024-05-01", "TRUE"), ("sum", "44.5")]
    assert rejections.counts == {"error value #DIV/0! in column 2": 1, "empty side": 1}
    assert said(rejections) == 'source = column 1 "Source", target = column 2 "Target"; sheet "Values"'


def test_a_formula_that_was_never_computed_is_named_by_its_column(tmp_path: Path) -> None:
    from openpyxl import Workbook

    book = Workbook()
    for row in (("source", "target"), ("one", "eins"), ("two", '="zw"&"ei"'), (None, None), ("three", "drei")):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    pairs, rejections = read(tmp_path / "a.xlsx")
    assert pairs == [("one", "eins"), ("three", "drei")]
    assert rejections.examples == {"formula without a stored value in column 2": [f"{tmp_path}/a.xlsx:3"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.xlsx", b"PK\x03\x04 and nothing", "cannot be read as an Excel workbook"),
        ("a.xlsx", b"\xd0\xcf\x11\xe0" + bytes(99), "is encrypted, or an old .xls workbook"),
        ("a.xlsx", b"no workbook", "cannot be read as an Excel workbook"),
        ("a.xls", b"\xd0\xcf\x11\xe0", "is an old Excel workbook, which is not read. Save it as .xlsx or CSV"),
        ("a.ods", b"PK\x03\x04", "is an OpenDocument spreadsheet"),
        ("a.csv", b"PK\x03\x04" + bytes(99), "is a ZIP archive"),
    ],
)
def test_workbooks_that_cannot_be_read_are_called_what_they_are(
    write: Write, name: str, content: bytes, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(write(name, content))


# ---------------------------------------------------------------- the other tasks


def test_texts_and_labels_of_tables_are_chosen_and_said(write: Write) -> None:
    table = "id;Wortlaut;Urteil;Quelle\n" + "".join(f"{n};text {n};{'ab'[n % 2]};{'uv'[n // 3]}\n" for n in range(6))
    path, rejections = write("a.csv", table), Rejections()
    with pytest.raises(InputError, match=r"not certain which of them are the text and the label(.|\n)*`columns="):
        list(read_labelled([path], rejections))
    options = reading_options(columns=("Wortlaut", "Urteil"))
    found = [(each.inputs[0], each.label) for each in read_labelled([path], rejections, options=options)]
    assert found == [(f"text {n}", "ab"[n % 2]) for n in range(6)]
    assert 'text = column 2 "Wortlaut", label = column 3 "Urteil"' in rejections.layouts[-1].describe()
    korean = write("b.tsv", "번호\t문장\t라벨\n1\t좋아요\t긍정\n2\t싫어요\t부정\n")
    assert [(each.inputs[0], each.label) for each in read_labelled([korean], Rejections())] == [
        ("좋아요", "긍정"),
        ("싫어요", "부정"),
    ]


def test_passages_of_tables_are_one_column(write: Write) -> None:
    table = write("a.csv", 'id,review,stars\n1,"one, two",5\n2,,4\n3,"three\n\nfour",3\n')
    rejections = Rejections()
    assert [each.inputs[0] for each in read_passages([table], rejections)] == ["one, two", "three\n\nfour"]
    assert rejections.counts == {"empty text": 1}
    objects = write("a.jsonl", '{"text": "one", "id": "x"}\n{"id": "y"}\n')
    assert [each.inputs[0] for each in read_passages([objects], Rejections())] == ["one"]
    unnamed = write("b.tsv", "alpha\tbeta\nlonger text\t2\n")
    with pytest.raises(InputError, match=r"which of them are the texts(.|\n)*`columns=1`"):
        list(read_passages([unnamed], Rejections()))
    chosen = read_passages([unnamed], Rejections(), options=reading_options(columns="beta", count=1))
    assert [each.inputs[0] for each in chosen] == ["2"]


def test_a_header_of_language_codes_is_no_pair_even_if_columns_are_chosen_by_number(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("en,de,fr\na cat,eine Katze,un chat\na dog,ein Hund,un chien\n", encoding="utf-8")
    found = list(aligned_texts([file], reading_options(columns=(2, 3))))
    assert found == [("eine Katze", "un chat"), ("ein Hund", "un chien")]


def test_the_title_above_a_header_is_not_counted_as_a_lost_pair(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("Glossary,\n,\nEnglish,German\na cat,eine Katze\na dog,ein Hund\n", encoding="utf-8")
    rejections = Rejections()
    assert len(list(read_pairs([file], rejections))) == 2
    assert rejections.total - rejections.not_meant == 0
    file.write_text("a bird,\na cat,eine Katze\na dog,ein Hund\n", encoding="utf-8")  # no header: it may be a pair
    rejections = Rejections()
    assert len(list(read_pairs([file], rejections))) == 2
    assert rejections.total == 1


def test_a_header_in_an_encoding_that_is_not_recognised_asks_for_the_encoding(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [f"a cat {number},un cœur à 5 € {number}" for number in range(50)]
    file.write_bytes("\n".join(["Anglais,Français", *rows]).encode("iso8859-15"))
    with pytest.raises(InputError, match=r"a\.csv:1: is not valid UTF-8.*`encoding="):
        list(aligned_texts([file]))
    assert len(list(aligned_texts([file], reading_options(encoding="iso8859-15")))) == 50


def test_a_workbook_given_as_a_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.xlsx").write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(InputError, match="is a workbook; text is read here"):
        list(read_lines(tmp_path / "a.xlsx"))
