"""Plots of the paper's formulas, computed by the functions that the model itself uses."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from jumok.errors import ConfigError, require_at_least
from jumok.lens.plots.fonts import Lettering, OnMessage
from jumok.lens.plots.grid import LOOK_AHEAD, PADDING, Matrix, name_cells, new_figure, show_matrix
from jumok.model.masks import PAD, causal_mask, look_ahead_mask, padding_mask
from jumok.model.positions import sinusoids
from jumok.training.length import Length
from jumok.training.schedule import make_schedule

EXAMPLE = ("<s>", "I", "am", "a", "student")
PAPER_WARMUP = 4_000
_SEEN = "#6baed6"  # colour of a cell that may be attended to


def draw_positions(table: Matrix | None = None, *, length: int = 50, d_model: int = 128) -> Figure:
    """The positional encoding as a heat map, a row for each position. `table` [T, D] are positions of a model; without
    it, the paper's sinusoids of this length and width."""
    table = _table(table, length, d_model)
    figure = new_figure(9, 5)
    axes = figure.subplots()
    most = float(np.abs(table).max(initial=1.0))
    image = show_matrix(axes, table, cmap="RdBu", vmin=-most, vmax=most)
    axes.set(xlabel="dimension i of d_model", ylabel="position", title=f"{len(table)} × {table.shape[1]}")
    figure.colorbar(image, ax=axes, label="value")
    return figure


def draw_waves(
    table: Matrix | None = None, dimensions: Sequence[int] = (4,), *, length: int = 50, d_model: int = 128
) -> Figure:
    """Single dimensions of the positional encoding along the positions: columns of `draw_positions`."""
    table = _table(table, length, d_model)
    figure = new_figure(9, 3.5)
    axes = figure.subplots()
    for dimension in dimensions:
        if not 0 <= dimension < table.shape[1]:
            raise ConfigError(f"Dimension {dimension} is not among the {table.shape[1]}, counted from 0.")
        axes.plot(table[:, dimension], marker=".", label=f"dimension {dimension}")
    axes.set(xlabel="position", ylabel="value")
    axes.legend()
    return figure


def draw_products(table: Matrix | None = None, *, length: int = 50, d_model: int = 128) -> Figure:
    """The dot product of every position with every other: how alike two positions are."""
    table = _table(table, length, d_model)
    figure = new_figure(6.5, 5.5)
    axes = figure.subplots()
    image = show_matrix(axes, table @ table.T, cmap="viridis")
    axes.set(xlabel="position", ylabel="position")
    figure.colorbar(image, ax=axes, label="dot product")
    return figure


def _table(table: Matrix | None, length: int, d_model: int) -> Matrix:
    if table is not None:
        return table
    require_at_least(1, length=length)
    return sinusoids(length, d_model).numpy()


def draw_masks(tokens: Sequence[str] = EXAMPLE, *, padding: int = 2, on_message: OnMessage | None = None) -> Figure:
    """The three masks of a sentence that is padded with so many tokens: padding, look-ahead, and both. Coloured cells
    may be attended to."""
    require_at_least(0, padding=padding)
    require_at_least(1, tokens=len(tokens))
    ids = torch.tensor([[PAD + 1] * len(tokens) + [PAD] * padding])
    size = ids.shape[1]
    pads = ~padding_mask(ids)[0, 0].expand(size, size).numpy()
    later = ~causal_mask(size)[0, 0].numpy()
    both = ~look_ahead_mask(ids)[0, 0].numpy()
    lettering = Lettering(on_message)
    names = lettering.labels([*tokens, *["<pad>"] * padding], "tokens")
    side = 1.2 + 0.3 * size
    figure = new_figure(3 * side + 1, side + 1.7)
    panels = {
        "padding\n(encoder self-attention, cross-attention)": {PADDING: pads},
        "look-ahead\n(decoder, one sentence)": {LOOK_AHEAD: later},
        "both\n(decoder, a batch of sentences)": {PADDING: both & pads, LOOK_AHEAD: both & later},
    }
    all_axes = figure.subplots(1, 3, sharey=True)
    for axes, (title, hatched) in zip(all_axes, panels.items(), strict=True):
        show_matrix(axes, np.ones((size, size)), hatched, cmap=ListedColormap([_SEEN]))
        axes.set_title(title, fontsize=9)
        axes.set(xlabel="keys", ylabel="queries" if axes is all_axes[0] else "")
        name_cells(axes, names if axes is all_axes[0] else None, names)
    meanings = {"may be attended to": {"facecolor": _SEEN}} | {
        meaning: {"facecolor": "none", "edgecolor": "0.55", "linewidth": 0, "hatch": hatch}
        for meaning, hatch in (("padding: masked", PADDING), ("later token: masked", LOOK_AHEAD))
    }
    shown = [Patch(label=meaning, **style) for meaning, style in meanings.items()]
    figure.legend(handles=shown, loc="outside lower center", ncols=3, fontsize=9, handlelength=3, handleheight=1.5)
    return lettering.apply(figure)


def draw_schedule(
    d_models: Sequence[int] = (256, 512, 1024), *, warmups: Sequence[int] = (PAPER_WARMUP,), steps: int = 20_000
) -> Figure:
    """The paper's learning rate d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), a curve for each d_model and
    warm-up."""
    require_at_least(1, steps=steps)
    figure = new_figure(8, 4.5)
    axes = figure.subplots()
    taken = np.unique(np.linspace(1, steps, 1_000).astype(int))
    for d_model in d_models:
        for warmup in warmups:
            require_at_least(1, d_model=d_model, warmup=warmup)
            peak = (d_model * warmup) ** -0.5
            rate = make_schedule("inverse_sqrt", peak=peak, warmup=warmup, length=Length([(0, steps)], warmup))
            axes.plot(taken, [rate(int(step)) for step in taken], label=f"d_model={d_model}, warm-up {warmup:,}")
    axes.set(xlabel="step", ylabel="learning rate", ylim=(0, None), xlim=(0, steps))
    axes.legend()
    return figure
