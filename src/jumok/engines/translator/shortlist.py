"""Which pieces may translate which: a short list for each source piece, so that an engine need not weigh all of them.

The output layer is more than half of the work of a small decoder. From the pairs a model was trained on it can be told
which target pieces a source piece stands for; together with the most frequent ones they are nearly always enough. A
batch shares the lists of all its sources, so neighbours can influence the output: whoever uses it must ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jumok.tokenizer import FIRST_PIECE, Tokenizer

ROUNDS = 4  # of expectation and maximisation; more change the order of the best hardly at all
MOST_ENTRIES = 8_000_000  # source pieces × target pieces of all pairs that are looked at: half a gigabyte

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Lexicon:
    """Source pieces and what they stand for: sorted by source, the most probable target first."""

    size: int  # of the vocabulary
    sources: Ids
    targets: Ids
    target_counts: Ids  # [size]: in how many pairs a piece stands on the target side

    def shortlist(self, tokenizer: Tokenizer, candidates: int, frequent: int) -> bytes:
        """CTranslate2's vmap file: a source piece, a tab, its candidates; a line without a source piece is for all."""
        pieces = tokenizer.pieces(range(self.size))
        starts = np.searchsorted(self.sources, np.arange(self.size + 1))
        always = [*range(3, FIRST_PIECE), *np.argsort(-self.target_counts, kind="stable")[:frequent].tolist()]
        lines = ["\t" + " ".join(pieces[number] for number in dict.fromkeys(always))]
        for source in range(FIRST_PIECE, self.size):
            best = self.targets[starts[source] : starts[source + 1]][:candidates]
            own = [source] if self.target_counts[source] else []  # names and numbers are copied
            if chosen := dict.fromkeys([*own, *best.tolist()]):
                lines.append(pieces[source] + "\t" + " ".join(pieces[number] for number in chosen))
        return ("\n".join(lines) + "\n").encode()


def learn_lexicon(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], size: int) -> Lexicon:
    """Learns from pairs of ids below `size` by IBM's first model of translation (Brown et al., 1993).

    That a piece only stands beside another in many pairs is explained away by the one that it really stands for. A
    piece counts once in a sentence.
    """
    codes, words, target_counts = _entries(pairs, size)
    kinds, kind_of = np.unique(codes, return_inverse=True)
    sources, targets = np.divmod(kinds, size)
    probability = np.ones(len(kinds))
    for _ in range(ROUNDS):
        share = probability[kind_of]
        share /= np.bincount(words, share)[words]  # which of the pair's source pieces each target word comes from
        expected = np.bincount(kind_of, share, len(kinds))
        probability = expected / np.bincount(sources, expected, size)[sources]
    order = np.lexsort((-probability, sources))
    return Lexicon(size, sources[order], targets[order], target_counts)


def _entries(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], size: int) -> tuple[Ids, Ids, Ids]:
    """Every source piece with every target piece of a pair: source · size + target, and which target word it is."""
    codes, words = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    target_counts = np.zeros(size, np.int64)
    seen = entries = 0
    for source, target in pairs:
        sources, targets = np.unique(np.asarray(source, np.int64)), np.unique(np.asarray(target, np.int64))
        codes.append((sources[:, None] * size + targets).ravel())
        words.append(np.tile(seen + np.arange(len(targets)), len(sources)))
        target_counts[targets] += 1
        seen += len(targets)
        entries += len(codes[-1])
        if entries > MOST_ENTRIES:
            break
    return np.concatenate(codes), np.concatenate(words), target_counts
