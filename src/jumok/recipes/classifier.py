"""Texts with labels in, a classifier out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from jumok.classification import classification_scores, fit_temperature
from jumok.data.batch import LabelledBatch
from jumok.data.epochs import LabelledEpochs
from jumok.data.labelled import TEXTS_WITH_LABELS
from jumok.data.prepared import Corpus
from jumok.engines.classifier import class_scores
from jumok.model.classifier import Classifier
from jumok.model.config import ModelConfig
from jumok.model.config import preset as preset_config
from jumok.model.ngrams import run_places
from jumok.recipes.corpus_task import CorpusTask
from jumok.recipes.job import TrainingResult, train
from jumok.recipes.request import PathLike, Request
from jumok.training.progress import Validation
from jumok.training.settings import Settings

WINDOW = 256  # tokens that attend to each other
NGRAM_SCORES = 1 << 19  # for all classes together
SAMPLES = 3  # answers shown after each validation


def train_classifier(
    *data: PathLike, out: PathLike, valid: Sequence[PathLike] | None = None, **request: Unpack[Request]
) -> TrainingResult:
    """Trains a classifier on TSV, CSV or JSONL files, or directories with one directory a class, in `out`.

    Called again with the same arguments it goes on where it stopped. Further arguments: those of `recipes/request.py`.
    """
    return train(_ClassifierTask(data, valid), Path(out), request)


class _ClassifierTask(CorpusTask):
    """Texts with labels, cross-entropy, macro-F1."""

    name, kind, batches = "classifier", TEXTS_WITH_LABELS, LabelledEpochs

    def card(self) -> dict[str, Any]:
        """The names of the classes, in the order of the scores, and how many texts each was learned from."""
        return {"classes": self.corpus.facts["classes"]}

    def config(self, settings: Settings) -> ModelConfig:
        classes = len(self.corpus.classes)
        extras: dict[str, Any] = {"classes": classes}
        if settings.preset != "imdb-notebook":
            places = 1 << (NGRAM_SCORES // classes).bit_length() - 1
            extras |= {"window": WINDOW, "ngrams": places}
        vocabulary = self.corpus.tokenizer.size
        return preset_config(settings.preset, vocabulary=vocabulary, task="classifier", **{**extras, **settings.model})

    def model(self, settings: Settings) -> Classifier:
        model = Classifier(self.config(settings))
        if model.ngrams is not None:
            with torch.no_grad():
                model.ngrams.scores.copy_(naive_bayes(self.corpus, model.config.ngrams))
        return model

    def loss(self, model: Classifier, settings: Settings) -> Callable[[LabelledBatch], Tensor]:
        """Cross-entropy, rare classes weighted up: by the root of how rare they are, a compromise."""
        counts = torch.tensor(list(self.corpus.facts["classes"].values()), dtype=torch.float32)
        weights = (counts.sum() / counts).sqrt()
        weights *= counts.sum() / (weights * counts).sum()  # their mean over the texts is 1

        def loss(batch: LabelledBatch) -> Tensor:
            scores = model(torch.from_numpy(batch.text))
            return nn.functional.cross_entropy(
                scores,
                torch.from_numpy(batch.labels),
                weight=weights,
                label_smoothing=settings.loss.smoothing,
                reduction="sum",
            )

        return loss

    def validate(self, model: Classifier, examples: int) -> Validation:
        some = self.corpus.valid[:examples]
        numbers = {name: number for number, name in enumerate(self.corpus.classes)}
        answers = np.array([numbers[example.label] for example in some])
        scores = class_scores(model, self.corpus.tokenizer.encode([example.texts[0] for example in some]))
        temperature = fit_temperature(scores, answers)
        metrics: dict[str, Any] = {**classification_scores(scores, answers, temperature), "temperature": temperature}
        metrics["samples"] = [
            {"source": example.texts[0], "reference": example.label, "output": self.corpus.classes[int(row.argmax())]}
            for example, row in zip(some[:SAMPLES], scores, strict=False)
        ]
        return Validation(100 * metrics["macro_f1"], metrics)


def naive_bayes(corpus: Corpus, places: int) -> Tensor:
    """Scores [places, C] from how often each run of tokens occurs in texts of each class: where learning begins."""
    classes = len(corpus.classes)
    counts = np.zeros(places * classes)
    for batch in _all_texts(corpus):
        found, real = run_places(torch.from_numpy(batch.text), places)
        cells = (found * classes + torch.from_numpy(batch.labels)[:, None])[real]
        counts += np.bincount(cells.numpy(), minlength=places * classes)
    logs = np.log(counts.reshape(places, classes) + 1)
    logs -= np.log((counts.reshape(places, classes) + 1).sum(0))
    return torch.from_numpy(logs - logs.mean(1, keepdims=True)).float()


def _all_texts(corpus: Corpus) -> Iterator[LabelledBatch]:
    epochs = LabelledEpochs(corpus, tokens=1 << 16, seed=0)
    return epochs.batches(0, range(epochs.size(0)))
