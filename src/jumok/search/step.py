"""The protocol between a search and a model: ids and a cache in, log-probabilities and a cache out.
Each sentence has equally many rows: row = sentence * hypotheses + hypothesis. Shape letters: N rows, V vocabulary."""

from collections.abc import Callable
from typing import Protocol, Self, TypeAlias, TypeVar

from torch import Tensor


class Cache(Protocol):
    """What a model keeps of the tokens so far. A search only reorders its rows and never looks inside."""

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        """The cache whose row n continues row `rows[n]` of this one. `sentences` are the indices of those that stay
        when some leave the batch (None: all stay), so that what is kept once a sentence is copied only then."""


CacheT = TypeVar("CacheT", bound=Cache)

# (ids [N, 1], cache) → (log-probabilities of the next token [N, V], cache).
# The log-probabilities are float32 or float64 and belong to the search, which writes into them.
Step: TypeAlias = Callable[[Tensor, CacheT], tuple[Tensor, CacheT]]

# (ids [N, 1 + P], cache) → (log-probabilities [N, P] of all but the first of them, cache).
# Feeds all ids but the last, in one forward pass: the <s> and the forced prefix that all sentences have before the
# first step, one row a sentence. Where sentences have prefixes of different lengths, the rest of the longer ones is a
# constraint like any other, so that they can share a batch.
Prefill: TypeAlias = Callable[[Tensor, CacheT], tuple[Tensor, CacheT]]
