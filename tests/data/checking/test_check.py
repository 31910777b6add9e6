"""The corpus check: every kind of finding is seen in a corpus that has it, and not in one that has not."""

from __future__ import annotations

import io
import json
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from jumok.data.checking.check import check_pairs
from jumok.data.checking.findings import KINDS, Finding, Report
from jumok.data.checking.symptoms import first_unpartnered, is_garbled, lacks_script, majority_script
from jumok.data.reading.options import ReadingOptions
from jumok.errors import InputError

WORDS = {
    "the little cat": "작은 고양이가",
    "my brother": "제 동생이",
    "every teacher in town": "마을의 모든 선생님이",
    "she": "그녀가",
    "read a long letter": "긴 편지를 읽었어요",
    "sleeps": "자요",
    "went home early because of the rain": "비 때문에 일찍 집에 갔어요",
    "likes apples": "사과를 좋아해요",
    "yesterday": "어제",
    "on the second day of the journey": "여행 둘째 날에",
    "in the park": "공원에서",
    "today at noon": "오늘 정오에",
}


@dataclass
class Corpus:
    """Two lists of lines, to be damaged and written."""

    sources: list[str]
    targets: list[str]

    def write(self, folder: Path, name: str = "a", languages: tuple[str, str] = ("en", "ko")) -> list[Path]:
        paths = [folder / f"{name}.{language}" for language in languages]
        for path, rows in zip(paths, (self.sources, self.targets), strict=True):
            path.write_bytes(b"".join(row.encode("utf-8", "surrogateescape") + b"\n" for row in rows))
        return paths


def clean_corpus(count: int = 300, seed: int = 1) -> Corpus:
    """Sentences of very different lengths, each with its own number, whose translations are in proportion."""
    generator = random.Random(seed)
    corpus = Corpus([], [])
    for number in range(count):
        parts = generator.choices(list(WORDS), k=generator.randint(1, 8))
        corpus.sources.append(f"{' '.join(parts)} {seed}-{number}.")
        corpus.targets.append(f"{' '.join(WORDS[part] for part in parts)} {seed}-{number}.")
    return corpus


@pytest.fixture
def corpus() -> Corpus:
    return clean_corpus()


def findings_of(report: Report) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def lines_of(finding: Finding) -> list[str]:
    return [example.where.rsplit("/", 1)[-1] for example in finding.examples]


def test_a_clean_corpus_has_no_findings(corpus: Corpus, tmp_path: Path) -> None:
    report = check_pairs(corpus.write(tmp_path), clean_corpus(50, seed=2).write(tmp_path, "valid"))
    assert report.clean, report.render()
    assert report.pairs == report.usable == report.source.lines == report.target.lines == 300
    assert report.source.characters == sum(map(len, corpus.sources))
    assert report.target.words == sum(len(target.split()) for target in corpus.targets)
    assert report.source.mean_words == pytest.approx(report.source.words / 300)
    assert (report.source.script, report.target.script) == ("Latin", "Hangul")
    assert "Nothing suspicious." in report.render()


Damage = Callable[[Corpus], None]


def _set(source: str | None = None, target: str | None = None) -> Damage:
    """Replace line 8 on one or both sides."""

    def damage(corpus: Corpus) -> None:
        corpus.sources[7] = corpus.sources[7] if source is None else source
        corpus.targets[7] = corpus.targets[7] if target is None else target

    return damage


def _repeat(corpus: Corpus) -> None:
    corpus.sources[7], corpus.targets[7] = corpus.sources[2], corpus.targets[2]


ONE_BAD_LINE: list[tuple[str, str, Damage]] = [
    ("empty-side", "a.en:8", _set(source="")),
    ("empty-side", "a.ko:8", _set(target=" \u3000")),
    ("too-long", "a.en:8", _set(source="x" * 1_000_001)),
    (
        "encoding-damage",
        "a.en:8",
        _set(source="A cafÃ© in the old town was closed.", target="옛 마을의 카페가 닫혀 있었다."),
    ),
    ("encoding-damage", "a.ko:8", _set(target="ì\x95\x88ë\x85\x95하세요 여러분")),
    ("encoding-damage", "a.en:8", _set(source="It�s a lovely day outside.", target="밖은 정말 좋은 날이에요.")),
    ("encoding-damage", "a.en:8", _set(source="Stop \x1b[31m here, please.", target="여기서 멈춰 주세요.")),
    ("encoding-damage", "a.ko:8", _set(target="둘\0셋")),
    ("encoding-damage", "a.ko:8", _set(target="둘\udcff셋")),
    ("wrong-script", "a.ko:8", _set(target="not translated at all here")),
    ("wrong-script", "a.en:8", _set(source="번역되지 않은 문장이에요.")),
    ("copied-source", "a.en:8", _set("The quick brown fox 한글", "The quick brown fox 한글")),
    ("length-ratio", "a.en:8", _set("This is a whole long sentence " * 5, "긴")),
    ("duplicates", "a.en:8", _repeat),
]


@pytest.mark.parametrize(("kind", "where", "damage"), ONE_BAD_LINE)
def test_a_bad_line_is_found_and_named(corpus: Corpus, tmp_path: Path, kind: str, where: str, damage: Damage) -> None:
    damage(corpus)
    report = check_pairs(corpus.write(tmp_path))
    finding = findings_of(report)[kind]
    assert finding.count == 1
    assert finding.share == pytest.approx(1 / 300)
    assert lines_of(finding) == [where]
    assert set(findings_of(report)) <= {kind, "length-ratio"}
    assert finding.what in report.render()
    assert finding.advice in report.render()


def test_what_only_looks_odd_is_not_reported(corpus: Corpus, tmp_path: Path) -> None:
    harmless = [
        ("Tom.", "Tom."),
        ("OK", "OK"),
        ("2026-11-15", "2026-11-15"),
        ("“CAFÉ” — naïve façade, Spaß", "«카페»… ‘순진한’ 정면"),
        ("Hi.", "안녕하세요."),
        ("A cat\u2028or two", "고양이\u00a0한두 마리"),
    ]
    for index, (source, target) in enumerate(harmless):
        corpus.sources[index], corpus.targets[index] = source, target
    report = check_pairs(corpus.write(tmp_path))
    assert report.clean, report.render()


@pytest.mark.parametrize("missing", [[120], [40, 41, 42], [30, 200, 280], list(range(100, 160))])
@pytest.mark.parametrize("shorter_side", ["sources", "targets"])
def test_unequal_files_are_told_where_they_part(
    corpus: Corpus, tmp_path: Path, missing: list[int], shorter_side: str
) -> None:
    rows = getattr(corpus, shorter_side)
    setattr(corpus, shorter_side, [row for index, row in enumerate(rows) if index not in missing])
    report = check_pairs(corpus.write(tmp_path))
    assert [finding.kind for finding in report.findings] == ["unequal-length"]
    finding = report.findings[0]
    name, line = lines_of(finding)[0].split(":")
    assert finding.count == len(missing)
    assert name == ("a.ko" if shorter_side == "sources" else "a.en")
    assert abs(int(line) - (missing[0] + 1)) <= 6
    assert {report.source.lines, report.target.lines} == {300, 300 - len(missing)}


def test_a_file_that_was_cut_off_parts_at_its_end(corpus: Corpus, tmp_path: Path) -> None:
    for kept in (299, 200, 30, 0):
        corpus.targets = corpus.targets[:kept]
        finding = findings_of(check_pairs(corpus.write(tmp_path)))["unequal-length"]
        assert lines_of(finding) == [f"a.en:{kept + 1}"]
        assert "ends before this line" in finding.examples[0].excerpt


def test_equal_lengths_fit_everywhere() -> None:
    lengths = [len(source) for source in clean_corpus().sources]
    assert first_unpartnered(lengths, lengths, 5) == len(lengths)


def test_labels_are_not_translations(corpus: Corpus, tmp_path: Path) -> None:
    labels = [str(number % 2) for number in range(300)]
    for damaged in (Corpus(corpus.sources, labels), Corpus(labels, corpus.targets)):
        report = check_pairs(damaged.write(tmp_path))
        assert [finding.kind for finding in report.findings] == ["labels"]
        assert report.findings[0].count == 2


def test_a_corpus_of_one_pair_over_and_over_is_duplicates_not_labels(tmp_path: Path) -> None:
    report = check_pairs(Corpus(["yes, of course"] * 100, ["네, 물론이죠"] * 100).write(tmp_path))
    assert [(finding.kind, finding.count) for finding in report.findings] == [("duplicates", 99)]


def test_the_same_file_twice(corpus: Corpus, tmp_path: Path) -> None:
    paths = corpus.write(tmp_path)
    assert "same-file" in findings_of(check_pairs([paths[0], paths[0]]))
    copy = Corpus(corpus.sources, corpus.sources).write(tmp_path, "copy")
    assert [finding.kind for finding in check_pairs(copy).findings] == ["same-file"]


def test_swapped_files(corpus: Corpus, tmp_path: Path) -> None:
    swapped = Corpus(corpus.targets, corpus.sources)
    assert [finding.kind for finding in check_pairs(swapped.write(tmp_path, "b")).findings] == ["swapped"]
    assert check_pairs(swapped.write(tmp_path, "b", ("ko", "en"))).clean
    assert check_pairs(swapped.write(tmp_path, "b", ("one", "two"))).clean
    valid = clean_corpus(50, seed=2)
    paths = Corpus(valid.targets, valid.sources).write(tmp_path, "valid", ("one", "two"))
    assert [finding.kind for finding in check_pairs(corpus.write(tmp_path), paths).findings] == ["swapped"]


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5])
def test_swapped_pairs_are_found_whatever_their_share(corpus: Corpus, tmp_path: Path, share: float) -> None:
    swapped = sorted(random.Random(5).sample(range(300), round(300 * share)))
    for index in swapped:
        corpus.sources[index], corpus.targets[index] = corpus.targets[index], corpus.sources[index]
    found = findings_of(check_pairs(corpus.write(tmp_path, languages=("one", "two"))))
    assert {"swapped-pairs"} <= found.keys() <= {"swapped-pairs", "length-ratio"}
    assert found["swapped-pairs"].count == len(swapped)
    if share < 0.5:
        assert lines_of(found["swapped-pairs"]) == [f"a.one:{index + 1}" for index in swapped[:3]]


@pytest.mark.parametrize("swapped", [range(2500), range(3500, 5000)], ids=["first", "last"])
def test_a_block_of_swapped_pairs_is_found_wherever_it_is(tmp_path: Path, swapped: range) -> None:
    corpus = clean_corpus(6000)
    for index in swapped:
        corpus.sources[index], corpus.targets[index] = corpus.targets[index], corpus.sources[index]
    finding = findings_of(check_pairs(corpus.write(tmp_path, languages=("one", "two"))))["swapped-pairs"]
    assert finding.count == len(swapped)
    assert lines_of(finding)[0] == f"a.one:{swapped[0] + 1}"


def related_languages(count: int, shared: float = 0.5) -> Corpus:
    """Two languages in one script with the same sounds, which share some of their words."""
    draw = random.Random(3)
    syllables = [consonant + vowel for consonant in "bdfgklmnprst" for vowel in "aeiou"]
    words = ["".join(draw.choices(syllables, k=draw.randint(1, 3))) for _ in range(400)]
    other = {word: word if draw.random() < shared else "".join(draw.choices(syllables, k=2)) + "k" for word in words}
    corpus = Corpus([], [])
    for _ in range(count):
        sentence = draw.choices(words, k=draw.randint(3, 12))
        corpus.sources.append(" ".join(sentence))
        corpus.targets.append(" ".join(other[word] for word in sentence))
    return corpus


def test_swapped_pairs_of_related_languages_are_found_and_others_are_not(tmp_path: Path) -> None:
    corpus = related_languages(3000)
    assert "swapped-pairs" not in findings_of(check_pairs(corpus.write(tmp_path)))
    for index in range(0, 3000, 20):
        corpus.sources[index], corpus.targets[index] = corpus.targets[index], corpus.sources[index]
    finding = findings_of(check_pairs(corpus.write(tmp_path)))["swapped-pairs"]
    assert 130 <= finding.count <= 150
    assert all(int(where.rpartition(":")[2]) % 20 == 1 for where in lines_of(finding))


def test_sides_in_one_language_are_not_taken_for_swapped(tmp_path: Path) -> None:
    sources, shuffled = clean_corpus(800).sources, clean_corpus(800, seed=2).sources
    for targets in (shuffled, [source.upper() for source in sources], [source[::-1] for source in sources]):
        found = findings_of(check_pairs(Corpus(sources, targets).write(tmp_path, languages=("one", "two"))))
        assert not found.keys() & {"swapped-pairs", "wrong-language"}


def test_a_side_in_the_language_of_the_other_is_found(tmp_path: Path) -> None:
    corpus, other = related_languages(1000, shared=0.1), related_languages(1100, shared=0.1)
    for index in range(0, 1000, 20):
        corpus.targets[index] = other.sources[1000 + index // 20]
    finding = findings_of(check_pairs(corpus.write(tmp_path)))["wrong-language"]
    assert 25 <= finding.count <= 50
    assert all(int(where.rpartition(":")[2]) % 20 == 1 for where in lines_of(finding))


@pytest.mark.parametrize("identifier", ["{}", "{:05}.", "SEG_{}", "2026-11-{}", "c0ffee-{}"])
def test_a_side_of_numbers_or_identifiers(corpus: Corpus, tmp_path: Path, identifier: str) -> None:
    identifiers = [identifier.format(number) for number in range(300)]
    for damaged, where in (
        (Corpus(identifiers, corpus.targets), "a.en"),
        (Corpus(corpus.sources, identifiers), "a.ko"),
    ):
        finding = findings_of(check_pairs(damaged.write(tmp_path)))["numbers"]
        assert (finding.count, lines_of(finding)) == (300, [f"{where}:1", f"{where}:2", f"{where}:3"])
    both = findings_of(check_pairs(Corpus(identifiers, identifiers[::-1]).write(tmp_path)))
    assert "numbers" not in both


def test_a_side_that_is_nearly_always_the_same(corpus: Corpus, tmp_path: Path) -> None:
    for index in range(250):
        corpus.targets[index] = "아직 번역되지 않은 문장입니다. 나중에 번역합니다."
    finding = findings_of(check_pairs(corpus.write(tmp_path)))["constant"]
    assert (finding.count, lines_of(finding)[0]) == (250, "a.ko:1")


def test_a_corpus_of_which_more_than_a_third_cannot_be_used(corpus: Corpus, tmp_path: Path) -> None:
    for index in range(100):
        corpus.targets[index] = ""
    assert "left-out" not in findings_of(check_pairs(corpus.write(tmp_path)))
    corpus.sources[200] = " "
    report = check_pairs(corpus.write(tmp_path))
    assert findings_of(report)["left-out"].count == 101
    assert "`skip_unusable=True`" in report.render()


def test_units_of_other_languages_than_those_chosen_are_no_finding(corpus: Corpus, tmp_path: Path) -> None:
    units = [
        f'<tu><tuv lang="en"><seg>{source}</seg></tuv>'
        f'<tuv lang="{("ko", "fr")[n % 2]}"><seg>{target}</seg></tuv></tu>\n'
        for n, (source, target) in enumerate(zip(corpus.sources, corpus.targets, strict=True))
    ]
    (tmp_path / "a.tmx").write_text(f"<tmx><body>{''.join(units)}</body></tmx>", encoding="utf-8")
    report = check_pairs([tmp_path / "a.tmx"], options=ReadingOptions(languages=("en", "ko")))
    assert report.clean, report.render()
    assert (report.usable, report.pairs) == (150, 300)


def test_validation_that_training_has_seen(corpus: Corpus, tmp_path: Path) -> None:
    valid = clean_corpus(50, seed=2)
    valid.sources[4], valid.targets[4] = corpus.sources[9], corpus.targets[9]
    valid.sources[30], valid.targets[30] = corpus.sources[9], corpus.targets[9]
    report = check_pairs(corpus.write(tmp_path), valid.write(tmp_path, "valid"))
    finding = findings_of(report)["validation-in-training"]
    assert finding.count == 2
    assert finding.share == pytest.approx(2 / 50)
    assert lines_of(finding) == ["valid.en:5"]
    assert "validation-sources-in-training" not in findings_of(report)

    valid = clean_corpus(50, seed=2)
    valid.sources[:10] = corpus.sources[:10]
    report = check_pairs(corpus.write(tmp_path), valid.write(tmp_path, "valid"))
    assert [(finding.kind, finding.count) for finding in report.findings] == [("validation-sources-in-training", 10)]


def test_malformed_records(corpus: Corpus, tmp_path: Path) -> None:
    rows = [f"{source}\t{target}" for source, target in zip(corpus.sources, corpus.targets, strict=True)]
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(rows), encoding="utf-8")
    assert check_pairs([path]).clean
    rows[3] = "no tab here"
    path.write_text("\n".join(rows), encoding="utf-8")
    finding = findings_of(check_pairs([path]))["malformed"]
    assert (finding.count, lines_of(finding)) == (1, ["a.tsv:4"])


def test_what_was_taken_from_a_table_is_said(corpus: Corpus, tmp_path: Path) -> None:
    rows = [f"{source}\t{target}\tCC-BY" for source, target in zip(corpus.sources, corpus.targets, strict=True)]
    path = tmp_path / "a.tsv"
    path.write_text("\n".join(["English\tKorean\tLicence\x1b[31m", *rows]), encoding="utf-8")
    report = check_pairs([path])
    assert report.clean
    said = f'{path}: source = column 1 "English", target = column 2 "Korean"; not used: column 3 "Licence\\x1b[31m"'
    assert report.render().splitlines()[0] == said
    assert report.to_json()["read_as"] == (said,)


def test_a_quote_that_is_closed_in_a_later_row_is_a_finding_with_its_line(corpus: Corpus, tmp_path: Path) -> None:
    rows = [f"{source},{target}" for source, target in zip(corpus.sources, corpus.targets, strict=True)]
    rows[4] = rows[4].replace(",", ',"')
    rows[6] += '"'
    path = tmp_path / "a.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    finding = findings_of(check_pairs([path]))["open-quote"]
    assert (finding.count, lines_of(finding)) == (1, ["a.csv:5"])


def test_standard_input_is_checked_too(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    _repeat(corpus)
    rows = "".join(f"{source}\t{target}\n" for source, target in zip(corpus.sources, corpus.targets, strict=True))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(rows.encode())))
    assert lines_of(findings_of(check_pairs(["-"]))["duplicates"]) == ["standard input:8"]


def test_the_report_is_plain_values_and_safe_to_print(corpus: Corpus, tmp_path: Path) -> None:
    _set(source="Stop \x1b[31m here\u202e, please.", target="여기서 멈춰 주세요.")(corpus)
    report = check_pairs(corpus.write(tmp_path))
    assert "\x1b" not in report.render()
    assert "\u202e" not in report.render()
    plain = json.loads(json.dumps(report.to_json()))
    assert plain["clean"] is False
    assert plain["findings"][0]["kind"] == "encoding-damage"
    assert plain["findings"][0]["examples"][0]["where"].endswith("a.en:8")
    assert plain["source"]["characters"] == report.source.characters


def test_a_corpus_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    empty = Corpus([], []).write(tmp_path)
    with pytest.raises(InputError, match="there are no lines"):
        check_pairs(empty)
    with pytest.raises(InputError, match="no such file"):
        check_pairs([empty[0], tmp_path / "missing"])


def test_tiny_corpora_are_not_judged_by_habits(tmp_path: Path) -> None:
    report = check_pairs(Corpus(["one"], ["하나"]).write(tmp_path))
    assert report.clean, report.render()


def test_every_kind_is_tested_here() -> None:
    elsewhere = {
        "unequal-length",
        "same-file",
        "swapped",
        "labels",
        "left-out",
        "numbers",
        "constant",
        "swapped-pairs",
        "wrong-language",
        "open-quote",
        "malformed",
        "validation-in-training",
        "validation-sources-in-training",
    }
    assert set(KINDS) == elsewhere | {kind for kind, _, _ in ONE_BAD_LINE}


@pytest.mark.parametrize(
    "text", ["naïve café", "Москва – это город", "한국어 문장", "مرحبا بالعالم", "“Ça va ?” – « Où ? »…"]
)
def test_text_read_in_the_wrong_encoding_is_seen_and_the_right_one_is_not(text: str) -> None:
    assert not is_garbled(text)
    assert is_garbled(text.encode().decode("latin-1"))
    assert is_garbled(text.encode().decode("cp1252", "replace"))


def test_scripts() -> None:
    assert majority_script(["abc", "def", "가나", "12", "gh", "ij", "kl"]) == "Latin"
    assert majority_script(["abc", "가나"]) is None
    assert majority_script(["12", "?"]) is None
    assert majority_script(["日本語です", "カタカナ"]) == "Han or Kana"
    assert lacks_script("completely Latin", "Hangul")
    assert not lacks_script("mostly Latin 과", "Hangul")
    assert not lacks_script("12:30", "Hangul")
    assert not lacks_script("whatever it is", None)
