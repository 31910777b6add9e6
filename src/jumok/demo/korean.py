"""Korean word forms computed from Hangul code points: particles that depend on the final consonant, and conjugation.

A Hangul syllable is one code point, U+AC00 + (lead · 21 + vowel) · 28 + final, so "does this word end in a consonant?"
is arithmetic, and so is the change of one letter inside a syllable (가 + ㅆ = 갔).
"""

from dataclasses import dataclass
from enum import Enum
from functools import cache

_FIRST, _LAST = ord("가"), ord("힣")
_LEADS = "ㄱㄲㄴㄷㄸㄹㅁㅂㅃㅅㅆㅇㅈㅉㅊㅋㅌㅍㅎ"
_VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"
_FINALS = ["", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ"]

# Stem vowel + 아/어 written as one vowel. Vowels that are not here keep 어 as a syllable of its own (쉬어, 희어).
_CONTRACTED = dict(zip("ㅏㅓㅐㅔㅕㅗㅜㅣㅚ", "ㅏㅓㅐㅔㅕㅘㅝㅕㅙ", strict=True))
# ㅎ-irregular colour words: 빨갛+아 = 빨개, 하얗+아 = 하얘, 퍼렇+어 = 퍼레.
_H_CONTRACTED = dict(zip("ㅏㅑㅓㅕ", "ㅐㅒㅔㅖ", strict=True))


class Level(Enum):
    """How politely the speaker speaks; it shows in every sentence's last word."""

    CASUAL = "해체"
    POLITE = "해요체"
    FORMAL = "합쇼체"


class Tense(Enum):
    """When it is so."""

    PAST = "past"
    PRESENT = "present"
    FUTURE = "future"


def split_syllable(syllable: str) -> tuple[str, str, str]:
    """'갔' → ('ㄱ', 'ㅏ', 'ㅆ'); the final is '' when there is none."""
    code = ord(syllable)
    if not _FIRST <= code <= _LAST:
        raise ValueError(f"{syllable!r} is not a Hangul syllable")
    lead_vowel, final = divmod(code - _FIRST, 28)
    return _LEADS[lead_vowel // 21], _VOWELS[lead_vowel % 21], _FINALS[final]


def join_syllable(lead: str, vowel: str, final: str = "") -> str:
    """('ㄱ', 'ㅏ', 'ㅆ') → '갔'."""
    return chr(_FIRST + (_LEADS.index(lead) * 21 + _VOWELS.index(vowel)) * 28 + _FINALS.index(final))


def final_consonant(word: str) -> str:
    """The consonant that closes the word's last syllable, '' when it is open."""
    return split_syllable(word[-1])[2]


def with_final(word: str, final: str) -> str:
    """The word with the final consonant of its last syllable replaced: ('가', 'ㄴ') → '간'."""
    lead, vowel, _ = split_syllable(word[-1])
    return word[:-1] + join_syllable(lead, vowel, final)


@cache
def topic(word: str) -> str:
    """은 or 는."""
    return word + ("은" if final_consonant(word) else "는")


@cache
def nominative(word: str) -> str:
    """이 or 가; the pronouns 저, 나, 누구 change before it."""
    changed = {"저": "제가", "나": "내가", "누구": "누가"}.get(word)
    return changed or word + ("이" if final_consonant(word) else "가")


@cache
def accusative(word: str) -> str:
    """을 or 를."""
    return word + ("을" if final_consonant(word) else "를")


@cache
def together_with(word: str) -> str:
    """과 or 와."""
    return word + ("과" if final_consonant(word) else "와")


@cache
def toward(word: str) -> str:
    """으로 or 로; ㄹ counts as open: 지하철로."""
    return word + ("로" if final_consonant(word) in ("", "ㄹ") else "으로")


@dataclass(frozen=True, slots=True)
class Predicate:
    """A verb or adjective in its dictionary form (읽다). `irregular` names the class where the spelling does not tell:
    one of ㅂ ㄷ ㅅ ㅎ 르. The changes of ㄹ, ㅡ and 하다 are without exception and need no mark."""

    dictionary: str
    irregular: str = ""
    adjective: bool = False

    @property
    def stem(self) -> str:
        return self.dictionary[:-1]


@cache
def open_stem(p: Predicate) -> str:
    """The stem before (으)ㄴ, (으)ㄹ, (으)시: 읽으, 가, 만드, 도우, 걸으, 지으, 빨가."""
    stem = p.stem
    match p.irregular:
        case "ㅂ":
            return with_final(stem, "") + "우"
        case "ㄷ":
            return with_final(stem, "ㄹ") + "으"
        case "ㅅ":
            return with_final(stem, "") + "으"
        case "ㅎ":
            return with_final(stem, "")
    final = final_consonant(stem)
    if final == "ㄹ":
        return with_final(stem, "")
    return stem + "으" if final else stem


def _is_bright(vowel: str) -> bool:
    """Vowel harmony: ㅏ, ㅑ and ㅗ take 아, all others 어."""
    return vowel in "ㅏㅑㅗ"


def _contract(stem: str) -> str:
    """An open stem + 아/어 as it is written: 가→가, 보→봐, 마시→마셔, 쓰→써, 바쁘→바빠, 쉬→쉬어."""
    lead, vowel, _ = split_syllable(stem[-1])
    if vowel == "ㅡ":
        bright = len(stem) > 1 and stem[-2] != " " and _is_bright(split_syllable(stem[-2])[1])
        return stem[:-1] + join_syllable(lead, "ㅏ" if bright else "ㅓ")
    if vowel in _CONTRACTED:
        return stem[:-1] + join_syllable(lead, _CONTRACTED[vowel])
    return stem + "어"


@cache
def infinitive(p: Predicate) -> str:
    """The 아/어 form: 읽어, 가, 해, 도와, 추워, 걸어, 지어, 몰라, 빨개."""
    stem = p.stem
    if stem.endswith("하"):
        return stem[:-1] + "해"
    lead, vowel, final = split_syllable(stem[-1])
    match p.irregular:
        case "ㅂ":
            # Only 돕다 and 곱다 keep vowel harmony.
            return with_final(stem, "") + ("와" if stem[-1] in "돕곱" else "워")
        case "ㄷ":
            return with_final(stem, "ㄹ") + ("아" if _is_bright(vowel) else "어")
        case "ㅅ":
            return with_final(stem, "") + ("아" if _is_bright(vowel) else "어")
        case "ㅎ":
            return stem[:-1] + join_syllable(lead, _H_CONTRACTED[vowel])
        case "르":
            return with_final(stem[:-1], "ㄹ") + ("라" if _is_bright(split_syllable(stem[-2])[1]) else "러")
    if final:
        return stem + ("아" if _is_bright(vowel) else "어")
    return _contract(stem)


@cache
def past_stem(p: Predicate) -> str:
    """읽었, 갔, 했: what past endings are attached to."""
    return with_final(infinitive(p), "ㅆ")


@cache
def adnominal(p: Predicate, tense: Tense) -> str:
    """The form before a noun: 읽는/읽은/읽을 책; adjectives 큰, 재미있는."""
    if tense is Tense.FUTURE:
        return with_final(open_stem(p), "ㄹ")
    plain_adjective = p.adjective and not p.stem.endswith(("있", "없"))
    if tense is Tense.PAST or plain_adjective:
        return with_final(open_stem(p), "ㄴ")
    return (with_final(p.stem, "") if final_consonant(p.stem) == "ㄹ" else p.stem) + "는"


def _formal(stem: str, question: bool) -> str:
    ending = "까" if question else "다"
    if final_consonant(stem) in ("", "ㄹ"):
        return f"{with_final(stem, 'ㅂ')}니{ending}"
    return f"{stem}습니{ending}"


def _past(was: str, level: Level, question: bool) -> str:
    if level is Level.FORMAL:
        return _formal(was, question)
    return was + ("어요" if level is Level.POLITE else "어")


@cache
def finite(p: Predicate, tense: Tense, level: Level, question: bool = False) -> str:
    """The form that ends a sentence: 읽어요, 읽었습니다, 읽을 거야, 읽습니까."""
    if tense is Tense.FUTURE:
        ending = {Level.CASUAL: "거야", Level.POLITE: "거예요", Level.FORMAL: "겁니까" if question else "겁니다"}[level]
        return f"{adnominal(p, tense)} {ending}"
    if tense is Tense.PAST:
        return _past(past_stem(p), level, question)
    if level is Level.FORMAL:
        return _formal(p.stem, question)
    return infinitive(p) + ("요" if level is Level.POLITE else "")


@cache
def copula(noun: str, tense: Tense, level: Level, question: bool = False) -> str:
    """noun + 이다: 학생이에요, 의사예요, 학생입니다, 의사야, 의사였어요. There is no future form."""
    closed = bool(final_consonant(noun))
    if tense is Tense.PAST:
        return _past(noun + ("이었" if closed else "였"), level, question)
    if level is Level.FORMAL:
        return _formal(noun + "이", question)
    if level is Level.POLITE:
        return noun + ("이에요" if closed else "예요")
    return noun + ("이야" if closed else "야")


@cache
def negative_copula(noun: str, tense: Tense, level: Level, question: bool = False) -> str:
    """noun + 이/가 아니다: 학생이 아니에요, 의사가 아니었습니다. There is no future form."""
    if tense is Tense.PAST:
        ending = _past("아니었", level, question)
    elif level is Level.FORMAL:
        ending = _formal("아니", question)
    else:
        ending = "아니에요" if level is Level.POLITE else "아니야"
    return f"{nominative(noun)} {ending}"


@cache
def honorific(p: Predicate) -> Predicate:
    """The verb with (으)시, which honours its subject: 읽으시다."""
    return Predicate(open_stem(p) + "시다")
