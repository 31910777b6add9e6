"""The n-grams of a text and their scores, in NumPy: needs no torch, since no gradient ever goes through.

N-grams are found by hash, so there is no list of them to keep. Several may meet in a row of the table: it belongs to
the one whose fingerprint is kept, and the others count as unknown; without fingerprints they share the row. Axes: B
texts, S tokens, U units (tokens, characters or words), L lengths of n-grams, R = L U, P table rows, C classes, V
vocabulary.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

LONGEST_NGRAM = {"token": 4, "character": 6, "spaceless": 6, "word": 3, "ending": 3}  # in units
OF_WORDS = ("word", "ending")  # units that are words
# The last tokens of a text, whose words are the units "ending", because a verdict often stands at the end. The first of
# these words may be the rest of one. This number is part of the format of saved models.
ENDING_TOKENS = 64
SPACE = ord("▁")  # in a spelling: between words, part of none
_MULTIPLIER = np.int64(6364136223846793005)  # of Knuth's generator: spreads neighbouring numbers over all the bits
_UPPER_BITS = np.int64(29)  # the lower bits of a product depend only on the lower bits of its factors
_UPPERMOST_BITS = np.int64(55)  # above those of any row
FINGERPRINT_BITS = 6
_PACKED = 4  # fingerprints in one number, which float32 can hold exactly, the only format of a bundle's weights

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float32]


def hash_ngrams(units: IntArray, longest: int, rows: int) -> tuple[IntArray, IntArray, BoolArray]:
    """Hashes of all n-grams of units [B, U], n = 1 … longest: the table row [L, B, U] of the n-gram of each length that
    begins at each unit, its fingerprint, and whether there is one (an n-gram holds no padding)."""
    hashes, fingerprints, complete = [], [], []
    mixed, real = np.zeros_like(units), np.ones_like(units, np.bool_)
    for shift in range(longest):
        unit = np.zeros_like(units)
        unit[:, : max(0, units.shape[1] - shift)] = units[:, shift:]
        mixed = (mixed + unit) * _MULTIPLIER + 1
        real = real & (unit != 0)
        hashes.append((mixed >> _UPPER_BITS) & (rows - 1))
        fingerprints.append((mixed >> _UPPERMOST_BITS) & ((1 << FINGERPRINT_BITS) - 1))
        complete.append(real)
    return np.stack(hashes), np.stack(fingerprints), np.stack(complete)


def pack_fingerprints(fingerprints: IntArray) -> FloatArray:
    """The fingerprints of all rows [P] as numbers that hold four each."""
    padded = np.pad(fingerprints, (0, -len(fingerprints) % _PACKED)).reshape(-1, _PACKED)
    packed: FloatArray = (padded << FINGERPRINT_BITS * np.arange(_PACKED)).sum(1).astype(np.float32)
    return packed


def unpack_fingerprints(packed: FloatArray, rows: IntArray) -> IntArray:
    """The fingerprints of some rows [...]."""
    shifts = FINGERPRINT_BITS * (rows % _PACKED)
    result: IntArray = packed[rows // _PACKED].astype(np.int64) >> shifts & ((1 << FINGERPRINT_BITS) - 1)
    return result


def packed_size(rows: int) -> int:
    """How many numbers the fingerprints of so many rows are."""
    return -(-rows // _PACKED)


def spell(text: IntArray, spelling: FloatArray) -> IntArray:
    """The characters [B, U] of all tokens [B, S] in order, then padding. `spelling` [V, W] holds those of a token."""
    characters = spelling[text].reshape(len(text), text.shape[1] * spelling.shape[1])
    real = characters != 0
    counts = real.sum(1)
    result = np.zeros((len(text), counts.max(initial=0)), np.int64)
    result[np.arange(result.shape[1]) < counts[:, None]] = characters[real]
    return result


def last_tokens(text: IntArray, count: int) -> IntArray:
    """The last tokens [B, min(S, count)] of texts [B, S], then padding."""
    lengths = (text != 0).sum(1, keepdims=True)
    places = np.maximum(0, lengths - count) + np.arange(min(count, text.shape[1]))
    return np.where(places < lengths, np.take_along_axis(text, np.minimum(places, text.shape[1] - 1), 1), 0)


def number_words(characters: IntArray) -> IntArray:
    """Which word each of the characters [B, U] belongs to, from 1 on; 0: none, a space or padding. Words are separated
    by spaces, and a negative character is a word of its own."""
    alone, real = characters < 0, (characters != 0) & (characters != SPACE)
    joined = np.zeros_like(real)
    joined[:, 1:] = real[:, :-1] & ~alone[:, :-1] & ~alone[:, 1:]
    numbers: IntArray = np.where(real, (real & ~joined).cumsum(1), 0)
    return numbers


def join_words(characters: IntArray, numbers: IntArray) -> IntArray:
    """A hash [B, U] of each word of the characters, in order, then padding; `numbers` are those of `number_words`."""
    counts = numbers.max(1, initial=0)
    result = np.zeros((len(characters), counts.max(initial=0)), np.int64)
    real = numbers > 0
    unique = (numbers + (counts.cumsum() - counts)[:, None])[real]  # among the words of all texts
    starts = np.flatnonzero(np.diff(unique, prepend=0))
    if len(starts):
        places = np.arange(len(unique)) - starts[unique - 1]
        mixed = (characters[real] * _MULTIPLIER + places) * _MULTIPLIER
        hashes = np.add.reduceat((mixed ^ (mixed >> _UPPER_BITS)) * _MULTIPLIER, starts)
        result[np.arange(result.shape[1]) < counts[:, None]] = np.where(hashes == 0, 1, hashes)  # 0 is padding
    return result


@dataclass(frozen=True)
class NgramTable:
    """The class scores of a text: the sum over its n-grams, divided by the norm of their scales."""

    scores: FloatArray  # [P, C]
    scale: FloatArray  # [P] squared; the norm keeps the scores of long texts as large as those of short ones
    longest: int  # units of an n-gram
    spelling: FloatArray | None = None  # [V, W] the characters of every token, if the units are made of them
    words: bool = False  # the units are words, not single characters
    fingerprints: FloatArray | None = None  # of the n-gram that each row belongs to, as `pack_fingerprints` gives them
    last: int = 0  # how many tokens at the end of a text are scored; 0: all

    @classmethod
    def of_unit(
        cls,
        unit: str,
        scores: FloatArray,
        scale: FloatArray,
        spelling: FloatArray | None,
        fingerprints: FloatArray | None,
    ) -> "NgramTable":
        """The table of a unit of LONGEST_NGRAM."""
        last = ENDING_TOKENS if unit == "ending" else 0
        return cls(scores, scale, LONGEST_NGRAM[unit], spelling, unit in OF_WORDS, fingerprints, last)

    def rows(self, text: IntArray) -> tuple[IntArray, BoolArray]:
        """The rows [B, R] of the n-grams of texts [B, S] in ascending order, and which entries count: each row once."""
        found, known = self._hashes(text)
        return _each_once(found, known, len(self.scores))

    def keys(self, text: IntArray) -> tuple[IntArray, BoolArray]:
        """As `rows`, for all n-grams, whatever rows belong to: row and fingerprint of each, in one number [B, R]."""
        found, fingerprints, complete = hash_ngrams(self._units(text), self.longest, len(self.scores))
        return _each_once(found << FINGERPRINT_BITS | fingerprints, complete, len(self.scores) << FINGERPRINT_BITS)

    def __call__(self, text: IntArray) -> FloatArray:
        """Scores [B, C] of texts [B, S]."""
        found, counted = self.rows(text)
        texts, rows = np.nonzero(counted)[0], found[counted]
        columns = [np.bincount(texts, of_class[rows], len(text)) for of_class in self.scores.T]
        result: FloatArray = (np.stack(columns, 1) / self._norms(texts, rows, len(text))[:, None]).astype(np.float32)
        return result

    def attribution(self, text: IntArray, chosen: int) -> FloatArray:
        """How much each token of a text [1, S] adds to the score of a class, less the mean of the others: [S].
        The score of an n-gram is shared equally by its occurrences and their tokens, so that all parts add up."""
        width, skipped = text.shape[1], max(0, int((text != 0).sum()) - self.last) if self.last else 0
        text = self._seen(text)
        hashes, complete = self._hashes(text)
        others = (self.scores.sum(1) - self.scores[:, chosen]) / max(1, self.scores.shape[1] - 1)
        found, counted = self.rows(text)
        norm = self._norms(np.nonzero(counted)[0], found[counted], 1)
        _, numbers, counts = np.unique(np.where(complete, hashes, -1)[:, 0], return_inverse=True, return_counts=True)
        occurrences = counts[numbers.reshape(complete[:, 0].shape)]  # an n-gram counts once, however often it occurs
        margins = (self.scores[:, chosen] - others)[hashes[:, 0]] * complete[:, 0] / (norm * occurrences)
        result = np.zeros(margins.shape[1])  # [U]
        for length in range(1, self.longest + 1):
            for offset in range(min(length, len(result))):
                result[offset:] += margins[length - 1, : len(result) - offset] / length
        if self.words:
            result = self._per_character(text, result)
        if self.spelling is not None:
            owners = np.repeat(np.arange(text.shape[1]), (self.spelling[text[0]] != 0).sum(1))
            result = np.bincount(owners, result, text.shape[1])
        return np.pad(result, (skipped, width - skipped - len(result))).astype(np.float32)

    def _hashes(self, text: IntArray) -> tuple[IntArray, BoolArray]:
        """The row [L, B, U] of each n-gram, and whether there is one that the row belongs to."""
        found, fingerprints, complete = hash_ngrams(self._units(text), self.longest, len(self.scores))
        if self.fingerprints is not None:
            complete &= unpack_fingerprints(self.fingerprints, found) == fingerprints
        return found, complete

    def _units(self, text: IntArray) -> IntArray:
        """The tokens, their characters or words."""
        text = self._seen(text)
        if self.spelling is None:
            return text
        characters = spell(text, self.spelling)
        return join_words(characters, number_words(characters)) if self.words else characters

    def _seen(self, text: IntArray) -> IntArray:
        """The tokens whose n-grams are scored."""
        text = _without_end_alone(text)
        return last_tokens(text, self.last) if self.last else text

    def _per_character(self, text: IntArray, of_words: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """What the words of a text [1, S] add, shared equally by their characters: [U]."""
        assert self.spelling is not None
        [numbers] = number_words(spell(text, self.spelling))
        counts = np.bincount(numbers, minlength=len(of_words) + 1)
        shares = np.concatenate((np.zeros(1), of_words)) / np.maximum(counts, 1)
        result: npt.NDArray[np.float64] = shares[numbers]
        return result

    def _norms(self, texts: IntArray, rows: IntArray, count: int) -> npt.NDArray[np.float64]:
        """The root of the sum of squared scales of each text's n-grams; 1 for a text without any."""
        squares = np.bincount(texts, self.scale[rows], count)
        return np.sqrt(np.where(squares > 0, squares, 1.0))


def _each_once(values: IntArray, known: BoolArray, above: int) -> tuple[IntArray, BoolArray]:
    """The known values [L, B, U] of each text in ascending order [B, R], and which entries count: each value once.
    All are below `above`."""
    lengths, texts, units = values.shape
    found = np.where(known, values, above).transpose(1, 0, 2)  # others come last
    found = found.reshape(texts, lengths * units)
    found.sort(1)
    new = np.ones_like(found, np.bool_)
    new[:, 1:] = found[:, 1:] != found[:, :-1]
    return np.minimum(found, above - 1), new & (found < above)


def _without_end_alone(text: IntArray) -> IntArray:
    """The texts [B, S], where `</s>` alone, which has no n-grams, is padding."""
    result: IntArray = np.where((text != 0).sum(1, keepdims=True) > 1, text, 0)
    return result
