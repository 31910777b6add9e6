"""From meaning to both languages at once: noun phrases and clauses of the built-in corpus, said in English and Korean.

Rules that make Korean a function of the English sentence:
- The vocative decides the level of politeness: ", sir" 합쇼체, ", my friend" 해체, neither 해요체.
- "the" is 그 before the subject of the main clause (unless two are joined or a relative clause follows) and silent
  elsewhere; "a" and numbers before a subject take a counter and 이/가 (학생 한 명이), every other subject 은/는.
- "you" is silent, and honoured with (으)시 when addressed as sir.
- Negation is -지 않다, but 모르다 for 알다, 없다 for 있다, ㄹ 수 없다, 지 않아도 되다.
"""

from collections.abc import Iterable

from jumok.demo.korean import (
    Level,
    Predicate,
    Tense,
    adnominal,
    finite,
    honorific,
    infinitive,
    past_stem,
)
from jumok.demo.lexicon import Adjective, Noun
from jumok.demo.meaning import Clause, Combination, Sentence
from jumok.demo.verbs import Form

VOCATIVE = {Level.CASUAL: ", my friend", Level.POLITE: "", Level.FORMAL: ", sir"}
PLACE_PREPOSITION = dict.fromkeys(("school", "market", "station", "restaurant", "beach", "hospital", "museum"), "at")

_TENSE = {Form.PAST: Tense.PAST, Form.COULD: Tense.PAST, Form.FUTURE: Tense.FUTURE, Form.GOING: Tense.FUTURE}
_NOT, _EXIST, _ABSENT, _DO = Predicate("않다"), Predicate("있다"), Predicate("없다"), Predicate("하다")
_WISH, _SUFFICE = Predicate("싶다"), Predicate("되다")


def spaced(*parts: str) -> str:
    """The parts that are not empty, one space between them."""
    return " ".join(filter(None, parts))


def be(agreement: str, tense: Tense, negative: bool = False) -> str:
    """am, is, are, was, were, and their negations."""
    if tense is Tense.PAST:
        form = "was" if agreement in ("I", "it") else "were"
    else:
        form = {"I": "am", "it": "is"}.get(agreement, "are")
    if not negative:
        return form
    return "am not" if form == "am" else form + "n't"


def english_verb(clause: Clause, question: bool) -> tuple[str, str]:
    """(auxiliary, main verb); the auxiliary is '' in plain affirmative statements."""
    verb, agreement, negative = clause.verb, clause.subject.agreement, clause.negative
    not_ = "n't" if negative else ""
    does = "does" if agreement == "it" else "do"
    match clause.form:
        case Form.PAST:
            return ("did" + not_, verb.base) if question or negative else ("", verb.past)
        case Form.PRESENT:
            plain = verb.third if agreement == "it" else verb.base
            return (does + not_, verb.base) if question or negative else ("", plain)
        case Form.PROGRESSIVE:
            return be(agreement, Tense.PRESENT, negative), verb.ing
        case Form.FUTURE:
            return "won't" if negative else "will", verb.base
        case Form.GOING:
            return be(agreement, Tense.PRESENT, negative), f"going to {verb.base}"
        case Form.CAN:
            return "can't" if negative else "can", verb.base
        case Form.COULD:
            return "could" + not_, verb.base
        case Form.WANT | Form.MUST:
            base, third = ("want", "wants") if clause.form is Form.WANT else ("have", "has")
            if question or negative:
                return does + not_, f"{base} to {verb.base}"
            return "", f"{third if agreement == 'it' else base} to {verb.base}"


def place_phrase(noun: Noun) -> str:
    """in the park, at the station."""
    return f"{PLACE_PREPOSITION.get(noun.english, 'in')} the {noun.english}"


def english_predicate(clause: Clause, main: str, gap: bool = False) -> str:
    """The main verb and what follows it. `gap` leaves the object out: the cat that the student likes."""
    late = clause.time[0] if clause.time and not clause.early_time else ""
    return spaced(
        main,
        clause.verb.preposition,
        clause.object.english if clause.object and not gap else "",
        f"to {clause.recipient.english}" if clause.recipient else "",
        clause.manner[0] if clause.manner else "",
        clause.other[0] if clause.other else "",
        place_phrase(clause.place) if clause.place else "",
        late,
    )


def english_clause(clause: Clause, question: bool = False, gap: bool = False) -> str:
    """The clause without capital and full stop."""
    auxiliary, main = english_verb(clause, question)
    early = clause.time[0] if clause.time and clause.early_time else ""
    rest = spaced(early, english_predicate(clause, main, gap))
    first, second = (auxiliary, clause.subject.english) if question else (clause.subject.english, auxiliary)
    return spaced(first, second, rest)


def korean_verb(clause: Clause, honoured: bool = False) -> tuple[str, Predicate, Tense]:
    """(words before, the predicate that takes the ending, its tense): 읽을 수 + 있다, 읽고 + 싶다, 읽지 + 않다.

    Only 'you' is honoured, and 'you' is only asked affirmative questions, so honour and negation never meet.
    """
    verb, tense = clause.verb, _TENSE.get(clause.form, Tense.PRESENT)
    word = verb.korean
    if clause.object and clause.object.heads:
        word = verb.by_object.get(clause.object.heads[0].english, word)
    if honoured and verb.honoured:
        word = said = verb.honoured
    else:
        said = honorific(word) if honoured else word
    match clause.form:
        case Form.CAN | Form.COULD:
            return adnominal(said, Tense.FUTURE) + " 수", _ABSENT if clause.negative else _EXIST, tense
        case Form.MUST if clause.negative:
            return word.stem + "지 않아도", _SUFFICE, tense
        case Form.MUST:
            return infinitive(said) + "야", _DO, tense
        case Form.PROGRESSIVE:
            before, last = word.stem + "고", Predicate("계시다") if honoured else _EXIST
        case Form.WANT if clause.subject.speaks_for_itself:
            before, last = word.stem + "고", honorific(_WISH) if honoured else _WISH
        case Form.WANT:
            before, last = word.stem + "고 싶어", _DO
        case _ if clause.negative and verb.negated:
            return "", verb.negated, tense
        case _:
            before, last = "", said
    if clause.negative:
        return spaced(before, last.stem + "지"), _NOT if before else verb.negation, tense
    return before, last, tense


def korean_middle(clause: Clause, particle: str = "") -> str:
    """What stands between subject and verb, in Korean order. `particle` overrules the verb's own for the object."""
    return spaced(
        clause.time[1] if clause.time else "",
        clause.place.korean + "에서" if clause.place else "",
        clause.other[1] if clause.other else "",
        clause.recipient.korean + "에게" if clause.recipient else "",
        clause.object.as_object(particle or clause.verb.particle) if clause.object else "",
        clause.manner[1] if clause.manner else "",
    )


def korean_end(clause: Clause, level: Level, question: bool = False) -> str:
    """The verb with all its endings: the last words of the sentence."""
    honoured = level is Level.FORMAL and clause.subject.agreement == "you"
    before, last, tense = korean_verb(clause, honoured)
    return spaced(before, finite(last, tense, level, question))


def korean_clause(clause: Clause, level: Level, question: bool = False) -> str:
    """The clause as a sentence, without full stop."""
    return spaced(clause.subject.as_topic(), korean_middle(clause), korean_end(clause, level, question))


def korean_relative(clause: Clause) -> str:
    """The verb of a relative clause: 좋아하는, 읽은, 읽고 있는, 읽지 않은."""
    before, last, tense = korean_verb(clause)
    return spaced(before, adnominal(last, tense))


def sentence(english: str, korean: str, level: Level, combinations: Iterable[Combination], mark: str = ".") -> Sentence:
    """Capital letter, vocative and punctuation."""
    text = f"{english[0].upper()}{english[1:]}{VOCATIVE[level]}{mark}"
    return Sentence(text, korean + mark, frozenset(combinations))


def korean_joined(word: Predicate, tense: Tense, *, contrast: bool) -> str:
    """What goes on with 'and' (먹고, whatever the tense) or 'but' (먹지만, 먹었지만)."""
    if not contrast:
        return word.stem + "고"
    return (past_stem(word) if tense is Tense.PAST else word.stem) + "지만"


def korean_quality(
    adjective: Adjective,
    tense: Tense,
    level: Level,
    *,
    degree: str = "",
    negative: bool = False,
    asked: bool = False,
    honoured: bool = False,
) -> str:
    """The adjective that ends a sentence: 커요, 아주 커요, 키가 아주 커요, 크지 않습니다, 피곤하십니까?"""
    word = adjective.word
    if negative:
        return f"{word.stem}지 {finite(_NOT, tense, level, asked)}"
    before, _, last = finite(honorific(word) if honoured else word, tense, level, asked).rpartition(" ")
    return spaced(before, degree, last)


def asked_or_told(asked: bool, subject: str, verb: str) -> str:
    """English be, before its subject in a question: is the dog, the dog is."""
    return f"{verb} {subject}" if asked else f"{subject} {verb}"
