"""Plots of results: the curves of trainings, and the confusion matrix of a classifier."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from jumok.errors import InputError, require_choice
from jumok.lens.plots.fonts import Lettering, OnMessage
from jumok.lens.plots.grid import name_cells, new_figure, show_matrix, write_numbers
from jumok.training.records import read_log

MOST_CELLS = 40  # in a row of a confusion matrix; larger ones have no numbers, and not all classes are named
ALONG = {"steps": ("step", 1.0), "tokens": ("tokens", 1.0), "minutes": ("seconds", 1 / 60)}  # log field and unit
# Of a training: the label of each panel and the field of the log it shows. Those that no run has are left out.
PANELS = {
    "loss": "loss",
    "learning rate": "lr",
    "BLEU": "bleu",
    "chrF": "chrf",
    "accuracy": "accuracy",
    "perplexity": "perplexity",
}
_LINES = {"train": ("-", ""), "valid": ("--", "."), "averaged": ("", "x")}  # line style and marker
_MEANINGS = {"train": "line: training", "valid": "dashed: validation", "averaged": "×: averaged checkpoints"}


def draw_training(runs: Sequence[str | Path], *, along: str = "steps", on_message: OnMessage | None = None) -> Figure:
    """The curves of one or several run directories: loss, learning rate and the scores of the validations, along
    "steps", "tokens" or "minutes"."""
    require_choice("along", along, ALONG)
    logs = [_log(Path(run)) for run in runs]
    if not logs:
        raise InputError("Give at least one run directory.")
    lettering = Lettering(on_message)
    names = lettering.labels(_names(runs), "runs")
    shown = {label: field for label, field in PANELS.items() if any(_curve(log, field, None, along)[0] for log in logs)}
    figure = new_figure(8, 1 + 2.4 * len(shown))
    panels = figure.subplots(len(shown), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (label, field) in zip(panels, shown.items(), strict=True):
        for number, log in enumerate(logs):
            for kind, (style, marker) in _LINES.items():
                where, values = _curve(log, field, kind, along)
                axes.plot(where, values, linestyle=style, marker=marker, color=f"C{number}")
        axes.set_ylabel(label)
        axes.grid(color="0.9")
    there = [meaning for kind, meaning in _MEANINGS.items() if any(_curve(log, "loss", kind, along)[0] for log in logs)]
    panels[-1].set_xlabel(f"{along} ({', '.join(there)})")
    colours = [Line2D([], [], color=f"C{number}", label=name) for number, name in enumerate(names)]
    for text in panels[0].legend(handles=colours).get_texts():
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


def _curve(log: list[dict[str, Any]], field: str, kind: str | None, along: str) -> tuple[list[float], list[float]]:
    """Where the values of a field were logged, and the values: of the training, of its validations, of the averages of
    checkpoints at its end, or of all."""
    name, unit = ALONG[along]
    found = [
        entry
        for entry in log
        if kind in (None, "averaged" if "averaged" in entry else entry["event"])
        and isinstance(entry.get(field), int | float)
        and entry["event"] in _LINES
    ]
    return [entry[name] * unit for entry in found], [float(entry[field]) for entry in found]
