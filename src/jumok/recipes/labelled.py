"""What the training of all classifiers shares, whatever they classify."""

from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from jumok.data.examples import Example
from jumok.data.reading.options import Columns, reading_options
from jumok.data.task_files import task_for
from jumok.errors import ConfigError
from jumok.metrics.classification import (
    ClassScores,
    Labels,
    classification_scores,
    fit_temperature,
    negative_log_likelihood,
)
from jumok.recipes.recipe import PathLike, Recipe
from jumok.recipes.training import TrainingResult, TrainRequest, train
from jumok.tasks import Task, resolve

SAMPLES = 3  # predictions shown after each validation


def train_classifier(
    *data: PathLike,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    columns: Columns | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    picture_size: int | None = None,
    **request: Unpack[TrainRequest],
) -> TrainingResult:
    """Train a classifier of texts or pictures in `out`, on directories with one directory a class, on TSV, CSV, XLSX or
    JSONL files of texts, or of paths of pictures, with labels, or on two IDX files.

    Called again with the same arguments it resumes. How files are read is found out, and told by the event "file";
    these arguments choose instead: `columns`, text and label of a table, by name or number (from 1); `separator` of a
    CSV file; `sheet` of a workbook, by name or number; `encoding` of text. `picture_size`: the longer side that
    pictures are scaled to, in pixels. Further arguments: those of `TrainRequest`.
    """
    reading = {"columns": columns, "separator": separator, "sheet": sheet, "encoding": encoding}
    task, own = classifier_for(data, valid, reading, picture_size=picture_size)
    return train(task.name, *data, out=out, valid=valid, **reading, **own, **request)


def classifier_for(
    data: Sequence[PathLike], valid: Sequence[PathLike] | None, reading: Mapping[str, Any], **options: Any
) -> tuple[Task, dict[str, Any]]:
    """Which kind of classifier learns from these files; and those of the options that were given. ConfigError if that
    kind of classifier does not have one of them."""
    files = [*data, *([valid] if isinstance(valid, str | Path) else valid or ())]
    task = task_for("classifier", files, reading_options(**reading))
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if name not in signature(resolve(task.recipe)).parameters:
            raise ConfigError(f"`{name}=` has no effect: {data[0]} holds {task.inputs}. Leave it out.")
    return task, given


class LabelledRecipe(Recipe):
    """Trains on examples with labels."""

    highest_score = 0.0  # of a log-likelihood; an earlier version recorded macro-F1
    not_settings = {**Recipe.not_settings, "classes": "the labels of the data decide it. Leave it out."}  # noqa: RUF012

    def card(self) -> dict[str, Any]:
        """The names of the classes, in the order of the scores, and the number of training examples of each."""
        return {"classes": self.corpus.facts["classes"]}

    def fixed(self) -> dict[str, Any]:
        """The classes: their numbers are in the weights."""
        return {"classes": self.corpus.classes}

    def class_weights(self) -> Tensor:
        """[C] Rare classes count for more, by the square root of how rare they are. The mean over all examples is 1."""
        counts = torch.tensor(list(self.corpus.facts["classes"].values()), dtype=torch.float32)
        weights = (counts.sum() / counts).sqrt()
        return weights * counts.sum() / (weights * counts).sum()

    def labels(self, examples: Sequence[Example]) -> Labels:
        """[B] The class numbers of some examples."""
        numbers = {name: number for number, name in enumerate(self.corpus.classes)}
        return np.array([numbers[example.label] for example in examples])

    def metrics(self, scores: ClassScores, examples: Sequence[Example]) -> dict[str, Any]:
        """Accuracy, macro-F1, calibration, the temperature that calibrates, and a few predictions to look at."""
        labels = self.labels(examples)
        temperature = fit_temperature(scores, labels)
        samples = [
            {**self.sample(example), "reference": example.label, "output": self.corpus.classes[int(row.argmax())]}
            for example, row in zip(examples[:SAMPLES], scores, strict=False)
        ]
        return {
            **classification_scores(scores, labels, temperature),
            "temperature": temperature,
            "samples": samples,
        }

    def score(self, scores: ClassScores, examples: Sequence[Example], metrics: Mapping[str, Any]) -> float:
        """What the best model is chosen by: the log-likelihood of the labels, rare classes counting for more, as while
        training. The accuracy on a thousand examples differs more by chance than the last checkpoints differ."""
        weights = self.class_weights().numpy()
        return -negative_log_likelihood(scores, self.labels(examples), metrics["temperature"], weights)

    def sample(self, example: Example) -> dict[str, Any]:
        """An example as it is shown after a validation."""
        return {"source": example.inputs[0]}
