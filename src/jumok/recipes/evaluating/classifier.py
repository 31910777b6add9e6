"""Classification quality on labelled test texts."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from rich.cells import cell_len

from jumok.data.examples import Rejections
from jumok.data.reading.labelled import read_labelled
from jumok.data.reading.options import Columns, ReadingOptions, reading_options
from jumok.data.reading.unused_options import refuse_unused_options
from jumok.data.task_files import require_files_for
from jumok.engines.classifier.text import TextClassifier
from jumok.errors import InputError
from jumok.metrics.classification import ClassScores, Labels, classification_scores, confusion, f1_scores
from jumok.recipes.evaluating.evaluation import Evaluation, OnProgress, in_chunks, only_file, with_layouts

Confusion = npt.NDArray[np.int64]  # [C, C]: rows are true classes, columns predictions
OnConfusion = Callable[[Confusion, Sequence[str]], None]


class Labelling(Protocol):
    """A classifier, whatever it classifies."""

    classes: list[str]
    temperature: float


def evaluate(
    model: TextClassifier,
    files: Sequence[Path],
    *,
    columns: Columns | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    on_confusion: OnConfusion | None = None,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Accuracy, F1, calibration, speed and the confusion matrix on a file with labels; texts with unknown labels are
    counted and left out. `on_confusion` gets the confusion matrix and the names of the classes, `on_progress` the
    numbers of texts done and of all texts."""
    options = reading_options(columns=columns, separator=separator, sheet=sheet, encoding=encoding)
    refuse_unused_options(options, files, unnamed="table")
    path = only_file(files)
    require_files_for(model.task, [path], options)
    texts, labels, rejections = _read(path, model.classes, options)
    started = time.perf_counter()
    scores = np.array(in_chunks(texts, model.scores, on_progress))
    seconds = time.perf_counter() - started
    return evaluation_of(model, scores, labels, seconds, "texts", rejections, on_confusion)


def evaluation_of(
    model: Labelling,
    scores: ClassScores,
    labels: Labels,
    seconds: float,
    what: str,
    rejections: Rejections,
    on_confusion: OnConfusion | None,
) -> Evaluation:
    """The evaluation of a classifier from its scores [B, C]. `what` it classifies: "texts" or "pictures"."""
    table = confusion(scores.argmax(1), labels, len(model.classes))
    if on_confusion is not None:
        on_confusion(table, model.classes)
    values = {
        what: len(labels),
        **classification_scores(scores, labels, model.temperature),
        "f1": dict(zip(model.classes, f1_scores(table).tolist(), strict=True)),
        "confusion": table.tolist(),
        "classes": model.classes,
        f"{what}_per_second": len(labels) / seconds,
        "rejected": rejections.to_json(),
    }
    rejected = ["", "left out:", rejections.render()] if rejections.total else []
    return with_layouts(Evaluation(values, _lines(values, what) + rejected), rejections)


def _read(
    path: Path, classes: Sequence[str], options: ReadingOptions
) -> tuple[list[str], npt.NDArray[np.int64], Rejections]:
    """Texts, the numbers of their classes, and what was left out."""
    rejections = Rejections()
    texts, labels = [], []
    for example in read_labelled([path], rejections, classes, options=options):
        if example.label in classes:
            texts.append(example.inputs[0])
            labels.append(classes.index(example.label))
        else:
            rejections.add(f'label "{example.label}" is not among those learned', example.where)
    if not texts:
        raise InputError(f"{path}: no text with a label that the model knows:\n{rejections.render()}")
    return texts, np.array(labels), rejections


def _lines(values: dict[str, Any], what: str) -> list[str]:
    classes = values["classes"]
    width = max(8, *map(cell_len, classes)) + 2  # Hangul takes two cells of a terminal
    head = "true \\ predicted".ljust(width + 6) + "".join(" " * (width - cell_len(name)) + name for name in classes)
    rows = [
        name + " " * (width + 6 - cell_len(name)) + "".join(f"{count:,}".rjust(width) for count in row)
        for name, row in zip(classes, values["confusion"], strict=True)
    ]
    return [
        f"accuracy     {values['accuracy']:7.2%}  of {values[what]:,} {what}",
        f"macro-F1     {values['macro_f1']:7.2%}",
        f"calibration  {values['ece']:7.2%}  expected error; {values['ece_uncalibrated']:.2%} without temperature",
        f"speed        {values[f'{what}_per_second']:7,.0f}  {what} a second",
        "",
        head,
        *rows,
    ]
