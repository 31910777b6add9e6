"""The built-in parallel corpus: English and Korean sentences generated from a grammar; a seed determines it.

It shows what attention is for: the object determines the Korean verb (wear a hat, wear shoes), the vocative determines
every ending, and "it" refers to a noun. Each held-out sentence contains a combination of two words (verb and object,
subject and verb, adjective and noun …) that no training sentence contains, although every word and every pattern occurs
often in training.

The test set begins with `FAMOUS`: *I am a student.* and *The animal didn't cross the street because it was too tired.*,
and the latter again with *wide*, where "it" is the street. Their combinations I–student, tired–animal and wide–street
are held out.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from jumok.demo.actions import habit, question, request, statement, wh_question
from jumok.demo.compounds import because, coordination, say_because
from jumok.demo.descriptions import comparison, existence, identity, quality, say_identity, this_is, two_qualities
from jumok.demo.held_out import HELD_OUT
from jumok.demo.korean import Level, Tense
from jumok.demo.lexicon import ADJECTIVES, NOUNS
from jumok.demo.meaning import Clause, Phrase, Sentence
from jumok.demo.phrases import Draw
from jumok.demo.relatives import relative
from jumok.demo.verbs import VERB, Form
from jumok.errors import InputError

Pair = tuple[str, str]
"""(English, Korean)"""

VALID_SIZE = 500
TEST_SIZE = 1_000
_PATIENCE = 20_000
"""After so many draws without a new sentence, the grammar is taken to be exhausted."""

_PATTERNS: dict[Callable[[Draw], Sentence], int] = {
    statement: 28,
    habit: 4,
    question: 9,
    wh_question: 10,
    request: 4,
    identity: 3,
    this_is: 2,
    quality: 8,
    two_qualities: 3,
    comparison: 5,
    existence: 4,
    because: 15,
    coordination: 6,
    relative: 8,
}
# Weighted choice by repetition: a draw is one index.
_PATTERN = tuple(pattern for pattern, weight in _PATTERNS.items() for _ in range(weight))
_LEVEL = (Level.POLITE, Level.POLITE, Level.POLITE, Level.FORMAL, Level.CASUAL)


@dataclass(frozen=True, slots=True)
class DemoCorpus:
    """Pairs for training, and pairs with combinations of words that training never saw."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


def draw_sentence(rng: Random) -> Sentence:
    """Return a random sentence of the grammar, held out or not."""
    level = _LEVEL[int(rng.random() * len(_LEVEL))]
    return _PATTERN[int(rng.random() * len(_PATTERN))](Draw(rng, level))


def famous_sentences() -> tuple[Sentence, ...]:
    """Return the well-known examples of explanations of attention."""
    draw = Draw(Random(0), Level.POLITE)
    animal = Phrase("the animal", "그 동물", (NOUNS["animal"],))
    crossing = Clause(animal, VERB["cross"], Form.PAST, negative=True, object=draw.plain(NOUNS["street"]))
    too = ("too", "너무")
    return (
        say_identity(Level.POLITE, draw.pronoun("I"), NOUNS["student"], Tense.PRESENT),
        say_because(draw, crossing, ADJECTIVES["tired"], too, about_object=False),
        say_because(draw, crossing, ADJECTIVES["wide"], too, about_object=True),
    )


FAMOUS: tuple[Pair, ...] = tuple((sentence.english, sentence.korean) for sentence in famous_sentences())


def demo_pairs(seed: int = 0, count: int = 40_000) -> DemoCorpus:
    """Return `count` training pairs, 500 for validation and 1,000 for testing, all distinct.

    The held-out ones depend on the seed alone, not on `count`.
    """
    if count < 1:
        raise InputError(f"The built-in corpus needs at least 1 training pair, but {count} were asked for.")
    rng = Random(seed)
    train: list[Pair] = []
    held_out: list[Pair] = list(FAMOUS)
    known = {english for english, _ in FAMOUS}
    idle = 0
    while len(train) < count or len(held_out) < TEST_SIZE + VALID_SIZE:
        sentence = draw_sentence(rng)
        wanted = held_out if not HELD_OUT.isdisjoint(sentence.combinations) else train
        full = len(wanted) >= (count if wanted is train else TEST_SIZE + VALID_SIZE)
        idle += 1
        if idle > _PATIENCE:
            raise InputError(f"The built-in corpus has fewer than {count} training pairs: ask for {len(train)}.")
        if full or sentence.english in known:
            continue
        known.add(sentence.english)
        wanted.append((sentence.english, sentence.korean))
        idle = 0
    return DemoCorpus(train, valid=held_out[TEST_SIZE:], test=held_out[:TEST_SIZE])


def write_demo_corpus(directory: str | Path, seed: int = 0, count: int = 40_000) -> DemoCorpus:
    """Write train.en, train.ko, valid.en … test.ko, one sentence a line, and return what they contain."""
    corpus = demo_pairs(seed, count)
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, pairs in (("train", corpus.train), ("valid", corpus.valid), ("test", corpus.test)):
            for language, side in (("en", 0), ("ko", 1)):
                lines = "".join(pair[side] + "\n" for pair in pairs)
                (folder / f"{name}.{language}").write_bytes(lines.encode())
    except OSError as error:
        reason = error.strerror or error
        raise InputError(
            f"The built-in corpus cannot be written to {folder}: {reason}. Name another directory."
        ) from error
    return corpus
