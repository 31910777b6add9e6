"""Long lines in parts, and together again."""

import re
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.engines.translator.segments import Segment, Split, join_paragraphs, split_text

LONG = 3  # fewer tokens than any sentence here has


def count_characters(texts: Sequence[str]) -> list[int]:
    return [len(text) for text in texts]


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def parts(text: str, limit: int = LONG, count=count_characters) -> list[str]:  # type: ignore[no-untyped-def]
    return [segment.text for segment in split_text(text, limit, count).segments]


def sentences(text: str) -> list[str]:
    """The parts of a text that is too long by one word, all of whose sentences fit."""
    return parts(text, len(text.split()) - 1, count_words)


any_text = st.text(
    st.sampled_from("aB3 .,;!?…。、가나 \t\n\u00a0\u0301\"')」") | st.characters(codec="utf-8"), max_size=80
)


@given(any_text, st.integers(1, 40))
def test_nothing_is_lost(text: str, limit: int) -> None:
    split = split_text(text, limit, count_characters)
    assert split.lead + "".join(segment.text + segment.separator for segment in split.segments) == text
    for segment in split.segments:
        assert segment.text
        assert segment.text == segment.text.strip()
        assert len(segment.text) <= limit
        assert not segment.separator or segment.separator.isspace()


@given(any_text, st.integers(1, 40))
def test_answers_equal_to_the_parts_keep_every_character_but_spaces(text: str, limit: int) -> None:
    split = split_text(text, limit, count_characters)
    if split.segments:
        joined = split.join([segment.text for segment in split.segments])
        assert joined.replace(" ", "") == text.replace(" ", "")


@given(any_text)
def test_a_short_line_stays_whole(text: str) -> None:
    assert parts(text, limit=1_000) == [line.strip() for line in re.split("\n", text) if line.strip()]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It rains. We stay! Why? Because…  So.", ["It rains.", "We stay!", "Why?", "Because…", "So."]),
        ('She said "No." Then (he left.) And so on.', ['She said "No."', "Then (he left.)", "And so on."]),
        ("Mr. Kim paid 3.5 to Dr. J. Park. He left.", ["Mr. Kim paid 3.5 to Dr. J. Park.", "He left."]),
        ("In the U.S. Army, e.g. Texas. Really.", ["In the U.S. Army, e.g. Texas.", "Really."]),
        ("Am 3. Mai kam er. Dann ging er.", ["Am 3. Mai kam er.", "Dann ging er."]),
        ("In 1995. Then more.", ["In 1995.", "Then more."]),
        ('"Stop!" he said. She did.', ['"Stop!" he said.', "She did."]),
        ("a man sits . a dog runs . mr. kim too .", ["a man sits .", "a dog runs .", "mr. kim too ."]),
        ("Wait... What?! Now.", ["Wait...", "What?!", "Now."]),
        ("비가 온다. 집에 있자! 왜? 그냥요.", ["비가 온다.", "집에 있자!", "왜?", "그냥요."]),
        ("비가 온다.집에 있자. 네. 좋아요.", ["비가 온다.", "집에 있자.", "네.", "좋아요."]),
        ("“왜?”라고 물었다. 끝. 자 가자.", ["“왜?”라고 물었다.", "끝.", "자 가자."]),
        ("See www.example.com for v1.2.3 now. Then go on.", ["See www.example.com for v1.2.3 now.", "Then go on."]),
    ],
)
def test_sentence_ends(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


def test_sentences_without_spaces() -> None:
    text = "雨が降る。家にいよう！「なぜ？」と言った。终了。"
    assert parts(text, limit=10) == ["雨が降る。", "家にいよう！", "「なぜ？」と言った。", "终了。"]


def test_a_long_sentence_is_cut_at_a_clause() -> None:
    assert parts("one two three four, five six seven eight", 4, count_words) == [
        "one two three four,",
        "five six seven eight",
    ]
    assert parts("雨が降るので、家にいよう", 8) == ["雨が降るので、", "家にいよう"]


def test_a_long_clause_is_cut_at_a_space_near_the_middle() -> None:
    assert parts("a, two three four five six seven", 6, count_words) == ["a, two three four", "five six seven"]


def test_a_long_word_is_cut_between_characters() -> None:
    assert parts("see " + "x" * 20, 10) == ["see", "x" * 10, "x" * 10]


@pytest.mark.parametrize("sign", ["e\u0301", "👩\u200d🚀", "👍\U0001f3fd", "กี่"])
def test_a_sign_of_several_characters_is_not_torn(sign: str) -> None:
    for part in parts(sign * 9, 7):
        assert len(part) % len(sign) == 0


def test_what_cannot_be_cut_stays() -> None:
    assert parts("한글", 1, lambda texts: [5 for _ in texts]) == ["한", "글"]


def test_a_very_long_word_is_cut_evenly() -> None:
    segments = parts("x" * 200_000, 400)
    assert max(map(len, segments)) <= 400
    assert min(map(len, segments)) >= 100


def test_a_very_long_line_of_sentences() -> None:
    segments = parts("Mr. Kim is here, as ever. " * 8_000, 60)
    assert segments == ["Mr. Kim is here, as ever."] * 8_000


@pytest.mark.parametrize(
    ("source", "answers", "expected"),
    [
        ("It rains. We stay.", ["Es regnet.", "Wir bleiben."], "Es regnet. Wir bleiben."),
        ("It rains. We stay.", ["雨が降る。", "家にいる。"], "雨が降る。家にいる。"),
        ("雨が降る。家にいる。", ["It rains.", "We stay."], "It rains. We stay."),
        ("비가 온다.집에 있자.", ["It rains.", "We stay."], "It rains. We stay."),
        ("It rains. We stay.", ["비가 온다.", "집에 있자."], "비가 온다. 집에 있자."),
        (" It rains.\tWe stay. ", ["雨。", "家。"], " 雨。\t家。 "),
        ("It rains.\n\nWe stay.", ["雨。", "家。"], "雨。\n\n家。"),
    ],
)
def test_answers_are_joined_as_their_language_wants(source: str, answers: list[str], expected: str) -> None:
    split = split_text(source, 9, count_characters)
    assert len(split.segments) == 2
    assert split.join(answers) == expected


def test_a_word_that_was_cut_is_one_word_again() -> None:
    assert Split("", (Segment("https://exam", ""), Segment("ple.com", ""))).join(["https://exam", "ple.com"]) == (
        "https://example.com"
    )


@given(any_text, st.integers(1, 40))
def test_nothing_is_lost_between_sentences(text: str, limit: int) -> None:
    split = split_text(text, limit, count_characters, sentences=True)
    assert split.lead + "".join(segment.text + segment.separator for segment in split.segments) == text


def test_only_a_sentence_that_is_cut_is_too_long() -> None:
    def too_long(text: str, *, sentences: bool) -> bool:
        return split_text(text, 20, count_characters, sentences=sentences).too_long

    assert not too_long("It rains. We stay. It rains.", sentences=True)
    assert too_long("It rains. We stay. It rains.", sentences=False)
    assert too_long("It rains and we stay. Yes.", sentences=True)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["It rains", "  today. ", "", "", "We stay."], ["It rains today.", "", "", "We stay."]),
        (["비가", "온다."], ["비가 온다."]),
        (["雨が", "降る。", "家。"], ["雨が降る。家。"]),
        (["a well-", "known sec\u00ad", "ret"], ["a well-known secret"]),
        (["Haupt-", "und Nebensatz –", "so"], ["Haupt- und Nebensatz – so"]),
        (["", " "], ["", " "]),
        ([], []),
    ],
)
def test_the_lines_of_a_paragraph_become_one(lines: list[str], expected: list[str]) -> None:
    assert list(join_paragraphs(lines)) == expected
