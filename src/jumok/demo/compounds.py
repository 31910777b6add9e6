"""Patterns of the built-in corpus with two clauses: because, and, but."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jumok.demo.descriptions import qualities
from jumok.demo.grammar import (
    be,
    english_clause,
    english_predicate,
    english_verb,
    korean_end,
    korean_joined,
    korean_middle,
    korean_verb,
    sentence,
    spaced,
)
from jumok.demo.korean import Tense, infinitive
from jumok.demo.lexicon import Adjective, Noun
from jumok.demo.meaning import Clause, Sentence
from jumok.demo.phrases import Draw
from jumok.demo.reasons import WHY, WHY_NOT, Reasons
from jumok.demo.verbs import VERB, Form, Frame, Verb

_TOO = (("too", "너무"), ("too", "너무"), ("very", "아주"), ("", ""))
_VERY = (("very", "아주"), ("", ""))
_IN_VAIN = tuple(
    (first, second, tuple(noun for noun in first.frames[0].objects if noun in second.frames[0].objects))
    for first, seconds in {
        VERB["buy"]: "eat read use wear", VERB["make"]: "eat sell", VERB["cook"]: "eat", VERB["write"]: "send",
        VERB["borrow"]: "use read", VERB["receive"]: "read open", VERB["find"]: "open", VERB["wash"]: "eat",
        VERB["carry"]: "open", VERB["fix"]: "use sell",
    }.items()
    for second in (VERB[name] for name in seconds.split())
)  # fmt: skip
_SAME_OCCASION = tuple(
    tuple(VERB[name] for name in names.split(","))
    for names in (
        "eat,drink,cook,make,wash,buy",
        "read,write,study,learn,watch,listen to,draw,teach,borrow",
        "clean,fix,carry,open,close,use,pick up",
        "help,meet,wait for,follow,see",
        "sell,buy,send,receive,wear",
    )
)


@dataclass(frozen=True, slots=True)
class _Motive:
    """A verb with its possible reasons: adjectives for the subject, or (adjective, noun) for the object."""

    verb: Verb
    frame: Frame
    negative: bool
    about_subject: tuple[Adjective, ...]
    about_object: tuple[tuple[Adjective, Noun], ...]


def _motives(reasons: dict[Verb, Reasons], negative: bool) -> Iterator[_Motive]:
    for verb, why in reasons.items():
        for frame in verb.frames:
            # A person as object would share "she" with the subject.
            things = [noun for noun in frame.objects if noun.kind not in ("person", "name")]
            about_object = tuple((a, noun) for a in why.about_object for noun in things if noun in a.nouns)
            if why.about_subject or about_object:
                yield _Motive(verb, frame, negative, why.about_subject, about_object)


_WHY_NOT_MOTIVES, _WHY_MOTIVES = tuple(_motives(WHY_NOT, True)), tuple(_motives(WHY, False))


def because(draw: Draw) -> Sentence:
    """The animal didn't cross the street because it was too tired. (Or because it was too wide.)"""
    motive = draw.one(_WHY_NOT_MOTIVES if draw.chance(0.75) else _WHY_MOTIVES)
    about_object = bool(motive.about_object) and (not motive.about_subject or draw.chance(0.5))
    adjective, noun = draw.one(motive.about_object) if about_object else (None, None)
    if noun is None and motive.frame.objects:
        noun = draw.one(motive.frame.objects)
    subject = draw.one_who_acts(motive.frame, (noun,) if noun else ())
    if adjective is None:
        adjective = draw.one([a for a in motive.about_subject if all(noun in a.nouns for noun in subject.heads)])
    what = draw.noun_phrase(noun, counted=False, described=False) if noun else None
    form = Form.COULD if motive.negative and draw.chance(0.25) else Form.PAST
    clause = Clause(subject, motive.verb, form, motive.negative, what)
    return say_because(draw, clause, adjective, draw.one(_TOO if motive.negative else _VERY), about_object=about_object)


def say_because(
    draw: Draw, clause: Clause, reason: Adjective, degree: tuple[str, str], *, about_object: bool
) -> Sentence:
    """English says "it" of the animal and of the street alike. Korean says neither: the animal is the topic anyway,
    and the street becomes the subject of the reason, so that the whole sentence turns on what "it" means."""
    cause = clause.object if about_object and clause.object else clause.subject
    pronoun = draw.reference(cause)
    was = be(cause.agreement, Tense.PAST)
    english = spaced(english_clause(clause), "because", pronoun, was, degree[0], reason.english)
    why = spaced(degree[1], infinitive(reason.word) + "서")
    middle = f"{cause.as_nominative()} {why}" if about_object else spaced(why, korean_middle(clause))
    korean = f"{clause.subject.as_topic()} {middle} {korean_end(clause, draw.level)}"
    return sentence(english, korean, draw.level, (*clause.combinations, *qualities(reason, cause)))


def coordination(draw: Draw) -> Sentence:
    """Two things that one does: and, but, likes but hates, bought but didn't eat it."""
    return draw.one((_and, _and, _but, _but_not_it, _but_hates))(draw)


def _two_clauses(draw: Draw, first: Verb, second: Verb, form: Form, negative: bool = False) -> tuple[Clause, Clause]:
    """Both by the same subject; `negative` is about the second."""
    subject = draw.one_who_acts(first.frames[0])
    one = draw.other_than(first.frames[0].objects, subject)
    other = draw.one([noun for noun in second.frames[0].objects if noun is not one and noun not in subject.heads])
    return (
        Clause(subject, first, form, object=draw.noun_phrase(one, counted=not negative)),
        Clause(subject, second, form, negative, draw.noun_phrase(other, counted=not negative)),
    )


def _joined(draw: Draw, word: str, first: Clause, second: Clause, korean: str) -> Sentence:
    auxiliary, main = english_verb(second, question=False)
    shared = first.form is Form.FUTURE
    english = f"{english_clause(first)} {word} {spaced('' if shared else auxiliary, english_predicate(second, main))}"
    text = f"{first.subject.as_topic()} {korean} {korean_end(second, draw.level)}"
    return sentence(english, text, draw.level, {*first.combinations, *second.combinations})


def _and(draw: Draw) -> Sentence:
    """Minsu drank the coffee and read the newspaper."""
    verb, other = draw.rng.sample(draw.one(_SAME_OCCASION), 2)
    form = Form.PAST if draw.chance(0.7) else Form.FUTURE
    first, second = _two_clauses(draw, verb, other, form)
    _, word, tense = korean_verb(first)
    korean = spaced(korean_middle(first), korean_joined(word, tense, contrast=False), korean_middle(second))
    return _joined(draw, "and", first, second, korean)


def _but(draw: Draw) -> Sentence:
    """Minsu ate the bread but didn't drink the milk: the objects are contrasted by 은/는."""
    verb, other = draw.rng.sample(draw.one(_SAME_OCCASION), 2)
    first, second = _two_clauses(draw, verb, other, Form.PAST, negative=True)
    return _contrast(draw, first, second)


def _but_hates(draw: Draw) -> Sentence:
    """The girl likes dogs but hates cats."""
    like, hate = VERB["like"], VERB["hate"]
    subject = draw.one_who_acts(like.frames[0])
    loved = draw.one(hate.frames[0].objects)
    hated = draw.one([noun for noun in hate.frames[0].objects if noun is not loved and noun.kind == loved.kind])
    first = Clause(subject, like, Form.PRESENT, object=draw.generic(loved))
    return _contrast(draw, first, Clause(subject, hate, Form.PRESENT, object=draw.generic(hated)))


def _contrast(draw: Draw, first: Clause, second: Clause) -> Sentence:
    _, word, tense = korean_verb(first)
    joined = korean_joined(word, tense, contrast=True)
    korean = spaced(korean_middle(first, "은"), joined, korean_middle(second, "은"))
    return _joined(draw, "but", first, second, korean)


def _but_not_it(draw: Draw) -> Sentence:
    """Anna bought the bread but didn't eat it: Korean leaves "it" out."""
    verb, other, nouns = draw.one(_IN_VAIN)
    subject = draw.one_who_acts(verb.frames[0])
    what = draw.noun_phrase(draw.one(nouns), counted=True)
    it = replace(what, english="them" if what.agreement == "they" else "it", combinations=())
    first, second = Clause(subject, verb, Form.PAST, object=what), Clause(subject, other, Form.PAST, True, it)
    _, word, tense = korean_verb(first)
    return _joined(draw, "but", first, second, spaced(korean_middle(first), korean_joined(word, tense, contrast=True)))
