"""A learning curve as one line of text."""

from collections.abc import Sequence

BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-:=+*#"  # from low to high


def draw_curve(values: Sequence[float], width: int, *, ascii_only: bool = False) -> str:
    """The values from left to right as blocks of different heights, at most `width` of them: if there are more values,
    each block is the mean of several. The lowest block is the smallest value, the highest the largest."""
    count = min(len(values), width)
    means = [_mean(values[i * len(values) // count : (i + 1) * len(values) // count]) for i in range(count)]
    if not means:
        return ""
    blocks = ASCII_BLOCKS if ascii_only else BLOCKS
    low, high = min(means), max(means)
    scale = (len(blocks) - 1) / (high - low) if high > low else 0.0
    return "".join(blocks[round((mean - low) * scale)] for mean in means)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
