"""Pictures: the attention of a translation to its source, and the confusion matrix of a classifier."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib import font_manager, rc_context
from matplotlib.figure import Figure  # not pyplot: it would look for a screen
from matplotlib.ft2font import FT2Font

from jumok.engines.batching import FloatMatrix

DEFAULT_FONT = "DejaVu Sans"  # comes with matplotlib
MOST_CELLS = 40  # in a row of a confusion matrix; larger ones have no numbers, and not all classes are named


def draw_attention(weights: FloatMatrix, source: Sequence[str], target: Sequence[str], path: Path) -> list[str]:
    """Draw weights [T, S] to a PNG: a row for each target token (query), a column for each source token (key). Where no
    installed font has the letters of a side, its tokens are numbered; the lines returned explain the numbers."""
    legend: list[str] = []
    fonts = [DEFAULT_FONT]  # each is used for the letters that those before it lack
    names = []
    for side, tokens in (("source", source), ("output", target)):
        found = _fonts_for("".join(tokens))
        fonts += found or []
        names.append(list(tokens) if found is not None else [str(number) for number in range(1, len(tokens) + 1)])
        if found is None:
            numbered = "  ".join(f"{number} {token}" for number, token in enumerate(tokens, 1))
            legend.append(f"No installed font has the letters of the {side}, so its tokens are numbered: {numbered}")
    with rc_context({"font.family": fonts}):
        _draw(weights, names[0], names[1], path)
    return legend


def _draw(weights: FloatMatrix, columns: Sequence[str], rows: Sequence[str], path: Path) -> None:
    figure = Figure(figsize=(2.5 + 0.45 * len(columns), 2 + 0.4 * len(rows)), layout="constrained")
    axes = figure.subplots()
    picture = axes.imshow(weights, cmap="viridis", vmin=0, aspect="auto")
    axes.set_xticks(range(len(columns)), columns, rotation=60, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(rows)), rows, parse_math=False)
    axes.set(xlabel="source tokens (keys)", ylabel="output tokens (queries)")
    figure.colorbar(picture, ax=axes, label="attention weight; every row sums to 1")
    figure.savefig(path, dpi=150)


def draw_confusion(table: npt.NDArray[np.int64], classes: Sequence[str], path: Path) -> None:
    """Draw a confusion matrix [C, C], true classes × predictions, to a file: counts, coloured by share of the row."""
    shares = table / np.maximum(table.sum(1, keepdims=True), 1)
    fonts = [DEFAULT_FONT, *(_fonts_for("".join(classes)) or [])]
    with rc_context({"font.family": fonts}):
        shown = min(len(classes), MOST_CELLS)
        figure = Figure(figsize=(3 + 0.7 * shown, 2.5 + 0.6 * shown), layout="constrained")
        axes = figure.subplots()
        picture = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1)
        for row, column in np.ndindex(*table.shape) if len(classes) <= MOST_CELLS else ():
            ink = "white" if shares[row, column] > 0.6 else "black"
            axes.text(column, row, f"{table[row, column]:,}", ha="center", va="center", color=ink)
        named = range(0, len(classes), -(-len(classes) // MOST_CELLS))
        names = [classes[number] for number in named]
        axes.set_xticks(named, names, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
        axes.set_yticks(named, names, parse_math=False)
        axes.set(xlabel="predicted class", ylabel="true class")
        figure.colorbar(picture, ax=axes, label="share of the true class")
        figure.savefig(path, dpi=150)


def _fonts_for(text: str) -> list[str] | None:
    """An installed font with the letters that the default one lacks, if any; None if there is no such font."""
    fonts = {entry.name: entry.fname for entry in font_manager.fontManager.ttflist if "Last Resort" not in entry.name}
    missing = {ord(letter) for letter in text if not letter.isspace()} - _letters(fonts[DEFAULT_FONT])
    if not missing:
        return []
    return next(([name] for name, file in sorted(fonts.items()) if missing <= _letters(file)), None)


def _letters(file: str) -> set[int]:
    try:
        return set(FT2Font(file).get_charmap())
    except (OSError, RuntimeError):  # a missing or broken font file is skipped
        return set()
