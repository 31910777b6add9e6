"""Lexical shortlists: the output layer, over half the work of a small decoder, scores only likely translations.

Those in a lexicon learned from the training pairs and the most frequent tokens are nearly always enough.
A batch shares the shortlists of all its sources, so output can depend on other lines of the batch: hence it is opt-in.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.tokenizer import FIRST_PIECE, Tokenizer

ROUNDS = 4  # of expectation maximisation; more hardly change the order of the best
MOST_ENTRIES = 8_000_000  # source tokens × target tokens of all pairs that are read: half a gigabyte

PairArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lexicon:
    """Translations of source tokens, sorted by source, the most probable target first."""

    size: int  # of the vocabulary
    sources: PairArray
    targets: PairArray
    target_counts: PairArray  # [size]: number of pairs with the token on the target side

    def shortlist(self, tokenizer: Tokenizer, candidates: int, frequent: int) -> bytes:
        """CTranslate2's vmap file: a source token, a tab, its candidates; a line without a source token is for all."""
        tokens = tokenizer.pieces(range(self.size))
        starts = np.searchsorted(self.sources, np.arange(self.size + 1))
        always = [*range(3, FIRST_PIECE), *np.argsort(-self.target_counts, kind="stable")[:frequent].tolist()]
        lines = ["\t" + " ".join(tokens[number] for number in dict.fromkeys(always))]
        for source in range(FIRST_PIECE, self.size):
            best = self.targets[starts[source] : starts[source + 1]][:candidates]
            own = [source] if self.target_counts[source] else []  # names and numbers are copied
            if chosen := dict.fromkeys([*own, *best.tolist()]):
                lines.append(tokens[source] + "\t" + " ".join(tokens[number] for number in chosen))
        return ("\n".join(lines) + "\n").encode()


def learn_lexicon(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], size: int) -> Lexicon:
    """Learn a lexicon from pairs of ids below `size` with IBM Model 1 (Brown et al., 1993). Unlike plain co-occurrence,
    it explains away tokens that merely occur together. A token counts once in a sentence."""
    codes, occurrences, target_counts = _entries(pairs, size)
    kinds, kind_of = np.unique(codes, return_inverse=True)
    sources, targets = np.divmod(kinds, size)
    probability = np.ones(len(kinds))
    for _ in range(ROUNDS):
        share = probability[kind_of]
        share /= np.bincount(occurrences, share)[occurrences]  # the source tokens of the pair share each target token
        expected = np.bincount(kind_of, share, len(kinds))
        probability = expected / np.bincount(sources, expected, size)[sources]
    order = np.lexsort((-probability, sources))
    return Lexicon(size, sources[order], targets[order], target_counts)


def _entries(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], size: int) -> tuple[PairArray, PairArray, PairArray]:
    """Every pair of source and target token as source * size + target, and the number of the target occurrence."""
    codes, occurrences = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    target_counts = np.zeros(size, np.int64)
    seen = entries = 0
    for source, target in pairs:
        sources, targets = np.unique(np.asarray(source, np.int64)), np.unique(np.asarray(target, np.int64))
        codes.append((sources[:, None] * size + targets).ravel())
        occurrences.append(np.tile(seen + np.arange(len(targets)), len(sources)))
        target_counts[targets] += 1
        seen += len(targets)
        entries += len(codes[-1])
        if entries > MOST_ENTRIES:
            break
    return np.concatenate(codes), np.concatenate(occurrences), target_counts
