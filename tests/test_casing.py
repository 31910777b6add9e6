"""Upper and lower case in several languages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.tokenizer import is_title_case, is_upper_case, lower_case, sentence_case, title_case, upper_case


@given(st.text(st.sampled_from("aBßİıŉﬁΣς가'ǆ ") | st.characters(codec="utf-8")), st.sampled_from([None, "en", "tr"]))
def test_the_number_of_characters_stays(text: str, language: str | None) -> None:
    for converted in (lower_case(text, language), upper_case(text, language), sentence_case(text, language)):
        assert len(converted) == len(text)
    assert len(title_case(text)) == len(text)


@pytest.mark.parametrize(
    ("capitals", "language", "small"),
    [
        ("I AM A STUDENT.", "en", "I am a student."),
        ("„DIE STRAẞE!“", "de", "„Die straße!“"),
        ("IŞIK VE İZMİR", "tr", "Işık ve i̇zmir".replace("i̇", "i")),
        ("ΚΑΛΗΜΕΡΑ ΚΟΣΜΟΣ", "el", "Καλημερα κοσμος"),
    ],
)
def test_capital_letters_and_back(capitals: str, language: str, small: str) -> None:
    assert is_upper_case(capitals)
    assert sentence_case(capitals, language) == small
    assert upper_case(lower_case(capitals, language), language) == capitals


def test_what_is_not_in_capital_letters() -> None:
    assert not any(map(is_upper_case, ["I am", "안녕", "3.5", "", "iPHONE"]))


def test_title_case_knows_apostrophes() -> None:
    assert title_case("a man doesn't see the USA") == "A Man Doesn't See The USA"


def test_what_is_in_title_case() -> None:
    assert all(
        map(is_title_case, ["A Man Rides a Horse", "The Lord of the Rings", "Don't Look Back", "I Am A Student."])
    )
    assert not any(map(is_title_case, ["A man rides a Horse.", "I AM HERE NOW", "Tom met Mary.", "안녕 세상", ""]))
