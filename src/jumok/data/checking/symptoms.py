"""Symptoms of a bad corpus: wrong scripts, damaged encodings, a shift between two files."""

import math
import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

# Of each script, the ranges of its letters, and languages that are written in it.
_SCRIPT_TABLE = {
    "Latin": ("A-Za-zÀ-ÖØ-öø-ɏḀ-ỿ", "en de fr es it pt nl sv da nb no fi pl cs sk sl hr hu ro tr vi id ms et lv lt"),
    "Greek": ("\u0370-\u03ff\u1f00-\u1fff", "el"),
    "Cyrillic": ("\u0400-\u052f", "ru uk bg be mk kk"),
    "Armenian": ("\u0530-\u058f", "hy"),
    "Hebrew": ("\u0590-\u05ff", "he"),
    "Arabic": ("\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc", "ar fa ur"),
    "Devanagari": ("\u0900-\u097f", "hi ne mr"),
    "Bengali": ("\u0980-\u09ff", "bn"),
    "Gurmukhi": ("\u0a00-\u0a7f", ""),
    "Gujarati": ("\u0a80-\u0aff", ""),
    "Tamil": ("\u0b80-\u0bff", "ta"),
    "Telugu": ("\u0c00-\u0c7f", ""),
    "Kannada": ("\u0c80-\u0cff", ""),
    "Malayalam": ("\u0d00-\u0d7f", ""),
    "Thai": ("\u0e00-\u0e7f", "th"),
    "Lao": ("\u0e80-\u0eff", ""),
    "Tibetan": ("\u0f00-\u0fff", ""),
    "Myanmar": ("\u1000-\u109f", ""),
    "Georgian": ("\u10a0-\u10ff\u1c90-\u1cbf", "ka"),
    "Ethiopic": ("\u1200-\u139f", "am"),
    "Khmer": ("\u1780-\u17ff", ""),
    "Mongolian": ("\u1800-\u18af", ""),
    "Hangul": ("\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3", "ko"),
    "Han or Kana": ("\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff", "ja zh"),
}
_SCRIPTS = {script: re.compile(f"[{ranges}]") for script, (ranges, _) in _SCRIPT_TABLE.items()}
SCRIPT_OF_LANGUAGE = {code: script for script, (_, codes) in _SCRIPT_TABLE.items() for code in codes.split()}
_DIGIT = re.compile(r"\d")
_MAJORITY = 0.8
_LETTERS_TO_JUDGE = 6  # fewer letters, as of a name or an abbreviation, say little about a language

# UTF-8 that was decoded as Latin-1 or Windows-1252 and encoded again: lead bytes became letters, the bytes after
# them symbols. Leads that also end words before a quotation mark ("CAFÉ»") count only in a row.
_TAIL = "[\x80-\xbf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
_GARBLED = re.compile(f"[ÂÃ]{_TAIL}|â[€\x80]|(?:[ÄÅÎÏÐÑØÙ]{_TAIL}){{2}}|(?:[ã-í]{_TAIL}{_TAIL}){{2}}")
_NEVER_TEXT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff\ufffd]")


def is_garbled(text: str) -> bool:
    """Whether the text has replacement or control characters, or UTF-8 that was decoded as something else."""
    if text.isascii() and text.isprintable():
        return False
    return bool(_NEVER_TEXT.search(text) or _GARBLED.search(text))


def is_number(text: str) -> bool:
    """Whether the text is a number, a date or an identifier: it has a digit, and neither words nor a sentence."""
    if not _DIGIT.search(text):
        return False
    return not any(map(str.isalpha, text)) or (text.isascii() and len(text.split()) == 1)


def majority_script(texts: Iterable[str]) -> str | None:
    """The script in which at least 80 % of the texts are mostly written, if there is one."""
    votes = Counter(script for text in texts if (script := _script_of(text)))
    if not votes:
        return None
    winner, count = votes.most_common(1)[0]
    return winner if count >= _MAJORITY * votes.total() else None


def lacks_script(text: str, script: str | None) -> bool:
    """Whether the text has letters, but none of the script."""
    if script is None or _SCRIPTS[script].search(text):
        return False
    return sum(map(str.isalpha, text)) >= _LETTERS_TO_JUDGE


def _script_of(text: str) -> str | None:
    if text.isascii():
        return "Latin" if _SCRIPTS["Latin"].search(text) else None
    counts = {script: len(pattern.findall(text)) for script, pattern in _SCRIPTS.items()}
    best = max(counts, key=lambda script: counts[script])
    return best if counts[best] else None


def letter_profile(texts: Iterable[str]) -> Counter[str]:
    """Counts of character bigrams: enough to tell two languages apart."""
    return Counter(text[i : i + 2] for text in texts for i in range(len(text) - 1))


def similarity(one: Counter[str], other: Counter[str]) -> float:
    """Cosine of two profiles: 1 for the same language, near 0 for different scripts."""
    norms = math.sqrt(sum(n * n for n in one.values()) * sum(n * n for n in other.values()))
    return sum(count * other[key] for key, count in one.items()) / norms if norms else 0.0


def length_misfit(source_lengths: npt.ArrayLike, target_lengths: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """How far the log of each pair's length ratio is from the median; a few characters count little."""
    ratios = np.log(np.asarray(target_lengths) + 10.0) - np.log(np.asarray(source_lengths) + 10.0)
    misfit: npt.NDArray[np.float64] = ratios - (np.median(ratios) if ratios.size else 0.0)
    return misfit


_SHIFTS_TRIED = 20
_COST_OF_A_SHIFT = 10.0  # in nats: lines must fit better by this much after a shift, or it is taken for chance
_WORST_FIT = 8.0


def first_unpartnered(longer: npt.ArrayLike, shorter: npt.ArrayLike, surplus: int) -> int:
    """The index of the line of the longer of two files that is probably the first without a partner, by lengths alone.

    Both arrays hold the first n lines, n being the length of the shorter file. Returns an index below n, or n when
    everything fits until the shorter file ends. Dynamic programming finds the cheapest alignment in which line i of the
    shorter file belongs to line i + d of the longer, d grows from 0 to at most `surplus`, and each growth has a cost.
    """
    one, other = np.log(np.asarray(longer) + 5.0), np.log(np.asarray(shorter) + 5.0)
    n = len(other)
    if n == 0:
        return 0
    middle = float(np.median(one - other))
    spread = max(1.4826 * float(np.median(np.abs(one - other - middle))), 0.05)

    def misfit(shift: int) -> npt.NDArray[np.float64]:
        return np.minimum(((one[shift:] - other[: n - shift] - middle) / spread) ** 2 / 2, _WORST_FIT)

    def summed(shift: int) -> npt.NDArray[np.float64]:
        # Lines beyond n were not seen: there, a shift is neither better nor worse than none.
        return np.concatenate(([0.0], np.cumsum(np.concatenate((misfit(shift), unshifted[n - shift :])))))

    unshifted = misfit(0)
    shifts = sorted({*range(1, min(surplus, _SHIFTS_TRIED) + 1), min(surplus, n)})
    rest = np.full(n + 1, np.inf)  # cost of the lines from i on, once shifted by at least the shift at hand
    for shift in reversed(shifts):
        until = summed(shift)
        stay = until[n] - until
        go_on = np.minimum.accumulate((until + _COST_OF_A_SHIFT + rest)[::-1])[::-1] - until
        rest = np.minimum(rest, np.minimum(stay, go_on))
    until = summed(0)
    turning = until + _COST_OF_A_SHIFT + rest
    best = int(np.argmin(turning))
    return best if turning[best] < until[n] else n
