"""Splitting texts into segments that a model can translate, and joining the translations.
Nothing is lost: white space around segments is kept from the model and put back around the translations."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from jumok.engines.translator.sentences import CLOSING, ENDS, UNSPACED, sentence_ends

_WITHOUT_WORD_SPACES = "\u0e00-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Myanmar, Khmer: spaces, but not after words
_CLAUSE_ENDS = ",;:،؛，；：、"
_CLAUSE_END = re.compile(rf"[{_CLAUSE_ENDS}][{CLOSING}]*(?=\s)|[，；：、]")
_WORD_END = re.compile(r"(?<=\S)(?=\s)")
_ENDS_UNSPACED = re.compile(rf"[{UNSPACED}]$")
_BEGINS_UNSPACED = re.compile(rf"[{UNSPACED}]")
_WORD_HYPHEN = re.compile(r"[^\W\d_]-$")
_AFTER_HYPHEN = re.compile(r"(and|or|und|oder|bis)\b|[\W\d_]")  # Haupt- und Nebensatz
_ENDS_A_PART = re.compile(rf"[{ENDS}{_CLAUSE_ENDS}{CLOSING}{UNSPACED}{_WITHOUT_WORD_SPACES}]$")
_NEAR = 32

Count = Callable[[Sequence[str]], list[int]]  # the number of tokens in each text


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text without surrounding white space, and the separator between it and the next."""

    text: str
    separator: str


@dataclass(frozen=True, slots=True)
class Split:
    """A text in segments: `lead`, then each segment with its separator, is the text."""

    lead: str
    segments: tuple[Segment, ...]
    too_long: bool = False  # True: a line had to be split for its length alone

    def join(self, outputs: Sequence[str]) -> str:
        """The outputs for the segments, one each, with the white space of the text around and between them."""
        *inner, last = zip(self.segments, outputs, strict=True)
        joined = [output + _separator(segment, output) for segment, output in inner]
        return "".join((self.lead, *joined, last[1], last[0].separator))


def split_text(
    text: str,
    limit: int,
    count: Count,
    *,
    usual: int | None = None,
    sentences: bool = False,
    language: str | None = None,
) -> Split:
    """The `sentences` of a text as segments, or else its lines, of which only those of more than `usual` tokens (else
    `limit`) are split into sentences. A sentence over the limit is halved: at , ; : or at a space if there is one, else
    between two characters. `language`, the code of the text's language, helps to find the ends of sentences."""
    usual = limit if usual is None else min(usual, limit)
    lines = _parts(re.split(r"(?<=\n)", text) if "\n" in text else [text])
    counts = count([line.text for line in lines.segments])
    segments: list[Segment] = []
    too_long = False
    for line, tokens in zip(lines.segments, counts, strict=True):
        ends = sentence_ends(line.text, language) if sentences or tokens > usual else ()
        if not ends and tokens <= limit:  # as most are
            segments.append(line)
            continue
        found = _cut(line, ends)
        parts = list(_shortened(found, limit, count))
        too_long |= len(parts) > (len(found) if sentences else 1)
        segments += parts
    return Split(lines.lead, tuple(segments), too_long)


def join_paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Each paragraph of hard-wrapped text as one line. Blank lines, which separate paragraphs, stay as they are."""
    paragraph = ""
    for line in lines:
        if line.strip():
            paragraph = _unwrapped(paragraph, line.strip()) if paragraph else line.strip()
            continue
        if paragraph:
            yield paragraph
        paragraph = ""
        yield line
    if paragraph:
        yield paragraph


def _unwrapped(text: str, line: str) -> str:
    """A text and its next line: without a space in Chinese and Japanese, and after the hyphen of a word."""
    if text.endswith("\u00ad"):  # a soft hyphen
        return text[:-1] + line
    unspaced = _ENDS_UNSPACED.search(text) and _BEGINS_UNSPACED.match(line)
    return (
        text + line if unspaced or (_WORD_HYPHEN.search(text) and not _AFTER_HYPHEN.match(line)) else f"{text} {line}"
    )


def _shortened(segments: Sequence[Segment], limit: int, count: Count) -> Iterator[Segment]:
    """The segments, those over the limit cut until none is, or only a character is left."""
    counts = count([segment.text for segment in segments])
    for segment, tokens in zip(segments, counts, strict=True):
        if tokens <= limit or len(segment.text) == 1:
            yield segment
        else:
            yield from _shortened(_cut(segment, [_middle(segment.text)]), limit, count)


def _parts(slices: Iterable[str]) -> Split:
    """The slices of a text as segments, the white space around them as separators."""
    texts: list[str] = []
    spaces = [""]
    for part in slices:
        text = part.strip()
        if not text:
            spaces[-1] += part
            continue
        begin = part.index(text)
        spaces[-1] += part[:begin]
        texts.append(text)
        spaces.append(part[begin + len(text) :])
    return Split(spaces[0], tuple(map(Segment, texts, spaces[1:])))


def _cut(segment: Segment, indices: Iterable[int]) -> list[Segment]:
    """The segment cut at these indices; the last part keeps the separator."""
    edges = [0, *indices, len(segment.text)]
    *first, last = _parts(segment.text[begin:end] for begin, end in pairwise(edges)).segments
    return [*first, Segment(last.text, segment.separator)]


def _middle(text: str) -> int:
    """The index at which to cut a text in two: near its middle, at the strongest mark that leaves no small rest."""
    middle, margin = len(text) // 2, max(1, len(text) // 4)
    clause_ends = [match.end() for match in _CLAUSE_END.finditer(text)]
    word_ends = [match.end() for match in _WORD_END.finditer(text)]
    choices = [
        [index for index in clause_ends if margin <= index <= len(text) - margin],
        [index for index in word_ends if margin <= index <= len(text) - margin],
        word_ends,  # beside a very long word
        _sign_ends(text, middle),
        [middle],
    ]
    return min(next(filter(None, choices)), key=lambda index: abs(index - middle))


def _sign_ends(text: str, middle: int) -> list[int]:
    """Indices near the middle that do not split a character from its accents, vowel signs or emoji modifiers."""
    return [
        index
        for index in range(max(1, middle - _NEAR), min(len(text), middle + _NEAR))
        if "\u200d" not in text[index - 1 : index + 1]
        and unicodedata.category(text[index])[0] != "M"
        and not "\U0001f3fb" <= text[index] <= "\U0001f3ff"
    ]


def _separator(segment: Segment, output: str) -> str:
    """What separates this output from the next. Only one of the two languages may use spaces there."""
    separator = segment.separator
    if separator.strip(" "):
        return separator  # line ends and tabs mean something
    if _ENDS_UNSPACED.search(output):
        return separator[1:]
    if separator == "" and _ENDS_A_PART.search(segment.text):
        return " "
    return separator  # if there is none, a long word was cut
