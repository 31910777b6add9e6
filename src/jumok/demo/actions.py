"""Patterns of the built-in corpus in which somebody does something: statements, questions, requests."""

from dataclasses import replace

from jumok.demo.grammar import (
    english_clause,
    english_predicate,
    korean_clause,
    korean_end,
    korean_middle,
    sentence,
    spaced,
)
from jumok.demo.korean import Level, infinitive, nominative
from jumok.demo.meaning import Clause, Phrase, Sentence
from jumok.demo.phrases import Draw
from jumok.demo.verbs import DO, VERB, VERBS, Form, Verb

TRANSITIVE = tuple(verb for verb in VERBS if verb.transitive)
INTRANSITIVE = tuple(verb for verb in VERBS if not verb.transitive)
EVENTS = tuple(verb for verb in TRANSITIVE if not verb.state and verb.particle == "을")
"""Verbs about whose object and time a question can be asked."""
_ABOUT_PEOPLE = tuple(VERB[name] for name in ("help", "meet", "wait for", "follow"))
_ABOUT_THINGS = tuple(
    v for v in EVENTS if v not in _ABOUT_PEOPLE and not v.by_object and v.name not in ("see", "cross", "sing")
)
_SOMEWHERE = tuple(verb for verb in VERBS if verb.places and Form.PAST in verb.forms)
_ONE_DAY = tuple(verb for verb in VERBS if Form.PAST in verb.forms and not verb.state)
_HABITUAL = tuple(verb for verb in VERBS if Form.PRESENT in verb.forms and not verb.state)
_COUNTED = tuple(
    VERB[name] for name in ("eat", "buy", "read", "see", "borrow", "write", "make", "draw", "receive", "sell")
)
_REQUESTED = tuple(verb for verb in VERBS if verb.requested)


def statement(draw: Draw) -> Sentence:
    """The student read the book in the library yesterday."""
    clause = draw.clause(draw.one(TRANSITIVE if draw.chance(0.78) else INTRANSITIVE))
    return sentence(english_clause(clause), korean_clause(clause, draw.level), draw.level, clause.combinations)


def habit(draw: Draw) -> Sentence:
    """The student reads books every morning: the only pattern with English verbs in -s."""
    clause = draw.clause(draw.one(_HABITUAL), forms=(Form.PRESENT,))
    return sentence(english_clause(clause), korean_clause(clause, draw.level), draw.level, clause.combinations)


def question(draw: Draw) -> Sentence:
    """Did the student read the book?"""
    clause = draw.clause(draw.one(TRANSITIVE if draw.chance(0.78) else INTRANSITIVE), asked=True)
    korean = korean_clause(clause, draw.level, question=True)
    return sentence(english_clause(clause, question=True), korean, draw.level, clause.combinations, "?")


def wh_question(draw: Draw) -> Sentence:
    """What did the student read? And who, where, when, why, how many."""
    return draw.one((_what, _what_doing, _who, _whom, _where, _where, _when, _why, _why, _how_many))(draw)


def _bare_clause(draw: Draw, verb: Verb, askable: tuple[Form, ...] = (Form.PAST, Form.FUTURE)) -> Clause:
    """A clause to ask about: who does what to whom, and nothing about time and place."""
    forms = [form for form in verb.forms if form in askable]
    clause = draw.clause(verb, asked=True, forms=forms)
    return replace(clause, time=None, place=None, manner=None, other=None)


def _ask(draw: Draw, word: str, clause: Clause, middle: str, *, gap: bool = False) -> Sentence:
    english = f"{word} {english_clause(clause, question=True, gap=gap)}"
    korean = spaced(clause.subject.as_topic(), middle, korean_end(clause, draw.level, question=True))
    return sentence(english, korean, draw.level, clause.combinations, "?")


def _what_korean(draw: Draw) -> str:
    return "뭘" if draw.level is Level.CASUAL else "무엇을"


def _what(draw: Draw) -> Sentence:
    clause = replace(_bare_clause(draw, draw.one(_ABOUT_THINGS)), object=None)
    return _ask(draw, "what", clause, _what_korean(draw))


def _what_doing(draw: Draw) -> Sentence:
    """What is the student doing in the library?"""
    place = draw.one(DO.places) if draw.chance(0.6) else None
    clause = Clause(draw.subject(DO.frames[0], asked=True), DO, Form.PROGRESSIVE, place=place)
    return _ask(draw, "what", clause, spaced(korean_middle(clause), _what_korean(draw)))


def _whom(draw: Draw) -> Sentence:
    clause = replace(_bare_clause(draw, draw.one(_ABOUT_PEOPLE)), object=None)
    return _ask(draw, "who", clause, "누구를")


def _who(draw: Draw) -> Sentence:
    clause = replace(_bare_clause(draw, draw.one(EVENTS)), subject=Phrase("who", "누구"))
    korean = spaced(nominative("누구"), korean_middle(clause), korean_end(clause, draw.level, question=True))
    return sentence(english_clause(clause), korean, draw.level, clause.combinations, "?")


def _where(draw: Draw) -> Sentence:
    clause = _bare_clause(draw, draw.one(_SOMEWHERE))
    return _ask(draw, "where", clause, spaced("어디에서", korean_middle(clause)))


def _when(draw: Draw) -> Sentence:
    clause = _bare_clause(draw, draw.one(_ONE_DAY))
    return _ask(draw, "when", clause, spaced("언제", korean_middle(clause)))


def _why(draw: Draw) -> Sentence:
    clause = _bare_clause(draw, draw.one(_ONE_DAY), (Form.PAST,))
    settled = clause.subject.definite and not (clause.object and clause.object.count)
    if settled and clause.subject.agreement != "you" and draw.chance(0.6):
        clause = replace(clause, negative=True)
    return _ask(draw, "why", clause, spaced("왜", korean_middle(clause)))


def _how_many(draw: Draw) -> Sentence:
    verb = draw.one(_COUNTED)
    noun = draw.one([noun for noun in verb.frames[0].objects if noun.countable and noun.counter])
    counted = Phrase(noun.plural, noun.korean, (noun,), count=f"몇 {noun.counter}")
    clause = replace(_bare_clause(draw, verb), object=counted)
    return _ask(draw, f"how many {noun.plural}", clause, korean_middle(clause), gap=True)


def request(draw: Draw) -> Sentence:
    """Please open the door. Please don't open the window."""
    verb = draw.one(_REQUESTED)
    negative = draw.chance(0.3)
    nobody = Phrase("", "", agreement="you")
    what = draw.object(verb.frames[0], Form.FUTURE, nobody, counted=not negative)
    recipient = draw.recipient(nobody) if verb.recipients else None
    clause = Clause(nobody, verb, Form.FUTURE, negative, what, recipient)
    english = spaced("please", "don't" if negative else "", english_predicate(clause, verb.base))
    korean = spaced(korean_middle(clause), _requested(verb, draw.level, negative))
    return sentence(english, korean, draw.level, clause.combinations)


def _requested(verb: Verb, level: Level, negative: bool) -> str:
    if negative:
        return verb.korean.stem + {Level.CASUAL: "지 마", Level.POLITE: "지 마세요", Level.FORMAL: "지 마십시오"}[level]
    # 주다 asks by itself; another 주다 after it would be one too many.
    favour = verb.korean.stem[:-1] if verb.korean.stem.endswith("주") else infinitive(verb.korean) + " "
    return favour + {Level.CASUAL: "줘", Level.POLITE: "주세요", Level.FORMAL: "주십시오"}[level]
