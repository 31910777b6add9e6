"""Upper and lower case. A text keeps its number of characters, so that positions in it stay the same."""

import re
from collections.abc import Callable

_WORD_START = re.compile(r"(?<![^\W_])(?<![’'])[^\W\d_]")  # not the t of don't
_WORD = re.compile(r"[^\W\d_][\w'’-]*")
_SHORT_WORD = 3  # letters; in, the, and may be small in a title
_FIRST_LETTER = re.compile(r"[^\W\d_]")
_DOTTED_I = ("tr", "az")  # in these languages I is the capital of ı, and İ that of i


def is_upper_case(text: str) -> bool:
    """Whether a text has capital letters and no small ones. Letters without case, as in Korean, do not matter."""
    return text.isupper()


def is_title_case(text: str) -> bool:
    """Whether a text is written Like This Headline: every longer word, or every word, begins with a capital letter."""
    words = _WORD.findall(text)
    longer = [word for word in words if len(word) > _SHORT_WORD]
    judged = longer if len(longer) > 1 else words if len(words) > 2 else []
    return bool(judged) and not text.isupper() and all(word[0].isupper() for word in judged)


def lower_case(text: str, language: str | None = None) -> str:
    """The text in small letters. `language` is a code such as "tr"; some have rules of their own."""
    if language in _DOTTED_I:
        text = text.replace("I", "ı")
    return _of_same_length(text.replace("İ", "i"), str.lower)


def upper_case(text: str, language: str | None = None) -> str:
    """The text in capital letters. `language` is a code such as "tr"; some have rules of their own."""
    if language in _DOTTED_I:
        text = text.replace("i", "İ")
    return _of_same_length(text.replace("ß", "ẞ"), str.upper)


def sentence_case(text: str, language: str | None = None) -> str:
    """The text in small letters, its first letter a capital."""
    return _FIRST_LETTER.sub(lambda letter: upper_case(letter[0], language), lower_case(text, language), count=1)


def title_case(text: str) -> str:
    """The text with a capital letter at the start of every word; other letters stay as they are."""
    return _WORD_START.sub(lambda letter: upper_case(letter[0]), text)


def _of_same_length(text: str, convert: Callable[[str], str]) -> str:
    """The converted text, without those conversions that would make two characters of one (ŉ, ﬁ …)."""
    converted = convert(text)
    if len(converted) == len(text):
        return converted
    return "".join(new if len(new := convert(character)) == 1 else character for character in text)
