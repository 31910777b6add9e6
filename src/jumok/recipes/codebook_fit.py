"""The codebook that a training of image tokens begins with: k-means over the principal components of patches; and new
places for codes that are no longer used.

A codebook of random vectors learns slowly, and many of its codes never come near any patch. Begun this way every code
is used from the first step on, and pictures of few kinds of patches are drawn exactly before any training.
Axes: M patches, P values of a patch, D width of a code, K codes.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from jumok.model.image_tokens import PictureTokenizer
from jumok.seeds import bit_stream

Floats = npt.NDArray[np.float32]

MOST_PATCHES = 20_000  # different ones that k-means sees
ROUNDS = 12
_SPREAD = 1e-3  # between codes that would be equal, because there are fewer different patches than codes
_WELL_DRAWN = 1e-3  # squared distance to a code, as a share of the variance: such a patch needs no other code


def fit_codebook(tokenizer: PictureTokenizer, patches: Floats, seed: int) -> dict[str, Tensor]:
    """Weights for a new tokenizer of pictures, from patches [M, P]: the projections into and out of the width of a code
    are the principal components of the patches, and the codes their k-means."""
    different, counts = _different(patches, seed)
    mean: Floats = np.average(different, axis=0, weights=counts).astype(np.float32)
    width, values = tokenizer.into.weight.shape
    kept = min(width, values)
    centred = (different - mean).astype(np.float64)
    _, directions = np.linalg.eigh((centred.T * counts) @ centred)
    into = np.zeros((width, values), np.float32)
    into[:kept] = directions[:, ::-1][:, :kept].T  # the largest first
    projected = ((different - mean) @ into.T).astype(np.float32)
    centres = k_means(projected, counts, len(tokenizer.codebook), seed)
    weights = {
        "into.weight": into,
        "into.bias": -into @ mean,
        "codebook": centres,
        "out.weight": np.ascontiguousarray(into.T),
        "out.bias": mean,
    }
    return {name: torch.from_numpy(np.ascontiguousarray(array, np.float32)) for name, array in weights.items()}


def _different(patches: Floats, seed: int) -> tuple[Floats, Floats]:
    """Different patches, and a weight for each: the square root of how often it occurs, because the background of
    drawings is most of them and needs one code only."""
    found, counts = np.unique(patches, axis=0, return_counts=True)
    if len(found) > MOST_PATCHES:
        chosen = np.argsort(bit_stream(seed, "patches").random_raw(len(found)), kind="stable")[:MOST_PATCHES]
        found, counts = found[chosen], counts[chosen]
    return found, np.sqrt(counts).astype(np.float32)


def k_means(points: Floats, weights: Floats, count: int, seed: int) -> Floats:
    """`count` centres [K, D] of weighted points [M, D], by Lloyd's algorithm from k-means++."""
    centres = _first_centres(points, weights, count, seed)
    for _ in range(ROUNDS):
        distances = (centres**2).sum(1) - 2 * points @ centres.T
        nearest = distances.argmin(1)
        total = np.bincount(nearest, weights, minlength=len(centres))
        used = total > 0
        sums = np.stack([np.bincount(nearest, weights * axis, minlength=len(centres)) for axis in points.T], 1)
        centres[used] = (sums[used] / total[used, None]).astype(np.float32)
    return centres


def _first_centres(points: Floats, weights: Floats, count: int, seed: int) -> Floats:
    """k-means++: each next centre is a random point, with a probability by its squared distance to those before."""
    far = np.full(len(points), np.inf, np.float32)
    chosen = _spread_out(points, weights, far, count, 1e-9, bit_stream(seed, "centres").random_raw(2 * count))
    centres = np.empty((count, points.shape[1]), np.float32)
    centres[: len(chosen)] = points[chosen]
    for number in range(len(chosen), count):  # every point is a centre already
        spread = np.random.Generator(bit_stream(seed, "spread", number)).standard_normal(points.shape[1])
        centres[number] = centres[number - 1] + _SPREAD * spread
    return centres


def _spread_out(
    points: Floats, weights: Floats, distances: Floats, most: int, near: float, bits: npt.NDArray[np.uint64]
) -> list[int]:
    """Up to `most` of the points, one after the other at random, with a probability by the weight and the squared
    distance [M] to what was there before; none that is as `near` as that."""
    numbers = (bits >> np.uint64(11)) * 2.0**-53
    chosen: list[int] = []
    chances = weights if np.isinf(distances).all() else weights * np.where(distances > near, distances, 0)
    while len(chosen) < most:
        reached = np.cumsum(chances, dtype=np.float64)
        if reached[-1] <= 0:
            break
        found = np.searchsorted(reached, numbers[len(chosen)] * reached[-1], side="right")
        chosen.append(min(int(found), len(points) - 1))
        distances = np.minimum(distances, ((points - points[chosen[-1]]) ** 2).sum(1))
        chances = weights * np.where(distances > near, distances, 0)
    return chosen


def revived_codes(codebook: Floats, states: Floats, seed: int) -> Floats | None:
    """The codebook [K, D], in which codes that are nearest to none of the states [M, D] have moved to states that are
    far from every code; None if no code has to move, or no state needs another code."""
    distances = (codebook**2).sum(1) - 2 * states @ codebook.T
    nearest = distances.argmin(1)
    unused = np.setdiff1d(np.arange(len(codebook)), nearest)
    squared = ((states - codebook[nearest]) ** 2).sum(1)
    near = _WELL_DRAWN * float(states.var(0).sum())
    bits = bit_stream(seed, "unused codes").random_raw(len(unused))
    chosen = _spread_out(states, np.ones(len(states), np.float32), squared, len(unused), near, bits)
    if not chosen:
        return None
    moved = codebook.copy()
    moved[unused[: len(chosen)]] = states[chosen]
    return moved
