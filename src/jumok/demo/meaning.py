"""The meaning of a sentence before it is put into words: noun phrases and clauses, for both languages."""

from collections.abc import Callable
from dataclasses import dataclass

from jumok.demo.korean import accusative, nominative, topic, toward
from jumok.demo.lexicon import Noun
from jumok.demo.verbs import Form, Verb

Combination = tuple[str, str, str]
"""(kind, word, word): two words that occur together in a sentence; the unit that is held out."""

PARTICLES: dict[str, Callable[[str], str]] = {
    "은": topic,
    "이": nominative,
    "을": accusative,
    "으로": toward,
    "에": lambda word: word + "에",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in both languages, and the word combinations in it."""

    english: str
    korean: str
    combinations: frozenset[Combination]


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase in both languages; `korean` is without its particle."""

    english: str
    korean: str
    heads: tuple[Noun, ...] = ()
    """The nouns it is about; none for pronouns, two for 'Minsu and Anna'."""
    agreement: str = "it"
    """The pronoun that English verbs agree with: I, you, it or they."""
    count: str = ""
    """Counted objects let the number float behind the particle: 책을 세 권."""
    definite: bool = True
    combinations: tuple[Combination, ...] = ()

    @property
    def speaks_for_itself(self) -> bool:
        """싶다 tells what I or you wish; what others wish is 싶어 하다."""
        return self.english in ("I", "we", "you")

    def as_topic(self) -> str:
        """은/는 for what is known, 이/가 for what is new; nothing for 'you'."""
        if not self.korean:
            return ""
        return topic(self.korean) if self.definite else self.as_nominative()

    def as_nominative(self) -> str:
        return nominative(f"{self.korean} {self.count}" if self.count else self.korean)

    def as_object(self, particle: str) -> str:
        marked = PARTICLES[particle](self.korean)
        return f"{marked} {self.count}" if self.count else marked


@dataclass(frozen=True, slots=True)
class Clause:
    """A subject, a verb and what belongs to it. The texts of adjuncts are pairs (English, Korean)."""

    subject: Phrase
    verb: Verb
    form: Form
    negative: bool = False
    object: Phrase | None = None
    recipient: Phrase | None = None
    time: tuple[str, str] | None = None
    early_time: bool = False
    """often, always: stand before the English verb."""
    place: Noun | None = None
    manner: tuple[str, str] | None = None
    other: tuple[str, str] | None = None
    """Company or vehicle: with Minsu, by bus."""

    @property
    def combinations(self) -> tuple[Combination, ...]:
        found = [("subject", noun.english, self.verb.name) for noun in self.subject.heads]
        found += self.subject.combinations
        if self.object:
            found += [("object", self.verb.name, noun.english) for noun in self.object.heads]
            found += self.object.combinations
        return tuple(found)
