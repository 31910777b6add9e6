"""Which pieces may translate which: a short list for each source piece, so that an engine need not weigh all of them.

The output layer is more than half of the work of a small decoder. From the pairs a model was trained on it can be told
which target pieces come up with a source piece; together with the most frequent ones they are nearly always enough. A
batch shares the lists of all its sources, so neighbours can influence the output: whoever uses it must ask for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from jumok.tokenizer import FIRST_PIECE, Tokenizer

CANDIDATES = 25  # for each source piece
FREQUENT = 150  # always
PAIRS_AT_A_TIME = 20_000
MOST_PAIRS = 300_000  # more change the lists hardly at all

Ids = npt.NDArray[np.int64]


def count_together(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], size: int) -> tuple[Ids, Ids, Ids, Ids]:
    """Codes source · size + target of pieces that stand in the same pair, how often, and how often each stands alone.

    Returns (codes, counts, source counts [size], target counts [size]); a piece counts once in a sentence.
    """
    total: dict[str, Ids] = {"codes": np.empty(0, np.int64), "counts": np.empty(0, np.int64)}
    alone = np.zeros((2, size), np.int64)
    waiting: list[Ids] = []

    def settle() -> None:
        codes = np.concatenate([total["codes"], *waiting])
        weights = np.concatenate([total["counts"], np.ones(sum(map(len, waiting)), np.int64)])
        found, places = np.unique(codes, return_inverse=True)
        total["codes"], total["counts"] = found, np.bincount(places, weights, len(found)).astype(np.int64)
        waiting.clear()

    for number, (source, target) in enumerate(pairs, 1):
        sources, targets = np.unique(np.asarray(source, np.int64)), np.unique(np.asarray(target, np.int64))
        alone[0, sources] += 1
        alone[1, targets] += 1
        waiting.append((sources[:, None] * size + targets).ravel())
        if number % PAIRS_AT_A_TIME == 0:
            settle()
        if number == MOST_PAIRS:
            break
    settle()
    return total["codes"], total["counts"], alone[0], alone[1]


def make_shortlist(pairs: Iterable[tuple[Sequence[int], Sequence[int]]], tokenizer: Tokenizer) -> bytes:
    """CTranslate2's vmap file: a source piece, a tab, its candidates; a line without a source piece is for all."""
    size = tokenizer.size
    codes, counts, source_counts, target_counts = count_together(pairs, size)
    sources, targets = codes // size, codes % size
    # Dice: how much of both pieces' occurrences is together. Frequent pieces are listed anyway.
    together = 2 * counts / (source_counts[sources] + target_counts[targets])
    order = np.lexsort((-together, sources))
    sources, targets = sources[order], targets[order]
    starts = np.searchsorted(sources, np.arange(size + 1))
    pieces = tokenizer.pieces(range(size))
    always = [*range(3, FIRST_PIECE), *np.argsort(-target_counts, kind="stable")[:FREQUENT].tolist()]
    lines = ["\t" + " ".join(pieces[number] for number in dict.fromkeys(always))]
    for source in range(FIRST_PIECE, size):
        best = targets[starts[source] : starts[source + 1]][:CANDIDATES]
        own = [source] if target_counts[source] else []  # names and numbers are copied
        if len(best) or own:
            lines.append(pieces[source] + "\t" + " ".join(pieces[number] for number in dict.fromkeys([*own, *best])))
    return ("\n".join(lines) + "\n").encode()
