"""The codebook that a training of image tokens begins with: k-means over the principal components of patches.

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
    numbers = (bit_stream(seed, "centres").random_raw(2 * count) >> np.uint64(11)) * 2.0**-53
    distances = np.full(len(points), np.inf, np.float32)
    centres = np.empty((count, points.shape[1]), np.float32)
    chances = weights
    for number in range(count):
        reached = np.cumsum(chances, dtype=np.float64)
        if reached[-1] <= 0:  # every point is a centre already
            spread = np.random.Generator(bit_stream(seed, "spread", number)).standard_normal(points.shape[1])
            centres[number] = centres[number - 1] + _SPREAD * spread
            continue
        chosen = min(int(np.searchsorted(reached, numbers[number] * reached[-1], side="right")), len(points) - 1)
        centres[number] = points[chosen]
        distances = np.minimum(distances, ((points - points[chosen]) ** 2).sum(1))
        chances = weights * np.where(distances > 1e-9, distances, 0)
    return centres
