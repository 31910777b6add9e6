"""Splitting long lines into segments that a model can translate, and joining the translations.
Nothing is lost: white space around segments is kept from the model and put back around the translations."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

# Han and Kana, with their punctuation: no space between sentences.
_UNSPACED = "\u3001-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f\U00020000-\U0003ffff"
_WITHOUT_WORD_SPACES = "\u0e00-\u109f\u1780-\u17ff"  # Thai, Lao, Tibetan, Myanmar, Khmer: spaces, but not after words
_HANGUL = "\uac00-\ud7a3"

_CLOSING = r"\"'”’»›)\]}〉》」』】）］"
_SPACED_ENDS = ".!?…‥؟۔।॥።"  # a sentence ends here if white space follows
_UNSPACED_ENDS = "。！？｡．"  # here in any case
_CLAUSE_ENDS = ",;:،؛，；：、"
_SENTENCE_END = re.compile(
    rf"[{_SPACED_ENDS}{_UNSPACED_ENDS}]+[{_CLOSING}]*(?=\s)"
    # A quotation that ends and is not followed by a space is a part of its sentence: 「なぜ？」と言った。
    rf"|[{_UNSPACED_ENDS}][{_UNSPACED_ENDS}{_SPACED_ENDS}]*+(?![{_CLOSING}])"
    # Between Korean or Chinese characters a full stop needs no space either: it is in no number and no address.
    rf"|(?<=[{_HANGUL}{_UNSPACED}])[{_SPACED_ENDS}]++(?=[{_HANGUL}{_UNSPACED}])(?![{_CLOSING}])"
)
_CLAUSE_END = re.compile(rf"[{_CLAUSE_ENDS}][{_CLOSING}]*(?=\s)|[，；：、]")
_WORD_END = re.compile(r"(?<=\S)(?=\s)")
_WORD = re.compile(r"[^\s(\[{\"'“‘«„]+$")
_NEXT_CHARACTER = re.compile(r"\s*(\S)")
_ENDS_UNSPACED = re.compile(rf"[{_UNSPACED}]$")
_ENDS_A_PART = re.compile(
    rf"[{_SPACED_ENDS}{_UNSPACED_ENDS}{_CLAUSE_ENDS}{_CLOSING}{_UNSPACED}{_WITHOUT_WORD_SPACES}]$"
)

# A full stop after these seldom ends a sentence; nor does one after a single letter or a number such as the German 3.
_ABBREVIATION_LIST = """
    mr mrs ms dr prof st sr jr vs etc nos fig figs eq vol pp ed eds inc ltd corp dept est approx ca cf al gen col capt
    lt sgt rev hon gov sen rep messrs mt ave blvd jan feb apr jun jul aug sep sept oct nov dec nr hr fr frl bzw usw ggf
    evtl inkl zzgl abs bsp str tel mme mlle mm av bd env sra srta dña núm pág ing dott sig
"""
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_SHORT_FORM = re.compile(r"[^\W\d]\.?|([^\W\d]\.)+[^\W\d]|\d{1,2}")  # J, U.S, e.g, 3
_LONGEST_ABBREVIATION = 24
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

    def join(self, outputs: Sequence[str]) -> str:
        """The outputs for the segments, one each, with the white space of the text around and between them."""
        *inner, last = zip(self.segments, outputs, strict=True)
        joined = [output + _separator(segment, output) for segment, output in inner]
        return "".join((self.lead, *joined, last[1], last[0].separator))


def split_text(text: str, limit: int, count: Count, *, usual: int | None = None) -> Split:
    """A segment for each line; lines of more than `usual` tokens (else `limit`) are split into sentences.
    Sentences over the limit are halved: at , ; : or at a space if there is one, else between two characters."""
    usual = limit if usual is None else min(usual, limit)
    lines = _parts(re.split(r"(?<=\n)", text) if "\n" in text else [text])
    counts = count([line.text for line in lines.segments])
    segments: list[Segment] = []
    for line, tokens in zip(lines.segments, counts, strict=True):
        segments += [line] if tokens <= usual else _shortened(_cut(line, _sentence_ends(line.text)), limit, count)
    return Split(lines.lead, tuple(segments))


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


def _sentence_ends(text: str) -> list[int]:
    has_capitals = text != text.lower()
    return [match.end() for match in _SENTENCE_END.finditer(text) if _ends_sentence(text, match, has_capitals)]


def _ends_sentence(text: str, match: re.Match[str], has_capitals: bool) -> bool:
    if match[0][0] in _UNSPACED_ENDS:
        return True
    following = _NEXT_CHARACTER.match(text, match.end())
    if has_capitals and following and following[1].islower():  # "Stop!" he said.
        return False
    word = _WORD.search(text[max(0, match.start() - _LONGEST_ABBREVIATION) : match.start()])
    if match[0] != "." or word is None or re.match(f"[{_HANGUL}{_UNSPACED}]", word[0]):
        return True
    return word[0].lower() not in _ABBREVIATIONS and not _SHORT_FORM.fullmatch(word[0])


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
