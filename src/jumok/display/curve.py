"""A learning curve as one line of text."""

import os
import sys
from collections.abc import Sequence

BLOCKS, ASCII_BLOCKS = "▁▂▃▄▅▆▇█", "_.-:=+*#"  # from low to high


def can_draw_blocks() -> bool:
    """Whether the terminal is likely to have blocks: not the text console of Linux, nor a locale other than UTF-8.
    (The encoding of standard output does not tell: the commands always write UTF-8.)"""
    locale = os.environ.get("LC_ALL") or os.environ.get("LC_CTYPE") or os.environ.get("LANG") or "UTF-8"
    has_letters = "utf" in locale.lower() or sys.platform in ("win32", "darwin")
    return has_letters and os.environ.get("TERM") not in ("linux", "dumb")


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
