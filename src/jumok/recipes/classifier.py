"""Texts with labels in, a classifier out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jumok.data.batch import LabelledBatch
from jumok.data.corpus import Corpus
from jumok.data.epochs import LabelledEpochs
from jumok.data.examples import ExampleKind
from jumok.data.kinds import TEXTS_WITH_LABELS, reading_with
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.unused_options import refuse_unused_options
from jumok.engines.classifier.torch import TorchClassifier
from jumok.metrics.classification import fit_share, fit_temperature
from jumok.model.classifier import Classifier
from jumok.model.config import BaseConfig
from jumok.model.config import preset as preset_config
from jumok.model.devices import device_of, to_device
from jumok.model.ngram_table import ENDING_TOKENS, LONGEST_NGRAM
from jumok.model.ngrams import NgramScores
from jumok.recipes.embedding_fit import Ids
from jumok.recipes.labelled import LabelledRecipe
from jumok.recipes.ngram_fit import fit_ngram_scores, has_many_characters, spelling_of
from jumok.recipes.recipe import PathLike, spread
from jumok.training.auto import Choice
from jumok.training.progress import Validation
from jumok.training.settings import Settings

NOTEBOOK = "imdb-notebook"  # the preset of a published notebook, with all its choices
NOTEBOOK_VOCABULARY = preset_config(NOTEBOOK).vocabulary
WINDOW = 256  # tokens that attend to each other
TINY_SIZES = {"encoder_layers": 2, "window": 64}  # other than the preset's
# To see which tokens occur together: of so many texts, but not of many more tokens, in parts of so many tokens
COUNTED_TEXTS, COUNTED_TOKENS, PART = 40_000, 10_000_000, 24
NGRAM_SCORES = 1 << 22  # for all classes together
TEXTS_AT_A_TIME, LEAST_TOKENS, MOST_TOKENS = 64, 1024, 16_384  # in a batch
PEAK_RATE, DROPOUT = 2e-3, 0.2


class ClassifierRecipe(LabelledRecipe):
    """Cross-entropy on labelled texts; the best model is the one with the smallest loss on validation texts."""

    task, epochs_type = "classifier", LabelledEpochs
    validation_cost, export_cost = 0.5, 3.0
    may_fit_embeddings = True
    _ngrams: dict[str, Tensor] | None = None  # the fitted n-gram scores, the same for every model of this training

    def __init__(
        self,
        data: Sequence[PathLike],
        valid: Sequence[PathLike] | None = None,
        *,
        columns: Columns | None = None,
        separator: str | None = None,
        sheet: str | int | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(data, valid)
        options = reading_options(columns=columns, separator=separator, sheet=sheet, encoding=encoding)
        refuse_unused_options(options, self.data, self.valid, unnamed="table")
        self.kind = reading_with(TEXTS_WITH_LABELS, options)

    @classmethod
    def kind_for(cls, card: Mapping[str, Any], files: Sequence[PathLike] = (), **reading: Any) -> ExampleKind:
        """Labelled texts; the known classes help to find the column of the labels."""
        kind = super().kind_for(card, files, **reading)
        read: Any = kind.read
        return replace(kind, read=partial(read, known=list(card.get("classes", {}))))

    def prepare(self, store: Path, settings: Settings, **options: Any) -> dict[str, Any]:
        """See `Recipe`. The notebook's model has the notebook's vocabulary, not what suits a classifier best."""
        if settings.preset == NOTEBOOK and not settings.has("tokenizer.size"):
            settings = settings.changed({"tokenizer.size": NOTEBOOK_VOCABULARY})
        return super().prepare(store, settings, **options)

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """A text has one label, not one for each token: larger batches, and more dropout against overfitting."""
        if settings.preset == NOTEBOOK:
            return (
                Choice("tokenizer.size", NOTEBOOK_VOCABULARY, "the notebook's, where the texts have so many tokens"),
                Choice("loss.smoothing", 0.0, "the notebook's loss is plain cross-entropy"),
            )
        facts = self.corpus.facts
        tokens = min(MOST_TOKENS, max(LEAST_TOKENS, TEXTS_AT_A_TIME * facts["tokens"] // facts["examples"]))
        many = has_many_characters(self.corpus.tokenizer)
        has_endings = facts["tokens"] >= 2 * ENDING_TOKENS * facts["examples"]
        words = "word+token+ending" if has_endings else "word+token"
        unit = "character+spaceless+token" if many else words
        length = "long texts" if has_endings and not many else "texts"
        ngrams = min(NGRAM_SCORES // len(self.corpus.classes), LONGEST_NGRAM["token"] * facts["tokens"])
        return (
            Choice("model.ngrams", 1 << ngrams.bit_length() - 1, "scores for the n-grams of these texts"),
            Choice("model.ngram_unit", unit, f"suits {length} in this script"),
            Choice("model.ngram_fingerprints", not many, f"{'no' if many else 'a'} gain with this unit"),
            Choice("batch.tokens", tokens, f"about {tokens * facts['examples'] // facts['tokens']} texts at a time"),
            Choice("optimizer.lr", PEAK_RATE, "suits a classifier"),
            Choice("model.dropout", DROPOUT, "suits a classifier"),
        )

    def choices_for(self, chosen: Settings) -> Sequence[Choice]:
        """For `tiny`, what is better after the same minutes: see "Encoder" in benchmarks/classifier.md."""
        if chosen.preset != "tiny":
            return ()
        why = "few layers and a short window learn more in the same time"
        sizes = (Choice(f"model.{name}", size, why) for name, size in TINY_SIZES.items())
        return *sizes, *self.choices_of_embeddings()

    def config(self, settings: Settings) -> BaseConfig:
        """The preset with the classes and the vocabulary of the corpus."""
        own: dict[str, Any] = {"classes": len(self.corpus.classes)}
        if settings.preset != NOTEBOOK:
            own["window"] = WINDOW
        values = {**own, **settings.model}
        return preset_config(settings.preset, vocabulary=self.corpus.tokenizer.size, task=self.task, **values)

    def model(self, settings: Settings) -> Classifier:
        """A new model, with the token vectors and the n-gram scores that were fitted."""
        model = super().model(settings)
        assert isinstance(model, Classifier)
        if self._ngrams is not None:
            model.ngrams.load_state_dict(self._ngrams)
        return model

    def fit(self, settings: Settings) -> None:
        """Fit the token vectors and the n-gram scores on the training texts; scale and calibrate the scores on
        validation texts."""
        self.fit_embeddings(settings, self._parts_of_texts())
        model = Classifier(self.config(settings))
        encoded = self.corpus.tokenizer.encode([example.inputs[0] for example in self.corpus.valid])
        labels = self.labels(self.corpus.valid)
        total = np.zeros((len(encoded), len(self.corpus.classes)), np.float32)
        for part in model.ngrams:
            assert isinstance(part, NgramScores)
            if part.spelling is not None:
                part.spelling.copy_(spelling_of(self.corpus.tokenizer, part.unit))
            fit_ngram_scores(_all_texts(self.corpus), part, self.class_weights())
            scores = TorchClassifier(model).scores(encoded, part)
            share = fit_share(scores, total, labels) if total.any() else 1.0
            part.scores.mul_(share)
            total += share * scores
        temperature = fit_temperature(total, labels)
        for part in model.ngrams:
            part.get_parameter("scores").div_(temperature)
        self._ngrams = model.ngrams.state_dict()

    def _parts_of_texts(self) -> Iterator[Ids]:
        """Neighbouring tokens of training texts from all parts of the corpus."""
        train, tokens = self.corpus.train, self.corpus.facts["tokens"]
        most = max(1, min(COUNTED_TEXTS, COUNTED_TOKENS * len(train) // tokens))
        for number in spread(len(train), most):
            ids = np.asarray(train.example("text", number), np.int64)
            yield from np.array_split(ids, -(-len(ids) // PART)) if len(ids) else ()

    def loss(self, model: Classifier, settings: Settings) -> Callable[[LabelledBatch], Tensor]:
        """Cross-entropy of the encoder's scores alone: beside fitted n-grams it would find little left to learn."""
        weights = None if settings.preset == NOTEBOOK else self.class_weights()

        def loss(batch: LabelledBatch) -> Tensor:
            device = device_of(model)
            text, labels = (to_device(torch.from_numpy(array), device) for array in (batch.text, batch.labels))
            scores = model.encoder_scores(text)
            return nn.functional.cross_entropy(
                scores.float(),
                labels,
                weight=None if weights is None else to_device(weights, device),
                label_smoothing=settings.loss.smoothing,
                reduction="sum",
            )

        return loss

    def validate(self, model: Classifier, count: int) -> Validation:
        """Accuracy, macro-F1 and calibration on validation texts, and a few predictions to look at.
        The share of the encoder beside the n-gram scores is fitted on these texts too; the published model gets it."""
        examples = self.validation_examples(count)
        labels = self.labels(examples)
        encoded = self.corpus.tokenizer.encode([example.inputs[0] for example in examples])
        scores = TorchClassifier(model).scores(encoded, model.encoder_scores)
        weights = {}
        if model.encoder_share is not None:
            ngram_scores = TorchClassifier(model).scores(encoded, model.ngram_scores)
            share = fit_share(scores, ngram_scores, labels)
            scores = share * scores + ngram_scores
            weights["encoder_share"] = torch.full_like(model.encoder_share, share)
        metrics = self.metrics(scores, examples)
        return Validation(self.score(scores, examples, metrics), metrics, weights)


def _all_texts(corpus: Corpus) -> Iterator[LabelledBatch]:
    epochs = LabelledEpochs(corpus, tokens=1 << 16, seed=0)
    return epochs.batches(0, range(epochs.size(0)))
