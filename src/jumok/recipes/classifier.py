"""Texts with labels in, a classifier out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor, nn

from jumok.data.batch import LabelledBatch
from jumok.data.corpus import Corpus
from jumok.data.epochs import LabelledEpochs
from jumok.data.examples import Example
from jumok.data.kinds import TEXTS_WITH_LABELS
from jumok.engines.classifier.torch import class_scores
from jumok.metrics.classification import Labels, classification_scores, fit_share, fit_temperature
from jumok.model.classifier import Classifier
from jumok.model.config import ModelConfig
from jumok.model.config import preset as preset_config
from jumok.model.ngram_table import LONGEST_NGRAM
from jumok.model.ngrams import NgramScores
from jumok.recipes.corpus_task import CorpusTask
from jumok.recipes.job import TrainingResult, train
from jumok.recipes.ngram_fit import fit_ngram_scores, spelling_of, writes_syllables_or_words
from jumok.recipes.request import PathLike, Request
from jumok.tokenizer import Tokenizer
from jumok.training.auto import Choice
from jumok.training.progress import Validation
from jumok.training.settings import Settings

NOTEBOOK = "imdb-notebook"  # the preset that is somebody else's model
NOTEBOOK_VOCABULARY = preset_config(NOTEBOOK).vocabulary
WINDOW = 256  # tokens that attend to each other
NGRAM_SCORES = 1 << 22  # for all classes together
TEXTS_AT_A_TIME, LEAST_TOKENS, MOST_TOKENS = 64, 1024, 16_384  # in a batch
PEAK_RATE, DROPOUT = 2e-3, 0.2
SAMPLES = 3  # answers shown after each validation


def train_classifier(
    *data: PathLike, out: PathLike, valid: Sequence[PathLike] | None = None, **request: Unpack[Request]
) -> TrainingResult:
    """Trains a classifier on TSV, CSV or JSONL files, or directories with one directory a class, in `out`.

    Called again with the same arguments it goes on where it stopped. Further arguments: those of `recipes/request.py`.
    """
    return train(ClassifierTask(data, valid), Path(out), request)


class ClassifierTask(CorpusTask):
    """Texts with labels, cross-entropy, macro-F1."""

    name, kind, batches = "classifier", TEXTS_WITH_LABELS, LabelledEpochs
    _fitted: nn.ModuleList | None = None  # the scores of runs, the same for every model of this training

    def prepare(
        self, store: Path, settings: Settings, *, expected: str | None, tokenizer: Tokenizer | None
    ) -> dict[str, Any]:
        """See `Task`. The notebook's model has the notebook's vocabulary, not what suits a classifier best."""
        if settings.preset == NOTEBOOK and not settings.has("tokenizer.size"):
            settings = settings.changed({"tokenizer.size": NOTEBOOK_VOCABULARY})
        return super().prepare(store, settings, expected=expected, tokenizer=tokenizer)

    def card(self) -> dict[str, Any]:
        """The names of the classes, in the order of the scores, and how many texts each was learned from."""
        return {"classes": self.corpus.facts["classes"]}

    def fixed(self) -> dict[str, Any]:
        """The classes: their numbers are in the weights."""
        return {"classes": self.corpus.classes}

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """An answer is one text, not one token: more tokens for an update, and more against learning them by heart."""
        if settings.preset == NOTEBOOK:
            return (
                Choice("tokenizer.size", NOTEBOOK_VOCABULARY, "the notebook's, where the texts have so many pieces"),
                Choice("loss.smoothing", 0.0, "the notebook's loss is plain cross-entropy"),
            )
        facts = self.corpus.facts
        tokens = min(MOST_TOKENS, max(LEAST_TOKENS, TEXTS_AT_A_TIME * facts["tokens"] // facts["examples"]))
        unit = "both" if writes_syllables_or_words(self.corpus.tokenizer) else "token"
        runs = min(NGRAM_SCORES // len(self.corpus.classes), LONGEST_NGRAM["token"] * facts["tokens"])
        return (
            Choice("model.ngrams", 1 << runs.bit_length() - 1, "places for the runs in these texts"),
            Choice("model.ngram_unit", unit, "what says most in the script of these texts"),
            Choice("batch.tokens", tokens, f"about {tokens * facts['examples'] // facts['tokens']} texts at a time"),
            Choice("optimizer.lr", PEAK_RATE, "suits a classifier"),
            Choice("model.dropout", DROPOUT, "suits a classifier"),
        )

    def config(self, settings: Settings) -> ModelConfig:
        classes = len(self.corpus.classes)
        extras: dict[str, Any] = {"classes": classes}
        if settings.preset != NOTEBOOK:
            extras["window"] = WINDOW
        vocabulary = self.corpus.tokenizer.size
        return preset_config(settings.preset, vocabulary=vocabulary, task="classifier", **{**extras, **settings.model})

    def model(self, settings: Settings) -> Classifier:
        model = Classifier(self.config(settings))
        if self._fitted is None or _shapes(self._fitted) != _shapes(model.ngrams):
            self._fit(model)
            self._fitted = model.ngrams
        model.ngrams = self._fitted
        return model

    def _fit(self, model: Classifier) -> None:
        """Scores of runs as loud and as sure of themselves as they may be, judged by texts they were not fitted to."""
        encoded = self.corpus.tokenizer.encode([example.inputs[0] for example in self.corpus.valid])
        answers = self.answers(self.corpus.valid)
        said = np.zeros((len(encoded), len(self.corpus.classes)), np.float32)
        for part in model.ngrams:
            assert isinstance(part, NgramScores)
            if part.spelling is not None:
                part.spelling.copy_(spelling_of(self.corpus.tokenizer))
            fit_ngram_scores(_all_texts(self.corpus), part, self._class_weights())
            more = class_scores(model, encoded, part)
            share = fit_share(more, said, answers) if said.any() else 1.0
            part.scores.mul_(share)
            said += share * more
        temperature = fit_temperature(said, answers)
        for part in model.ngrams:
            part.get_parameter("scores").div_(temperature)

    def loss(self, model: Classifier, settings: Settings) -> Callable[[LabelledBatch], Tensor]:
        """Cross-entropy of what the encoder says."""
        weights = None if settings.preset == NOTEBOOK else self._class_weights()

        def loss(batch: LabelledBatch) -> Tensor:
            scores = model.encoder_scores(torch.from_numpy(batch.text))
            return nn.functional.cross_entropy(
                scores,
                torch.from_numpy(batch.labels),
                weight=weights,
                label_smoothing=settings.loss.smoothing,
                reduction="sum",
            )

        return loss

    def _class_weights(self) -> Tensor:
        """Rare classes are weighted up: by the root of how rare they are, a compromise."""
        counts = torch.tensor(list(self.corpus.facts["classes"].values()), dtype=torch.float32)
        weights = (counts.sum() / counts).sqrt()
        return weights * counts.sum() / (weights * counts).sum()  # their mean over the texts is 1

    def answers(self, examples: Sequence[Example]) -> Labels:
        """The numbers of their classes [B]."""
        numbers = {name: number for number, name in enumerate(self.corpus.classes)}
        return np.array([numbers[example.label] for example in examples])

    def validate(self, model: Classifier, examples: int) -> Validation:
        some = self.measured(examples)
        answers = self.answers(some)
        encoded = self.corpus.tokenizer.encode([example.inputs[0] for example in some])
        scores = class_scores(model, encoded, model.encoder_scores)
        if model.encoder_share is not None:  # the encoder has the say that these texts give it
            others = class_scores(model, encoded, model.ngram_scores)
            share = fit_share(scores, others, answers)
            model.encoder_share.fill_(share)
            scores = share * scores + others
        temperature = fit_temperature(scores, answers)
        metrics: dict[str, Any] = {**classification_scores(scores, answers, temperature), "temperature": temperature}
        metrics["samples"] = [
            {"source": example.inputs[0], "reference": example.label, "output": self.corpus.classes[int(row.argmax())]}
            for example, row in zip(some[:SAMPLES], scores, strict=False)
        ]
        return Validation(100 * metrics["macro_f1"], metrics)


def _shapes(parts: nn.Module) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in parts.state_dict().items()}


def _all_texts(corpus: Corpus) -> Iterator[LabelledBatch]:
    epochs = LabelledEpochs(corpus, tokens=1 << 16, seed=0)
    return epochs.batches(0, range(epochs.size(0)))
