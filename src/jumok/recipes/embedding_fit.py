"""Token vectors before the first update: tokens that occur in the same examples begin with similar vectors.

In pairs of sentences these are translations of each other, too, so that attention from target to source finds something
from the beginning. Fitted vectors are the singular vectors of positive pointwise mutual information (Levy and Goldberg,
2014), projected at random and mixed with random ones, so that no two tokens begin alike. Axes: V vocabulary, D d_model.
"""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import torch
from jaxtyping import Float
from torch import Tensor

from jumok.seeds import derive_seed

Ids = npt.NDArray[np.int64]

MOST_FITTED = 10_000  # tokens of a vocabulary that vectors are fitted to unasked: that needs 0.4 GB
MOST_TOKENS = 64  # different ones of an example that are looked at: the pairs of them are counted
PAIRS_AT_A_TIME = 1 << 20
SHARE = 0.7  # of the fitted vector in the mixture; its square and that of the random vector's share add up to 1
ITERATIONS = 4  # of the power method inside the decomposition
NOISE = 1e-2  # of the largest value: what is smaller has no direction of its own
_TINY = 1e-12


def cooccurrence_embeddings(
    examples: Iterable[Ids], vocabulary: int, width: int, seed: int
) -> Float[Tensor, "{vocabulary} {width}"]:
    """Vectors of length 1 for every token of the vocabulary, from the token ids of each example. A token that occurs in
    none gets a random one. Always the same for a seed; needs 4·V² bytes of memory."""
    information = _mutual_information(_count_together(examples, vocabulary))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "embeddings"))
        vectors, values, _ = torch.svd_lowrank(information, q=min(width, vocabulary), niter=ITERATIONS)
        # Singular vectors of equal values can be rotated into each other, and rounding decides how they are. Projected
        # by themselves they all give the same. It also spreads the largest value over all numbers of a vector.
        values = torch.where(values > NOISE * values[0], values, 0.0)  # others may be mere rounding
        fitted = (vectors * values.sqrt()) @ (vectors.T @ torch.randn(vocabulary, width))
        chance = torch.nn.functional.normalize(torch.randn(vocabulary, width))
    # A token of every example has a vector near zero, and only rounding would give it a direction.
    shortest = max(_TINY, NOISE * float(fitted.norm(dim=1).max()))
    fitted = torch.nn.functional.normalize(fitted, eps=shortest)
    return torch.nn.functional.normalize(SHARE * fitted + (1 - SHARE**2) ** 0.5 * chance)


def _count_together(examples: Iterable[Ids], vocabulary: int) -> Float[Tensor, "V V"]:
    """In how many examples two tokens occur together. A token occurs together with itself, too: so the rows of a word
    and of its translation are about equal, and not opposite in just these two places."""
    counts = torch.zeros(vocabulary * vocabulary)
    waiting: list[Ids] = []
    size = 0
    for ids in examples:
        tokens = np.unique(ids)
        tokens = tokens[:: -(-len(tokens) // MOST_TOKENS) or 1]
        waiting.append((tokens[:, None] * vocabulary + tokens).ravel())
        size += waiting[-1].size
        if size >= PAIRS_AT_A_TIME:
            _add(counts, waiting)
            size = 0
    _add(counts, waiting)
    return counts.view(vocabulary, vocabulary)


def _add(counts: Tensor, places: list[Ids]) -> None:
    """Count the places, and forget them."""
    if places:
        found = torch.from_numpy(np.concatenate(places))
        counts.index_add_(0, found, torch.ones(len(found)))
        places.clear()


def _mutual_information(counts: Float[Tensor, "V V"]) -> Float[Tensor, "V V"]:
    """How many times as often as by chance two tokens occur together, as a logarithm; 0 if not more often.
    Written over the counts, to need no second matrix of that size."""
    each = counts.sum(0)
    expected = each.clamp_min(1)
    return counts.mul_(each.sum()).div_(expected[:, None]).div_(expected).clamp_min_(1).log_()
