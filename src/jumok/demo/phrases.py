"""Random noun phrases, adjuncts and clauses that make sense."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import TypeVar

from jumok.demo.korean import Level, together_with, toward
from jumok.demo.lexicon import BEFORE_NOUN, HE, OUR_OWN, OWNED, SHE, Adjective, Noun, select_nouns
from jumok.demo.meaning import Clause, Combination, Phrase
from jumok.demo.verbs import Form, Frame, Verb

T = TypeVar("T")

NUMBERS = (
    ("two", "두"), ("three", "세"), ("four", "네"), ("five", "다섯"), ("six", "여섯"),
    ("seven", "일곱"), ("eight", "여덟"), ("nine", "아홉"), ("ten", "열"),
)  # fmt: skip
MANNER = {"slowly": "천천히", "quickly": "빨리", "quietly": "조용히"}
VEHICLES = (("bus", "버스"), ("train", "기차"), ("subway", "지하철"), ("taxi", "택시"), ("bicycle", "자전거"))
TIMES = {
    Form.PAST: (
        ("yesterday", "어제"),
        ("last night", "어젯밤에"),
        ("this morning", "오늘 아침에"),
        ("last week", "지난주에"),
    ),
    Form.FUTURE: (("tomorrow", "내일"), ("tonight", "오늘 밤에"), ("next week", "다음 주에")),
    Form.GOING: (("tomorrow", "내일"), ("tonight", "오늘 밤에"), ("next week", "다음 주에")),
    Form.PROGRESSIVE: (("now", "지금"),),
}
HABITS = (
    ("often", "자주"),
    ("always", "항상"),
    ("sometimes", "가끔"),
    ("every day", "매일"),
    ("every morning", "매일 아침"),
)
EARLY = ("often", "always", "sometimes")
COMPANIONABLE = (
    "play (intransitive)",
    "walk (intransitive)",
    "dance (intransitive)",
    "work (intransitive)",
    "go to",
    "study",
)
PRONOUNS = ("I", "I", "we", "he", "she", "they")
ASKED_PRONOUNS = ("you", "you", "he", "she", "they")
OUTDOORS = select_nouns("park garden forest field beach river street")
NAMES = select_nouns("name")
BARE = ("name", "study", "sport")
"""Kinds that English names without an article."""
PEOPLE = select_nouns("person")


def an(words: str) -> str:
    """The words with a or an before them, whichever they sound like."""
    return ("an " if words[0] in "aeiou" or words.startswith("honest") else "a ") + words


@dataclass(slots=True)
class Draw:
    """The random generator of one sentence, and the level of politeness that pronouns depend on."""

    rng: Random
    level: Level

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def one(self, options: Sequence[T]) -> T:
        # Several times faster than Random.choice, and every sentence needs a dozen.
        return options[int(self.rng.random() * len(options))]

    def pronoun(self, word: str) -> Phrase:
        casual, formal = self.level is Level.CASUAL, self.level is Level.FORMAL
        korean = {
            "I": "나" if casual else "저",
            "we": "저희" if formal else "우리",
            "he": "그",
            "she": "그녀",
            "they": "그들",
            "you": "",
        }
        agreement = word if word in ("I", "you") else "they" if word in ("we", "they") else "it"
        return Phrase(word, korean[word], agreement=agreement)

    def owner(self, noun: Noun) -> tuple[str, str]:
        """my, our, Minsu's, the student's."""
        casual, formal = self.level is Level.CASUAL, self.level is Level.FORMAL
        if noun in OUR_OWN and self.chance(0.5):
            return "our", "저희" if formal else "우리"
        if self.chance(0.5):
            return "my", "내" if casual else "제"
        owner = self.one(NAMES)
        return f"{owner.english}'s", f"{owner.korean}의"

    def fitting_adjective(self, noun: Noun) -> Adjective | None:
        """Sometimes an adjective that fits the noun."""
        fitting = BEFORE_NOUN[noun]
        return self.one(fitting) if fitting and self.chance(0.2) else None

    def plain(self, noun: Noun) -> Phrase:
        """the student, Minsu: where nothing more would be natural."""
        english = noun.english if noun.kind in BARE else f"the {noun.english}"
        return Phrase(english, noun.korean, (noun,))

    def noun_phrase(self, noun: Noun, *, subject: bool = False, counted: bool = True, described: bool = True) -> Phrase:
        """the, a, this, that, my, three …, with or without an adjective. Uncounted subjects are definite."""
        if noun.kind in BARE or noun.kind == "instrument":
            return self.plain(noun)
        adjective = self.fitting_adjective(noun) if described else None
        before = f"{adjective.english} " if adjective else ""
        korean = f"{adjective.before_noun} {noun.korean}" if adjective else noun.korean
        met: tuple[Combination, ...] = (("quality", adjective.english, noun.english),) if adjective else ()
        singular = before + noun.english
        agreement = "it" if noun.countable or noun.kind != "clothing" else "they"
        roll = self.rng.random()
        if roll < 0.12 and counted and noun.counter and (noun.countable or noun.kind == "drink"):
            return self.counted(noun, before, korean, met)
        if roll < 0.24 and noun.animate:
            plural = f"{'그 ' if subject else ''}{korean}들"
            return Phrase(f"the {before}{noun.plural}", plural, (noun,), "they", combinations=met)
        if roll < 0.36 and agreement == "it":
            english, pointing = self.one((("this", "이"), ("that", "저")))
            return Phrase(f"{english} {singular}", f"{pointing} {korean}", (noun,), combinations=met)
        if roll < 0.46 and (noun in OWNED or noun in OUR_OWN):
            english, owner = self.owner(noun)
            return Phrase(f"{english} {singular}", f"{owner} {korean}", (noun,), agreement, combinations=met)
        if roll < 0.56 and noun.countable and not subject:
            return Phrase(an(singular), korean, (noun,), combinations=met)
        if roll < 0.56 and noun.animate and counted:
            return Phrase(an(singular), korean, (noun,), count="한 " + noun.counter, definite=False, combinations=met)
        return Phrase(f"the {singular}", ("그 " if subject else "") + korean, (noun,), agreement, combinations=met)

    def counted(self, noun: Noun, before: str, korean: str, met: tuple[Combination, ...]) -> Phrase:
        english, number = self.one(NUMBERS)
        what = f"cups of {before}{noun.english}" if noun.kind == "drink" else before + noun.plural
        count = f"{number} {noun.counter}"
        return Phrase(f"{english} {what}", korean, (noun,), "they", count=count, definite=False, combinations=met)

    def generic(self, noun: Noun) -> Phrase:
        """What habits are about: books, bread, the piano."""
        if noun.animate and noun.countable:
            return Phrase(noun.plural, noun.korean + "들" if noun.kind == "person" else noun.korean, (noun,))
        if noun.countable or noun.kind in ("food", "drink", "study", "sport", "name") or noun.english == "music":
            return Phrase(noun.plural, noun.korean, (noun,))
        return Phrase(f"the {noun.english}", noun.korean, (noun,))

    def pair(self, nouns: Sequence[Noun]) -> Phrase:
        """Minsu and the doctor."""
        first, second = self.rng.sample(nouns, 2)
        one, other = self.plain(first), self.plain(second)
        korean = f"{together_with(one.korean)} {other.korean}"
        return Phrase(f"{one.english} and {other.english}", korean, (first, second), "they")

    def subject(self, frame: Frame, *, asked: bool = False, counted: bool = True) -> Phrase:
        people = frame.subjects[0].kind == "person"
        if people and self.chance(0.3):
            return self.pronoun(self.one(ASKED_PRONOUNS if asked else PRONOUNS))
        if people and self.chance(0.06):
            return self.pair(frame.subjects)
        return self.noun_phrase(self.one(frame.subjects), subject=True, counted=counted and not asked)

    def one_who_acts(self, frame: Frame, but_not: Sequence[Noun] = ()) -> Phrase:
        """A definite subject without adjectives, for sentences that say enough without them."""
        if frame.subjects[0].kind == "person" and self.chance(0.25):
            return self.pronoun(self.one(PRONOUNS))
        noun = self.one([noun for noun in frame.subjects if noun not in but_not])
        return self.noun_phrase(noun, subject=True, counted=False, described=False)

    def possession(self, noun: Noun, counted: bool) -> Phrase:
        """What 있다 says of an owner is indefinite: a car, three pencils."""
        if counted and self.chance(0.5):
            return self.counted(noun, "", noun.korean, ())
        adjective = self.fitting_adjective(noun)
        if adjective is None:
            return Phrase(an(noun.english), noun.korean, (noun,))
        english, korean = an(f"{adjective.english} {noun.english}"), f"{adjective.before_noun} {noun.korean}"
        return Phrase(english, korean, (noun,), combinations=(("quality", adjective.english, noun.english),))

    def object(self, frame: Frame, form: Form, subject: Phrase, *, counted: bool) -> Phrase | None:
        if not frame.objects:
            return None
        noun = self.other_than(frame.objects, subject)
        # A habit, like what one likes, is about books in general; a place is always this one.
        if form is Form.PRESENT and noun.kind not in ("place", "opening", "crossing") and self.chance(0.7):
            return self.generic(noun)
        alike = [other for other in frame.objects if other.kind == noun.kind] if self.chance(0.06) else []
        if noun.kind in ("food", "drink", "study") and len(alike) > 1:
            return self.pair(alike)
        return self.noun_phrase(noun, counted=counted)

    def other_than(self, nouns: Sequence[Noun], subject: Phrase) -> Noun:
        """One of several nouns, but not the subject itself."""
        noun = self.one(nouns)
        while noun in subject.heads:
            noun = self.one(nouns)
        return noun

    def recipient(self, subject: Phrase) -> Phrase:
        if subject.english != "I" and self.chance(0.2):
            return Phrase("me", "나" if self.level is Level.CASUAL else "저")
        return self.plain(self.other_than(PEOPLE + NAMES, subject))

    def time(self, form: Form) -> tuple[str, str] | None:
        return self.one(TIMES[form]) if form in TIMES and self.chance(0.35) else None

    def company(self, verb: Verb, subject: Phrase) -> tuple[str, str] | None:
        """with Minsu, or by bus where one goes somewhere."""
        if verb.name in ("go to", "come to") and self.chance(0.5) and all(n.kind != "animal" for n in subject.heads):
            english, korean = self.one(VEHICLES)
            return f"by {english}", toward(korean)
        if verb.name in COMPANIONABLE and all(noun.kind != "animal" for noun in subject.heads) and self.chance(0.25):
            companion = self.plain(self.other_than(PEOPLE + NAMES, subject))
            return f"with {companion.english}", together_with(companion.korean) + " 함께"
        return None

    def reference(self, phrase: Phrase) -> str:
        """The pronoun that English refers to the phrase with: he or she for a person, it for all else."""
        if not phrase.heads or phrase.agreement == "they":
            return phrase.english if not phrase.heads else "they"
        noun = phrase.heads[0]
        if noun.kind not in ("person", "name"):
            return "it"
        if noun in HE:
            return "he"
        return "she" if noun in SHE or self.chance(0.5) else "he"

    def clause(self, verb: Verb, *, asked: bool = False, forms: Sequence[Form] = ()) -> Clause:
        """A clause of any form the verb allows, with time, place, manner or company now and then."""
        frame, form = self.one(verb.frames), self.one(forms or verb.forms)
        # A habit or a liking belongs to somebody known.
        subject = self.subject(frame, asked=asked, counted=form is not Form.PRESENT and not verb.state)
        negative = not asked and subject.definite and self.chance(0.15 if form is Form.PRESENT else 0.28)
        # "didn't read three books", "often sends three books", "likes three dogs" need a context to mean anything.
        counted = not negative and (form is not Form.PRESENT or verb.name == "have")
        if verb.name == "have":
            what: Phrase | None = self.possession(self.one(frame.objects), counted)
        elif verb.name == "build":
            # What is not there yet is nobody's, and neither old nor noisy.
            what = self.plain(self.one(frame.objects))
        else:
            what = self.object(frame, form, subject, counted=counted)
        time = None if verb.state else self.time(form)
        if form is Form.PRESENT and not (verb.state or negative or asked):
            # Without a word for the habit, English "read" could be past or present.
            time = self.one(HABITS)
        clause = Clause(
            subject, verb, form, negative, what, time=time, early_time=time is not None and time[0] in EARLY
        )
        if verb.recipients and (verb.name in ("give", "show") or self.chance(0.7)):
            return replace(clause, recipient=self.recipient(subject))
        return self.with_circumstance(clause)

    def with_circumstance(self, clause: Clause) -> Clause:
        """Sometimes add manner, place or company."""
        verb, roll = clause.verb, self.rng.random()
        if roll < 0.15 and verb.manners and clause.form not in (Form.PRESENT, Form.WANT) and not clause.negative:
            name = self.one(verb.manners)
            return replace(clause, manner=(name, MANNER[name]))
        if roll < 0.45 and verb.places:
            elsewhere = [noun for noun in verb.places if not clause.object or noun not in clause.object.heads]
            if any(noun.kind == "animal" for noun in clause.subject.heads):
                elsewhere = [noun for noun in elsewhere if noun in OUTDOORS]
            return replace(clause, place=self.one(elsewhere)) if elsewhere else clause
        company = self.company(verb, clause.subject)
        return replace(clause, other=company) if company else clause
