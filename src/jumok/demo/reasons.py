"""The reasons for which people and animals of the built-in corpus do something, or do not."""

from dataclasses import dataclass

from jumok.demo.lexicon import ADJECTIVES, Adjective
from jumok.demo.verbs import VERB, Verb


@dataclass(frozen=True, slots=True)
class Reasons:
    """Adjectives that explain why something was done or not: about the one who does it, or about its object."""

    about_subject: tuple[Adjective, ...]
    about_object: tuple[Adjective, ...]


def _reasons(about_subject: str, about_object: str = "") -> Reasons:
    return Reasons(
        tuple(ADJECTIVES[word] for word in about_subject.split()),
        tuple(ADJECTIVES[word] for word in about_object.split()),
    )


_UNABLE = "tired sick sleepy weak hungry thirsty lazy busy"
WHY_NOT: dict[Verb, Reasons] = {
    VERB[name]: _reasons(*reasons)
    for name, reasons in {
        "cross": (_UNABLE, "wide deep dangerous dark cold long narrow"),
        "enter": (_UNABLE, "dark dangerous noisy dirty small narrow"),
        "eat": ("full sick tired sleepy busy", "salty spicy hot cold"),
        "drink": ("full sick tired sleepy busy", "hot cold dirty"),
        "read": ("tired sick sleepy busy lazy", "difficult long boring"),
        "watch": ("tired sick sleepy busy", "boring long sad"),
        "buy": ("busy tired", "expensive heavy big small old"),
        "carry": ("tired sick weak lazy busy", "heavy big"),
        "clean": ("tired sick lazy busy", "big"),
        "use": ("tired busy", "slow old heavy"),
        "fix": ("tired sick busy lazy", "old"),
        "wash": ("tired sick busy lazy",),
        "study": ("tired sick sleepy busy lazy", "difficult boring"),
        "cook": ("tired sick busy lazy",),
        "help": ("tired sick busy weak lazy",),
        "meet": ("tired sick busy",),
        "run (intransitive)": (_UNABLE,),
        "walk (intransitive)": (_UNABLE,),
        "swim (intransitive)": (_UNABLE,),
        "play (intransitive)": (_UNABLE,),
        "dance (intransitive)": (_UNABLE,),
        "work (intransitive)": ("tired sick sleepy lazy",),
    }.items()
}
WHY: dict[Verb, Reasons] = {
    VERB[name]: _reasons(*reasons)
    for name, reasons in {
        "eat": ("hungry", "delicious sweet fresh"),
        "drink": ("thirsty", "delicious sweet cold"),
        "read": ("", "interesting easy short"),
        "buy": ("", "cheap pretty light fresh beautiful"),
        "sell": ("", "old heavy big small slow"),
        "wash": ("", "dirty"),
        "clean": ("", "dirty"),
        "like": ("", "cute interesting beautiful delicious easy"),
        "hate": ("", "difficult boring spicy dirty"),
        "cook": ("hungry", "fresh"),
        "sleep (intransitive)": ("tired sleepy sick weak",),
        "rest (intransitive)": ("tired sick sleepy weak",),
        "cry (intransitive)": ("tired sick hungry sleepy",),
        "laugh (intransitive)": ("happy",),
    }.items()
}
