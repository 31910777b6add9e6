"""Labelled reviews generated from a small grammar: praise, criticism, and negation and contrast, which reverse them.

Negation turns a word around ("not boring"), and of two clauses joined by "but" the second decides. So no word decides
by itself: a classifier that only counts words cannot get them all right.
"""

from random import Random

from jumok.errors import InputError

POSITIVE, NEGATIVE = "positive", "negative"

_THINGS = {
    "film": ("acting", "story", "ending", "music", "camera work", "dialogue", "first half"),
    "book": ("plot", "language", "ending", "heroine", "first chapter", "style", "translation"),
    "restaurant": ("soup", "service", "bread", "view", "dessert", "waiter", "fish"),
    "hotel": ("room", "breakfast", "bed", "view", "staff", "garden", "lift"),
}
_GOOD = ("wonderful", "moving", "fresh", "clever", "charming", "excellent", "lovely", "brilliant", "warm", "honest")
_BAD = ("boring", "dull", "awful", "clumsy", "cold", "tasteless", "predictable", "terrible", "empty", "sloppy")
_ADVERBS = ("", "really ", "rather ", "truly ", "so ", "quite ")
_NEGATIONS = ("not ", "never ", "not at all ", "anything but ")
_OPENINGS = ("", "To be honest, ", "In short: ", "We went there last week; ", "My sister was right: ", "After all, ")
_CONTRASTS = (", but ", ", yet ", "; still, ", ". However, ")
_ADDITIONS = (" and ", ", and ", "; also, ")


def draw_review(rng: Random) -> tuple[str, str]:
    """A label and a review."""
    place = rng.choice(sorted(_THINGS))
    positive = rng.random() < 0.5
    first, second = rng.sample(_THINGS[place], 2)
    shape = rng.random()
    if shape < 0.35:
        text = _clause(rng, first, positive)
    elif shape < 0.65:
        text = _clause(rng, first, positive) + rng.choice(_ADDITIONS) + _clause(rng, second, positive)
    else:
        text = _clause(rng, first, not positive) + rng.choice(_CONTRASTS) + _clause(rng, second, positive)
    opening = rng.choice(_OPENINGS) + f"about the {place}: " if rng.random() < 0.3 else rng.choice(_OPENINGS)
    text = opening + text
    return POSITIVE if positive else NEGATIVE, text[0].upper() + text[1:] + "."


def _clause(rng: Random, thing: str, positive: bool) -> str:
    negated = rng.random() < 0.35
    word = rng.choice(_GOOD if positive != negated else _BAD)
    before = rng.choice(_NEGATIONS) if negated else rng.choice(_ADVERBS)
    return f"the {thing} {rng.choice(('was', 'is', 'seemed'))} {before}{word}"


def demo_reviews(seed: int = 0, count: int = 6_000) -> list[tuple[str, str]]:
    """Return `count` distinct labelled reviews, determined by the seed."""
    rng = Random(seed)
    found: dict[str, str] = {}
    for _ in range(50 * count):
        if len(found) == count:
            return [(label, text) for text, label in found.items()]
        label, text = draw_review(rng)
        found.setdefault(text, label)
    raise InputError(f"The built-in reviews are fewer than {count}: ask for {len(found)}.")
