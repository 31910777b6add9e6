"""The word combinations that never occur in training: about 5 % of all, the same for every seed."""

import hashlib
from collections import Counter
from collections.abc import Iterator

from jumok.demo.descriptions import THERE
from jumok.demo.lexicon import ADJECTIVES
from jumok.demo.meaning import Combination
from jumok.demo.phrases import NAMES, PEOPLE
from jumok.demo.verbs import VERBS

FAMOUS_COMBINATIONS: tuple[Combination, ...] = (
    ("identity", "I", "student"),
    ("quality", "tired", "animal"),
    ("quality", "wide", "street"),
)
_SHARE = 0.05
_PARTNERS_PER_LOSS = 5
"""At most one in five combinations of a word is held out, so that every word occurs often in training."""


def all_combinations() -> Iterator[Combination]:
    """Yield every pair of words that can occur together and whose translations do not depend on each other."""
    for verb in VERBS:
        for frame in verb.frames:
            for noun in frame.subjects:
                yield "subject", noun.english, verb.name
            # Where Korean chooses the verb by its object (모자를 쓰다), an unseen pair could only be guessed.
            for noun in frame.objects if not verb.by_object else ():
                yield "object", verb.name, noun.english
    for adjective in ADJECTIVES.values():
        for noun in adjective.nouns:
            yield "quality", adjective.english, noun.english
    for person in PEOPLE:
        for subject in ("I", "you", "he", "she", *(name.english for name in NAMES)):
            yield "identity", subject, person.english
    for thing, place in THERE:
        yield "there", thing.english, place.english


def _choose() -> frozenset[Combination]:
    """Return the famous combinations and others in pseudo-random order (by hash), within each word's limit."""
    candidates = sorted(set(all_combinations()), key=lambda c: hashlib.blake2b("\t".join(c).encode()).digest())
    partners, losses = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for kind, first, second in candidates:
        partners.update([(kind + " of", first), (kind, second)])
    chosen: set[Combination] = set()
    for kind, first, second in (*FAMOUS_COMBINATIONS, *candidates):
        sides = [(kind + " of", first), (kind, second)]
        if len(chosen) < _SHARE * len(candidates) and all(losses[s] < partners[s] // _PARTNERS_PER_LOSS for s in sides):
            chosen.add((kind, first, second))
            losses.update(sides)
    return frozenset(chosen)


HELD_OUT: frozenset[Combination] = _choose()
