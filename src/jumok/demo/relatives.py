"""Patterns of the built-in corpus with a relative clause, which Korean puts before its noun."""

from dataclasses import replace

from jumok.demo.actions import EVENTS
from jumok.demo.descriptions import qualities
from jumok.demo.grammar import (
    be,
    english_clause,
    korean_clause,
    korean_middle,
    korean_quality,
    korean_relative,
    sentence,
    spaced,
)
from jumok.demo.korean import Tense, copula, topic
from jumok.demo.lexicon import ADJECTIVES_OF, NOUNS
from jumok.demo.meaning import Clause, Phrase, Sentence
from jumok.demo.phrases import BARE, PRONOUNS, Draw
from jumok.demo.verbs import VERB, Form, Verb

_ACTS = tuple(verb for verb in EVENTS if verb.name not in ("find", "lose", "give", "show"))
_ACTED_ON = tuple(
    (verb, tuple(noun for noun in verb.frames[0].objects if ADJECTIVES_OF[noun] and noun.kind not in BARE))
    for verb in (
        *(verb for verb in EVENTS if verb.name not in ("cross", "sing")),
        VERB["like"],
        VERB["like"],
        VERB["hate"],
    )
    if any(ADJECTIVES_OF[noun] and noun.kind not in BARE for noun in verb.frames[0].objects)
)
_TELLING = tuple(
    VERB[name] for name in ("like", "know", "meet", "see", "buy", "read", "eat", "fix", "use", "help", "follow")
)
_TOLD_OF = {noun: tuple(verb for verb in _TELLING if noun in verb.frames[0].objects) for noun in NOUNS.values()}


def relative(draw: Draw) -> Sentence:
    """The cat that the student likes is big. I met the girl who bought the flower. This is the book that I wrote."""
    phrase = _object_relative(draw) if draw.chance(0.55) else _subject_relative(draw)
    noun, roll = phrase.heads[0], draw.rng.random()
    if roll < 0.25 and noun.kind in ("thing", "reading"):
        korean = f"{topic('이것')} {copula(phrase.korean, Tense.PRESENT, draw.level)}"
        return sentence(f"this is {phrase.english}", korean, draw.level, phrase.combinations)
    if roll < 0.6 and _TOLD_OF[noun]:
        return _told_of(draw, phrase, draw.one(_TOLD_OF[noun]))
    adjective = draw.one([a for a in ADJECTIVES_OF[noun] if a.ends_sentences])
    tense = Tense.PAST if draw.chance(0.3) else Tense.PRESENT
    korean = f"{phrase.as_topic()} {korean_quality(adjective, tense, draw.level)}"
    english = f"{phrase.english} {be(phrase.agreement, tense)} {adjective.english}"
    return sentence(english, korean, draw.level, (*phrase.combinations, *qualities(adjective, phrase)))


def _told_of(draw: Draw, phrase: Phrase, verb: Verb) -> Sentence:
    """Somebody did something to the one that the relative clause is about."""
    mentioned = phrase.english.split()
    subject = draw.one_who_acts(verb.frames[0], [noun for noun in NOUNS.values() if noun.english in mentioned])
    clause = Clause(subject, verb, Form.PRESENT if verb.state else Form.PAST, object=phrase)
    return sentence(english_clause(clause), korean_clause(clause, draw.level), draw.level, clause.combinations)


def _object_relative(draw: Draw) -> Phrase:
    """the cat that the student likes: 학생이 좋아하는 고양이."""
    verb, nouns = draw.one(_ACTED_ON)
    it = draw.plain(draw.one(nouns))
    if draw.chance(0.3):
        subject = draw.pronoun(draw.one(PRONOUNS))
    else:
        subject = draw.plain(draw.other_than(verb.frames[0].subjects, it))
    recipient = draw.recipient(subject) if verb.recipients else None
    clause = Clause(subject, verb, _form(draw, verb), draw.chance(0.12), it, recipient)
    around = korean_middle(replace(clause, object=None))
    korean = spaced(subject.as_nominative(), around, korean_relative(clause), it.korean)
    english = f"{it.english} that {english_clause(clause, gap=True)}"
    return replace(it, english=english, korean=korean, combinations=clause.combinations)


def _subject_relative(draw: Draw) -> Phrase:
    """the student who read the book: 책을 읽은 학생."""
    verb = draw.one(_ACTS)
    frame = draw.one(verb.frames)
    actor = draw.plain(draw.one([noun for noun in frame.subjects if noun.kind != "name"]))
    what = draw.plain(draw.other_than(frame.objects, actor))
    who = replace(actor, english="that" if actor.heads[0].kind == "animal" else "who")
    clause = Clause(who, verb, _form(draw, verb), draw.chance(0.12), what)
    korean = spaced(korean_middle(clause), korean_relative(clause), actor.korean)
    english = f"{actor.english} {english_clause(clause)}"
    return replace(actor, english=english, korean=korean, combinations=clause.combinations)


def _form(draw: Draw, verb: Verb) -> Form:
    if verb.state:
        return Form.PRESENT
    return Form.PROGRESSIVE if Form.PROGRESSIVE in verb.forms and draw.chance(0.2) else Form.PAST
