"""Plots of results: the curves of trainings, and the confusion matrix of a classifier."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from jumok.errors import InputError, require_choice
from jumok.lens.plots.fonts import Lettering, OnMessage
from jumok.lens.plots.grid import name_cells, new_figure, show_matrix, write_numbers
from jumok.training.records import read_log

MOST_CELLS = 40  # in a row of a confusion matrix; larger ones have no numbers, and not all classes are named
ALONG = {"steps": ("step", 1.0), "tokens": ("tokens", 1.0), "minutes": ("seconds", 1 / 60)}  # log field and unit
# Panels of a training: title, and (field, event, line style) of its curves. Those that no run has are left out.
PANELS: dict[str, list[tuple[str, str, str]]] = {
    "loss (dashed: validation)": [("loss", "train", "-"), ("loss", "valid", "--")],
    "learning rate": [("lr", "train", "-")],
    "BLEU": [("bleu", "valid", "-")],
    "chrF": [("chrf", "valid", "-")],
    "accuracy": [("accuracy", "valid", "-")],
    "perplexity (validation)": [("perplexity", "valid", "-")],
}


def draw_training(runs: Sequence[str | Path], *, along: str = "steps", on_message: OnMessage | None = None) -> Figure:
    """The curves of one or several run directories: loss, learning rate and the scores of the validations, along
    "steps", "tokens" or "minutes"."""
    require_choice("along", along, ALONG)
    logs = [_log(Path(run)) for run in runs]
    if not logs:
        raise InputError("Give at least one run directory.")
    lettering = Lettering(on_message)
    names = lettering.labels(_names(runs), "runs")
    panels = [
        title for title in PANELS if any(_curve(log, *part[:2], along)[0] for log in logs for part in PANELS[title])
    ]
    figure = new_figure(8, 1 + 2.4 * len(panels))
    for axes, title in zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels, strict=True):
        for number, (log, name) in enumerate(zip(logs, names, strict=True)):
            for field, event, style in PANELS[title]:
                marker = "." if event == "valid" else ""
                curve = _curve(log, field, event, along)
                label = name if style == "-" else None
                axes.plot(*curve, linestyle=style, marker=marker, color=f"C{number}", label=label)
        axes.set_ylabel(title)
        axes.grid(color="0.9")
    figure.axes[-1].set_xlabel(along)
    for text in figure.axes[0].legend().get_texts():
        text.set_parse_math(False)
    return lettering.apply(figure)


def draw_confusion(
    table: npt.NDArray[np.int64], classes: Sequence[str], *, on_message: OnMessage | None = None
) -> Figure:
    """A confusion matrix [C, C], true classes × predictions: counts, coloured by share of the row."""
    shares = table / np.maximum(table.sum(1, keepdims=True), 1)
    lettering = Lettering(on_message)
    names = lettering.labels(classes, "classes")
    shown = min(len(classes), MOST_CELLS)
    figure = new_figure(3 + 0.7 * shown, 2.5 + 0.6 * shown)
    axes = figure.subplots()
    image = show_matrix(axes, shares, cmap="Blues", vmin=0, vmax=1)
    if len(classes) <= MOST_CELLS:
        write_numbers(axes, [[f"{count:,}" for count in row] for row in table], shares > 0.6, 10)
    name_cells(axes, names, names)
    axes.set(xlabel="predicted class", ylabel="true class")
    figure.colorbar(image, ax=axes, label="share of the true class")
    return lettering.apply(figure)


def _log(run: Path) -> list[dict[str, Any]]:
    if not (run / "run.json").exists():
        raise InputError(f"{run}: is not the run directory of a training.")
    log = read_log(run)
    if not any(entry["event"] == "train" for entry in log):
        raise InputError(f"{run}: its log has no losses yet. Wait until the training has logged some steps.")
    return log


def _names(runs: Sequence[str | Path]) -> list[str]:
    """The names of the directories, or their paths where names are equal."""
    names = [Path(run).resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run) for run in runs]


def _curve(log: list[dict[str, Any]], field: str, event: str, along: str) -> tuple[list[float], list[float]]:
    """Where the values of a field were logged, and the values."""
    name, unit = ALONG[along]
    found = [entry for entry in log if entry["event"] == event and isinstance(entry.get(field), int | float)]
    return [entry[name] * unit for entry in found], [float(entry[field]) for entry in found]
