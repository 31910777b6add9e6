"""The mean of several checkpoints' weights."""

from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from jumok.training.checkpoint import load_group


def average_checkpoints(directory: Path, steps: Sequence[int]) -> dict[str, Tensor] | None:
    """The mean weights of those of `steps` whose checkpoints exist and verify; None if there are fewer than two.
    Summed in float64, one checkpoint in memory at a time: the result does not depend on their order."""
    total: dict[str, Tensor] = {}
    found: dict[str, Tensor] = {}
    count = 0
    for step in sorted(steps):
        weights = load_group(directory, step, "model")
        if weights is None:
            continue
        count, found = count + 1, weights
        for name, weight in weights.items():
            total[name] = weight.double() if name not in total else total[name].add_(weight)
    if count < 2:
        return None
    return {name: (mean / count).to(found[name].dtype) for name, mean in total.items()}
