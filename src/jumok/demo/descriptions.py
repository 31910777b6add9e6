"""Patterns of the built-in corpus that say what something is, what it is like, and where it is."""

from itertools import permutations, product

from jumok.demo.grammar import asked_or_told, be, korean_joined, korean_quality, place_phrase, sentence, spaced
from jumok.demo.korean import Level, Predicate, Tense, copula, finite, negative_copula, nominative, topic
from jumok.demo.lexicon import ADJECTIVES, Adjective, Noun, select_nouns
from jumok.demo.meaning import Combination, Phrase, Sentence
from jumok.demo.phrases import NAMES, NUMBERS, PEOPLE, Draw, an

DEGREES = (("", ""), ("very", "아주"), ("really", "정말"))
_SAID_OF = tuple(adjective for adjective in ADJECTIVES.values() if adjective.ends_sentences)
_POINTED_AT = select_nouns("thing reading clothing -shoes -gloves -story")
_SMALL = select_nouns(
    "book letter newspaper cup key pencil ticket map hat flower apple egg banana ball doll camera cookie"
)
_HUMAN, _LIVESTOCK = (
    select_nouns("student doctor nurse child boy girl soldier farmer"),
    select_nouns("animal -bear -monkey -fox"),
)
_FURNITURE = select_nouns("desk chair box bag")
_INDOORS, _OUTDOORS = (
    select_nouns("school library station market museum park hospital"),
    select_nouns("park garden field forest street"),
)
_BUILDINGS = select_nouns("house school hospital station library museum restaurant")
_SPOTS = (("on", "위에"), ("under", "아래에"))
_COMPANY = ((_HUMAN, _INDOORS), (_LIVESTOCK, _OUTDOORS))
THERE: tuple[tuple[Noun, Noun], ...] = (
    *product(_SMALL, _FURNITURE),
    *(pair for living, inside in _COMPANY for pair in product(living, (*inside, *_BUILDINGS))),
)
"""Which thing can be in which place: the combinations of `existence`."""
_SIDES = (("behind", "뒤에"), ("next to", "옆에"), ("in front of", "앞에"))


def _pairs(joined: str, contrast: bool) -> list[tuple[Adjective, Adjective, bool, tuple[Noun, ...]]]:
    pairs = []
    for words in joined.split(","):
        first, second = (ADJECTIVES[word] for word in words.split())
        pairs.append((first, second, contrast, tuple(noun for noun in first.nouns if noun in second.nouns)))
    return pairs


def _sort(noun: Noun) -> str:
    """Return the kind of a noun for comparisons, which are between two of a kind; a name counts as a person."""
    if noun.english == "animal":
        return "any animal"
    return {"name": "person", "drink": "food", "clothing": "thing"}.get(noun.kind, noun.kind)


_COMPARED = tuple(
    (adjective, tuple((a, b) for a, b in permutations(adjective.nouns, 2) if _sort(a) == _sort(b)))
    for adjective in _SAID_OF
    if adjective.comparative
)
_PAIRED = (
    *_pairs(
        "kind smart,brave smart,honest kind,clean quiet,cheap light,sweet delicious,fresh delicious,big heavy,"
        "dark dangerous,"
        "small cute,long boring,difficult boring,wide dangerous,hungry tired",
        False,
    ),
    *_pairs(
        "pretty expensive,delicious spicy,delicious expensive,smart lazy,interesting difficult,long interesting,"
        "small fast,"
        "beautiful dangerous,cheap pretty,sad beautiful,small clean,big light,kind busy,narrow clean",
        True,
    ),
)


def identity(draw: Draw) -> Sentence:
    """I am a student."""
    if draw.chance(0.65):
        subject = draw.pronoun(draw.one(("I", "I", "you", "he", "she")))
    else:
        subject = draw.plain(draw.one(NAMES))
    asked = subject.agreement == "you" or (subject.agreement != "I" and draw.chance(0.25))
    tense = Tense.PAST if draw.chance(0.3) else Tense.PRESENT
    return say_identity(
        draw.level, subject, draw.one(PEOPLE), tense, negative=not asked and draw.chance(0.3), asked=asked
    )


def say_identity(
    level: Level, subject: Phrase, noun: Noun, tense: Tense, *, negative: bool = False, asked: bool = False
) -> Sentence:
    """subject is, isn't or was a noun."""
    form = negative_copula if negative else copula
    korean = form(noun.korean, tense, level, asked)
    if level is Level.FORMAL and subject.agreement == "you":
        korean = finite(Predicate(f"{noun.korean}이시다"), tense, level, asked)
    english = f"{asked_or_told(asked, subject.english, be(subject.agreement, tense, negative))} {an(noun.english)}"
    met = [("identity", subject.english, noun.english)]
    return sentence(english, spaced(subject.as_topic(), korean), level, met, "?" if asked else ".")


def this_is(draw: Draw) -> Sentence:
    """This is Minsu's bag. That isn't a key."""
    noun = draw.one(_POINTED_AT)
    english, korean = draw.one((("this", "이것"), ("that", "저것")))
    what, that = draw.owner(noun) if draw.chance(0.6) else ("", "")
    said = f"{what} {noun.english}" if what else an(noun.english)
    negative = draw.chance(0.25)
    form = negative_copula if negative else copula
    told = f"{english} {be('it', Tense.PRESENT, negative)} {said}"
    return sentence(
        told, f"{topic(korean)} {form(spaced(that, noun.korean), Tense.PRESENT, draw.level)}", draw.level, ()
    )


def quality(draw: Draw) -> Sentence:
    """The river is very deep. Was the soup spicy?"""
    adjective = draw.one(_SAID_OF)
    subject = _described(draw, adjective)
    tense = Tense.PAST if draw.chance(0.4) else Tense.PRESENT
    asked = subject.agreement == "you" or (subject.english not in ("I", "we") and draw.chance(0.22))
    negative = not asked and draw.chance(0.25)
    degree = ("", "") if asked or negative else draw.one(DEGREES)
    honoured = draw.level is Level.FORMAL and subject.agreement == "you"
    end = korean_quality(
        adjective, tense, draw.level, degree=degree[1], negative=negative, asked=asked, honoured=honoured
    )
    be_ = asked_or_told(asked, subject.english, be(subject.agreement, tense, negative))
    met = (*subject.combinations, *qualities(adjective, subject))
    english = spaced(be_, degree[0], adjective.english)
    return sentence(english, spaced(subject.as_topic(), end), draw.level, met, "?" if asked else ".")


def _described(draw: Draw, adjective: Adjective) -> Phrase:
    noun = draw.one(adjective.nouns)
    if noun.kind == "name" and draw.chance(0.6):
        return draw.pronoun(draw.one(("I", "you", "we", "he", "she", "they")))
    return draw.noun_phrase(noun, subject=True, counted=False, described=False)


def qualities(adjective: Adjective, phrase: Phrase) -> tuple[Combination, ...]:
    """Return the combinations of the adjective with the nouns of the phrase."""
    return tuple(("quality", adjective.english, noun.english) for noun in phrase.heads)


def two_qualities(draw: Draw) -> Sentence:
    """The room is clean and quiet. The bag is pretty but expensive."""
    first, second, contrast, nouns = draw.one(_PAIRED)
    subject = draw.noun_phrase(draw.one(nouns), subject=True, counted=False, described=False)
    tense = Tense.PAST if draw.chance(0.4) else Tense.PRESENT
    joined = korean_joined(first.word, tense, contrast=contrast)
    word = "but" if contrast else "and"
    told = f"{subject.english} {be(subject.agreement, tense)} {first.english} {word} {second.english}"
    korean = f"{subject.as_topic()} {joined} {korean_quality(second, tense, draw.level)}"
    return sentence(told, korean, draw.level, (*qualities(first, subject), *qualities(second, subject)))


def comparison(draw: Draw) -> Sentence:
    """The dog is bigger than the cat."""
    adjective, pairs = draw.one(_COMPARED)
    noun, than = draw.one(pairs)
    subject = draw.noun_phrase(noun, subject=True, counted=False, described=False)
    other = draw.plain(than)
    tense = Tense.PAST if draw.chance(0.25) else Tense.PRESENT
    asked = draw.chance(0.2)
    english = asked_or_told(asked, subject.english, be(subject.agreement, tense))
    korean = f"{subject.as_topic()} {other.korean}보다 {korean_quality(adjective, tense, draw.level, asked=asked)}"
    met = (*qualities(adjective, subject), *qualities(adjective, other))
    return sentence(
        f"{english} {adjective.comparative} than {other.english}", korean, draw.level, met, "?" if asked else "."
    )


def existence(draw: Draw) -> Sentence:
    """There are three cats in the garden. Is there a key on the desk?"""
    noun, (where, place, near) = _something_somewhere(draw)
    tense = Tense.PAST if draw.chance(0.35) else Tense.PRESENT
    number, count = draw.one(NUMBERS)
    kind = draw.rng.random()
    predicate, mark = Predicate("있다"), "."
    if kind < 0.4:
        english = f"there {be('they', tense)} {number} {noun.plural} {where}"
        what = f"{nominative(noun.korean)} {count} {noun.counter}"
    elif kind < 0.6:
        english = f"there {be('it', tense)} {an(noun.english)} {where}"
        what = f"{nominative(noun.korean)} 한 {noun.counter}"
    elif kind < 0.8:
        english, what, predicate = (
            f"there {be('they', tense)} no {noun.plural} {where}",
            nominative(noun.korean),
            Predicate("없다"),
        )
    else:
        english, what, mark = f"{be('it', tense)} there {an(noun.english)} {where}", nominative(noun.korean), "?"
    korean = f"{place} {what} {finite(predicate, tense, draw.level, mark == '?')}"
    return sentence(english, korean, draw.level, [("there", noun.english, near.english)], mark)


def _something_somewhere(draw: Draw) -> tuple[Noun, tuple[str, str, Noun]]:
    """A noun, and (on the desk, 책상 위에, desk) where it could well be."""
    if draw.chance(0.5):
        near = draw.one(_FURNITURE)
        english, korean = ("in", "안에") if near.english in ("box", "bag") else draw.one(_SPOTS)
        return draw.one(_SMALL), (f"{english} the {near.english}", f"{near.korean} {korean}", near)
    living, inside = draw.one(_COMPANY)
    if draw.chance(0.5):
        near = draw.one(inside)
        return draw.one(living), (place_phrase(near), near.korean + "에", near)
    near = draw.one(_BUILDINGS)
    english, korean = draw.one(_SIDES)
    return draw.one(living), (f"{english} the {near.english}", f"{near.korean} {korean}", near)
