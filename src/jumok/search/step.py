"""The protocol between a search and a model: ids and a cache in, log-probabilities and a cache out.

Rows are laid out sentence-major: row = sentence * hypotheses + hypothesis, with as many hypotheses for every sentence.
Shape letters: N rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeAlias, TypeVar

from torch import Tensor


class Cache(Protocol):
    """What a model remembers of the rows so far. Search says one word to it and never looks inside."""

    def reorder(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        """The cache whose row n continues row `rows[n]` of this one.

        `sentences` are those that stay when some have left the batch (None: all stay), so that what is kept once a
        sentence is touched only then.
        """
        ...


CacheT = TypeVar("CacheT", bound=Cache)

# (ids [N, 1], cache) → (log-probabilities of the token after them [N, V], cache).
# The first call has one row a sentence and holds <s>. Always one token a call: a forced prefix is a constraint like
# any other, so sentences with prefixes of different lengths share a batch. The log-probabilities are float32 or float64
# and belong to the search, which writes into them.
Step: TypeAlias = Callable[[Tensor, CacheT], tuple[Tensor, CacheT]]
