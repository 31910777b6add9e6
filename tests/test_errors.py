"""Words that messages share."""

import pytest

from jumok.errors import counted


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((0, "line"), "0 lines"),
        ((1, "line"), "1 line"),
        ((2000, "line"), "2,000 lines"),
        ((1, "class", "classes"), "1 class"),
        ((3, "class", "classes"), "3 classes"),
    ],
)
def test_a_number_has_its_noun_in_the_right_form(arguments: tuple[int, str], text: str) -> None:
    assert counted(*arguments) == text


def test_a_number_that_is_not_whole_is_written_as_wanted() -> None:
    assert counted(1.0, "minute", form="g") == "1 minute"
    assert counted(2.5, "minute", form="g") == "2.5 minutes"
