"""The encoding of text files that are not UTF-8, by what their bytes would mean in each of the usual encodings.

UTF-8 text with some broken lines stays UTF-8: another encoding is considered only if more lines are invalid than valid.
Measured on small samples, general detectors confuse the code pages of Europe, which differ in a few letters only; here
the frequency of these letters in each language decides, and where it does not, the user is asked.
"""

import codecs
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Self

from jumok.data.reading import lines
from jumok.data.reading.encodings import encoding_by_bom
from jumok.errors import InputError

# Of languages, the letters beyond ASCII, the most frequent first, by the encodings that are used for them.
_LETTERS = {
    "cp1252 mac_roman cp850": (
        "üäßö éàèêçîùûâôœïë óíáéñúü¿¡ ãçêáéíóúàôâõ èàòùìé ëéïöü äöåé øåæé åøæéòô äöåš ðíáþóæöéúý éàèòíóúçï éïçñöêèü "
        "äõüö áíéóúñ"
    ),
    "cp1250 iso8859-2": "łęąóżśćńź íáéěýžšřčůúňťďó áíéžčýšúťľňôäďóŕĺ áéóőöüíúű ăâîşţ čšžćđ",
    "cp1254": "ıüşçöğİ",
    "cp1257": "ėšųžąįčūę āīēšūņļžčķģ äõüöšž",
    "cp1251 koi8-r mac_cyrillic cp866": "оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфё аиоентсрвлкдпмзгъябучцхйжщшфюь",
    "cp1251 koi8-u": "оаніиевртслкдумпяьзбгчхйїжшюєщцґф",
    "cp1253": "αοιετνσηυρπκμλςωάίόέγδήθχφύβώξζψ",
    "cp1255": "יהולארתבמשנחקדעפכםטצסגזןךףץ",
    "cp1256": "اليمونرتهبةعدسأفكقحجشىإخصطذضزثءئغظؤآ",
    "cp874": "านรอกเง่มยลวดทสตัีปบ้ิคหแะจพช็ขใไ์ถซืุูผโำณธภศฐ",
}
# Of languages in encodings of several bytes a character, the most frequent characters; Japanese is known by its kana.
_CHARACTERS = {
    "cp949": "이다는을에의가하고지도사로기어나한를리시스해자그니라아인대서정들것만있수게보제일부장전과요면주은안우여오"
    "상너원말내세무성트까습없았었좋영화선생구거런데동저당신모두비러할",
    "cp932": "",
    "euc_jp": "",
    "gb18030": "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用"
    "道行所然家种事成方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日",
    "big5": "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用"
    "道行所然家種事成方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日",
}
_PRIOR = {"cp1252": 2.0, "mac_roman": -3.0, "cp850": -2.0, "iso8859-2": -2.0, "mac_cyrillic": -6.0, "cp866": -3.0}
_SAMPLE_BYTES = 1 << 18
_WELL_PLACED = 0.9  # share of characters that stand where such characters do
_FREQUENT = 0.2  # share of frequent characters in any text of some words
_MARGIN = 3.0  # nats by which the best must be better than any that gives another text
_RARE = 1e-4
_BEFORE_WORDS = ("", " ", "\t", "'", "’", "(", '"', "«", "“", "„", ";", ",", "|", "-", "/")
_UNUSUAL = 0.2  # most characters beyond ASCII that the language does not use
_LEAST_CHARACTERS = 8
_LEAST_BYTES = 32  # fewer say nothing about UTF-16 without a byte-order mark


def find_encoding(path: str | Path) -> str:
    """The encoding of a text file. InputError if it is not UTF-8 and two others are about as probable.
    What can be read only once, as a pipe, is UTF-8 unless a byte-order mark says more."""
    if not os.path.isfile(path):
        return "utf-8"
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for position, chunk in enumerate(lines.byte_chunks(path)):
            if position == 0:
                if found := encoding_by_bom(chunk) or _wide_encoding(chunk):
                    return found
                if lines.is_other_kind(chunk):
                    return "utf-8"
            decoder.decode(chunk)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return _LineCounts.of(lines.raw_lines(path)).encoding(lines.display_name(path))
    return "utf-8"


def _wide_encoding(head: bytes) -> str | None:
    """UTF-16 without a byte-order mark, if it is certain: half of the bytes of spaces, line ends and ASCII are NUL."""
    sample = head[: _SAMPLE_BYTES - _SAMPLE_BYTES % 2]
    sample = sample[: len(sample) - len(sample) % 2]
    nuls = sample[0::2].count(0), sample[1::2].count(0)
    if len(sample) < _LEAST_BYTES or max(nuls) <= 4 * min(nuls):
        return None
    name = "utf-16-be" if nuls[0] > nuls[1] else "utf-16-le"
    text = sample.decode(name, "replace")
    readable = all(character.isprintable() or character in "\r\n\t" for character in text[:-1])
    mostly_ascii = 2 * max(nuls) >= 0.8 * len(sample)
    return name if readable and (mostly_ascii or not _is_utf8(sample.replace(b"\0", b""))) else None


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


@dataclass
class _LineCounts:
    """The lines of a file that are not ASCII: how many are UTF-8, how many are not, and those that are not."""

    valid: int = 0
    invalid: int = 0
    sample: list[bytes] = field(default_factory=list)
    high_bytes: Counter[int] = field(default_factory=Counter)  # of the invalid lines, those beyond ASCII

    @classmethod
    def of(cls, source: Iterable[bytes | lines.TooLong]) -> Self:
        counts, size = cls(), 0
        for line in source:
            if isinstance(line, lines.TooLong) or line.isascii():
                continue
            try:
                line.decode()
                counts.valid += 1
            except UnicodeDecodeError:
                counts.invalid += 1
                counts.high_bytes.update(line.translate(None, _ASCII))
                if size < _SAMPLE_BYTES:
                    counts.sample.append(line)
                    size += len(line)
        return counts

    def encoding(self, name: str) -> str:
        """The encoding of the file: UTF-8 if most lines are, or if nothing fits better."""
        if self.valid >= self.invalid:
            return "utf-8"
        found = list(_ranked(_scores_of_characters(self.sample)) or self._ranked_by_letters())
        if found[:1] == ["cp1252"]:
            found[:1] = self._of_western_europe()
        if len(found) > 1:
            examples = "\n".join(f"  {each}: {_example(self.sample, each)}" for each in found[:3])
            raise InputError(
                f"{name}: is not UTF-8, and its encoding is not certain:\n{examples}\n"
                f'Say which it is: `encoding="{found[0]}"`.'
            )
        return found[0] if found else "utf-8"

    def _of_western_europe(self) -> list[str]:
        """Windows-1252, or ISO-8859-15 if its other eight characters stand where they may only there: € after numbers,
        œ, š and ž inside words, and œ at the start of usual ones. Both, if some characters speak for one and some for
        the other."""
        if any(byte in self.high_bytes for byte in range(0x80, 0xA0)):
            return ["cp1252"]
        sample = b"\n".join(self.sample)
        found = {"cp1252": _AFTER_NUMBERS.search(sample), "iso8859-15": _LATIN_9.search(sample)}
        return [encoding for encoding, evidence in found.items() if evidence] or ["cp1252"]

    def _ranked_by_letters(self) -> list[str]:
        """The best encoding of one byte a character, and those that are about as good and give another text."""
        scores = {}
        for encoding in {each for names in _LETTERS for each in names.split()}:
            if _share_well_placed(self.sample, encoding) >= _WELL_PLACED:
                likelihood = _log_likelihood(self.high_bytes, encoding)
                if likelihood is not None:
                    scores[encoding] = likelihood + _PRIOR.get(encoding, 0.0)
        best = sorted(scores, key=lambda each: -scores[each])
        seen = sorted(self.high_bytes)
        texts = {each: bytes(seen).decode(each, "replace") for each in best}
        return [
            each
            for each in best
            if each == best[0] or (scores[best[0]] - scores[each] < _MARGIN and texts[each] != texts[best[0]])
        ]


_ASCII = bytes(range(128))
_LETTER = rb"[A-Za-z\xC0-\xFF]"
_EYE_OR_WORK = rb"(?<![0-9])[\xBC\xBD](?:u%b|il\b)" % _LETTER  # œil, œuf, œuvre: no fraction is followed so
_LATIN_9 = re.compile(rb"%b[\xA8\xB8\xBD]%b|[0-9][ \xA0]?\xA4|%b" % (_LETTER, _LETTER, _EYE_OR_WORK))
_AFTER_NUMBERS = re.compile(rb"[0-9] ?[\xBC-\xBE](?!%b)" % _LETTER)  # ¼ ½ ¾


def _ranked(shares: Mapping[str, float]) -> list[str]:
    """Encodings of several bytes a character in which the frequent characters are frequent, the best first."""
    best = sorted(shares, key=lambda encoding: -shares[encoding])
    return [each for each in best if shares[each] >= max(_FREQUENT, shares[best[0]] / 2)]


def _scores_of_characters(sample: Iterable[bytes]) -> dict[str, float]:
    text = b"\n".join(sample)
    shares = {}
    for encoding, frequent in _CHARACTERS.items():
        try:
            characters = [each for each in text.decode(encoding) if each.isalpha() and not each.isascii()]
        except UnicodeDecodeError:
            continue
        found = sum(each in frequent if frequent else "\u3041" <= each <= "\u30fe" for each in characters)
        shares[encoding] = found / max(1, len(characters))
    return shares


def _share_well_placed(sample: Iterable[bytes], encoding: str) -> float:
    """The share of characters beyond ASCII that stand where they may: letters beside letters of the same script,
    capital letters not after small ones, signs not inside words. 0 if they are not beside letters of ASCII,
    unless there are some more: a few bytes are letters of any script. A single capital letter may be chance, too."""
    good = total = inside = 0
    capitals = set()
    for line in sample:
        text = line.decode(encoding, "replace")
        for place, character in enumerate(text):
            if not character.isascii():
                before, after = text[max(0, place - 1) : place], text[place + 1 : place + 2]
                total += 1
                good += _is_well_placed(character, before, after)
                if (_is_letter(character) or character == "’") and any(
                    _is_letter(each) and (each.isascii() or total >= _LEAST_CHARACTERS) for each in before + after
                ):
                    inside += not character.isupper()
                    capitals.add(character)
    return good / total if inside or len(capitals) > 1 else 0.0


def _is_well_placed(character: str, before: str, after: str) -> bool:
    if character == "\ufffd" or "\x80" <= character < "\xa0":
        return False
    beside = [each for each in (before, after) if _is_letter(each)]
    if not _is_letter(character):
        return len(beside) < 2 or character in "’‘·–—…"
    if character.isupper() and before.islower():
        return False
    is_word = before in _BEFORE_WORDS and not after.isalnum()  # "à", "dov'è", "я"
    return is_word or (bool(beside) and all(_script(each) == _script(character) for each in beside))


def _is_letter(character: str) -> bool:
    return character.isalpha() or "\u0e31" <= character <= "\u0e4e"  # Thai vowels are marks


def _script(character: str) -> int:
    return 0 if ord(character) < 0x250 else ord(character) >> 8


def _log_likelihood(counts: Mapping[int, int], encoding: str) -> float | None:
    """Of the bytes beyond ASCII, in the language of this encoding that fits best; None if none does."""
    tables = [
        _log_probabilities(encoding, letters)
        for names, languages in _LETTERS.items()
        if encoding in names.split()
        for letters in languages.split(" ")
    ]
    most = _UNUSUAL * sum(counts.values())
    fitting = [t for t in tables if sum(n for byte, n in counts.items() if t[byte] <= math.log(_RARE)) <= most]
    return max((sum(n * table[byte] for byte, n in counts.items()) for table in fitting), default=None)


@cache
def _log_probabilities(encoding: str, letters: str) -> dict[int, float]:
    """Of every byte beyond ASCII: letters are the rarer the later they come, capitals rarer; and some signs."""
    weights = {letter: 1.0 / rank for rank, letter in enumerate(letters, 1)}
    capitals = {letter.upper(): weight / 20 for letter, weight in weights.items()}
    weights = {letter: weight for letter, weight in capitals.items() if len(letter) == 1} | weights
    weights |= dict.fromkeys("’“”–…„‘—«»€°\xa0", 0.05)
    total = sum(weights.values())
    return {
        byte: math.log(max(_RARE, weights.get(bytes([byte]).decode(encoding, "replace"), 0.0) / total))
        for byte in range(128, 256)
    }


def _example(sample: Iterable[bytes], encoding: str) -> str:
    text = next(iter(sample)).decode(encoding, "replace").strip()
    return text if len(text) <= 60 else text[:60] + "…"
