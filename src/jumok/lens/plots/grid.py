"""What all plots share: figures without pyplot (it would look for a screen), matrices with named rows and columns,
hatched cells, and writing a figure to a file."""

from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from jumok.files import REAL_FILES, replace_file_durably
from jumok.lens.plots.formats import require_format

Matrix = npt.NDArray[Any]
DPI = 150
MOST_NAMES = 100  # along an axis; of more rows or columns not all are named
LARGEST = 30.0  # inches, of a side of a figure
PADDING, LOOK_AHEAD = "....", "////"  # hatches: a key that is padding, a key that comes later
_HATCHED = "0.55"  # grey of the hatches
# The same figure gives the same bytes: no dates, and no random names inside of an SVG.
_METADATA = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of that size in inches, within bounds."""
    return Figure(figsize=(min(width, LARGEST), min(height, LARGEST)), layout="constrained")


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure to a file; its ending, .png, .svg or .pdf, is the format."""
    path = Path(path)
    require_format(path)
    ending = path.suffix.lower()
    written = BytesIO()
    with rc_context({"svg.hashsalt": "jumok"}):
        figure.savefig(written, format=ending[1:], dpi=DPI, metadata=_METADATA[ending])
    replace_file_durably(REAL_FILES, path, written.getvalue())


def show_matrix(axes: Axes, values: Matrix, hatched: Mapping[str, Matrix] | None = None, **style: Any) -> Any:
    """Draw a matrix [rows, columns] as coloured cells. `hatched` says which cells get which hatch, and no colour."""
    hidden = np.any(list(hatched.values()), axis=0) if hatched else False
    image = axes.imshow(np.ma.masked_array(values, hidden), aspect="auto", interpolation="nearest", **style)
    for hatch, cells in (hatched or {}).items():
        _hatch(axes, cells, hatch)
    return image


def _hatch(axes: Axes, cells: Matrix, hatch: str) -> None:
    """Hatch the cells that are True, in one patch."""
    square = Outline.unit_rectangle()
    corners = np.asarray(square.vertices) - 0.5
    squares = [Outline(corners + place, square.codes) for place in np.argwhere(cells)[:, ::-1]]
    if squares:
        outline = Outline.make_compound_path(*squares)
        axes.add_patch(PathPatch(outline, facecolor="none", edgecolor=_HATCHED, hatch=hatch, linewidth=0))


def name_cells(axes: Axes, rows: Sequence[str] | None, columns: Sequence[str] | None, size: float = 10) -> None:
    """Write the names of rows and columns at the axes; of very many, every second, third …"""
    if columns is not None:
        shown = _named(columns)
        upright: dict[str, Any] = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
        axes.set_xticks(shown, [columns[number] for number in shown], fontsize=size, parse_math=False, **upright)
    if rows is not None:
        shown = _named(rows)
        axes.set_yticks(shown, [rows[number] for number in shown], fontsize=size, parse_math=False)


def write_numbers(axes: Axes, texts: Sequence[Sequence[str]], dark: Matrix, size: float = 8) -> None:
    """Write a text into every cell, white where the cell is `dark`."""
    for row, column in np.ndindex(*dark.shape):
        ink = "white" if dark[row, column] else "black"
        axes.text(column, row, texts[row][column], ha="center", va="center", color=ink, fontsize=size)


def _named(names: Sequence[str]) -> range:
    return range(0, len(names), max(1, -(-len(names) // MOST_NAMES)))
