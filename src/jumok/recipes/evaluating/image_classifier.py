"""Classification quality on labelled test pictures."""

import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from jumok.data.examples import Rejections
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.pictures import read_labelled_pictures
from jumok.data.reading.unused_options import refuse_unused_for_pictures
from jumok.data.task_files import require_files_for
from jumok.engines.image_classifier.pictures import PictureClassifier
from jumok.errors import InputError
from jumok.pictures import picture_from_text
from jumok.recipes.evaluating.classifier import OnConfusion, evaluation_of
from jumok.recipes.evaluating.evaluation import Evaluation

AT_A_TIME = 1000  # pictures


def evaluate(
    model: PictureClassifier,
    files: Sequence[Path],
    *,
    columns: Columns | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    on_confusion: OnConfusion | None = None,
) -> Evaluation:
    """Accuracy, F1, calibration, speed and the confusion matrix on pictures with labels; those with unknown labels are
    counted and left out. `on_confusion` gets the confusion matrix and the names of the classes."""
    options = reading_options(columns=columns, separator=separator, sheet=sheet, encoding=encoding)
    require_files_for(model.task, files, options)
    refuse_unused_for_pictures(options, files)
    rejections, scores, labels, seconds = Rejections(), [], list[int](), 0.0
    examples = read_labelled_pictures(files, rejections, shape=model.encoder.shape, options=options)
    while chunk := list(islice(examples, AT_A_TIME)):
        known = [example for example in chunk if example.label in model.classes]
        for example in chunk:
            if example.label not in model.classes:
                rejections.add(f'label "{example.label}" is not among those learned', example.where)
        if not known:
            continue
        pixels = np.stack([picture_from_text(example.inputs[0]) for example in known])
        started = time.perf_counter()
        scores.append(model.engine.scores(pixels, model.encoder))
        seconds += time.perf_counter() - started
        labels += [model.classes.index(example.label) for example in known]
    if not labels:
        raise InputError(f"{files[0]}: no picture with a label that the model knows:\n{rejections.render()}")
    return evaluation_of(model, np.concatenate(scores), np.array(labels), seconds, "pictures", rejections, on_confusion)
