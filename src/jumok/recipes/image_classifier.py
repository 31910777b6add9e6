"""Pictures with labels in, an image classifier out."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from jumok.data.examples import Example
from jumok.data.pictures import LABELLED_PICTURES, PictureBatch, PictureEpochs, reading_pictures
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.pictures import require_picture_size, survey_pictures
from jumok.data.reading.unused_options import refuse_unused_for_pictures
from jumok.engines.image_classifier.torch import TorchImageClassifier, standardised
from jumok.model.config import BaseConfig
from jumok.model.config import preset as preset_config
from jumok.model.config.image_classifier import HALVED
from jumok.model.devices import device_of, to_device
from jumok.model.image_classifier import ImageClassifier
from jumok.pictures import PictureEncoder, PictureShape, picture_from_text
from jumok.recipes.labelled import LabelledRecipe
from jumok.recipes.mirroring import mirroring_keeps_the_meaning
from jumok.recipes.picture_settings import SHAPE_DECIDED
from jumok.recipes.recipe import BY_MUON, PathLike
from jumok.tasks import ENCODERS
from jumok.training.auto import Choice
from jumok.training.progress import Validation
from jumok.training.settings import Settings

PATCHES = 7  # along the longer side, at least
PICTURES_AT_A_TIME = 64
PEAK_RATE = 3e-3
SHIFT_SHARE = 1 / 14  # of the longer side
ERASE = 0.25
MIXUP = 0.2
SIZES: dict[str, Any] = {  # with the preset "auto"
    "preset": "tiny",
    "model.encoder_layers": 2,
    "model.d_model": 64,
    "model.d_ff": 128,
    "model.activation": "gelu",
}
LARGEST_ASKED = 512


class ImageClassifierRecipe(LabelledRecipe):
    """Cross-entropy on labelled pictures; the best model is the one with the smallest loss on validation pictures."""

    task, epochs_type = "image_classifier", PictureEpochs
    validation_cost = 0.4
    kind = LABELLED_PICTURES
    not_settings = {  # noqa: RUF012 (ClassVar above)
        **LabelledRecipe.not_settings,
        **SHAPE_DECIDED,
        "vocabulary": "the values of a pixel are bytes. Leave it out.",
        "mirror": "augment.mirror decides it. Set that instead.",
    }

    def __init__(
        self,
        data: Sequence[PathLike],
        valid: Sequence[PathLike] | None = None,
        *,
        columns: Columns | None = None,
        separator: str | None = None,
        sheet: str | int | None = None,
        encoding: str | None = None,
        picture_size: int | None = None,
    ) -> None:
        super().__init__(data, valid)
        self.reading = reading_options(columns=columns, separator=separator, sheet=sheet, encoding=encoding)
        refuse_unused_for_pictures(self.reading, self.data, self.valid)
        require_picture_size(picture_size, 4, LARGEST_ASKED)
        self.picture_size = picture_size

    @classmethod
    def check_settings(cls, settings: Settings, **of_the_data: Any) -> None:
        """See `Recipe`. As long as the pictures are not known, a patch may be as large as the largest of them."""
        super().check_settings(settings, **{"height": LARGEST_ASKED, "width": LARGEST_ASKED, **of_the_data})

    def prepare(self, store: Path, settings: Settings, **options: Any) -> dict[str, Any]:
        """See `Recipe`. The shape is chosen before anything is decoded; a model that exists keeps its own."""
        survey = survey_pictures(self.data, self.reading, self.picture_size)
        before = None if options["expected"] is None else _shape_before(store)
        shape, why = (survey.shape, survey.why) if before is None else (before, "as the model was trained with")
        if before == survey.shape:
            why = survey.why
        self.check_settings(settings, height=shape.height, width=shape.width)
        # Files in directories are compared themselves; a table may stay the same when pictures that it names change.
        tables = [path for path in self.valid or () if not Path(path).is_dir()]
        named = survey.digest + (survey_pictures(tables, self.reading).digest if tables else "")
        self.kind = reading_pictures(self.reading, shape, why, self.picture_size, named)
        return super().prepare(store, settings, **options)

    def why_read_otherwise(self, before: Mapping[str, Any]) -> str:
        """See `Recipe`. Files that a table names may have changed, and not the table."""
        if before != self.kind.reading:
            return super().why_read_otherwise(before)
        tables = ", ".join(str(path) for path in (*self.data, *(self.valid or ())) if not Path(path).is_dir())
        return f"Changed since: pictures that are named in {tables}."

    @property
    def encoder(self) -> PictureEncoder:
        """The encoder of the corpus."""
        assert isinstance(self.corpus.encoder, PictureEncoder)
        return self.corpus.encoder

    def card(self) -> dict[str, Any]:
        """The classes, and the shape of the pictures."""
        shape = self.encoder.shape
        sides = {"height": shape.height, "width": shape.width, "channels": shape.channels}
        return {**super().card(), "picture": sides}

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """Patches and augmentation that suit the pictures, and a small model: pictures are many numbers."""
        shape = self.encoder.shape
        longer = max(shape.height, shape.width)
        patch = max((size for size in (1, *HALVED) if size * PATCHES <= longer), default=1)
        shift = max(1, round(SHIFT_SHARE * min(shape.height, shape.width)))
        linear = settings.model.get("patch", patch) not in HALVED or settings.model.get("stem") == "linear"
        sizes = SIZES if settings.preset == "auto" else {}
        mirror, why = mirroring_keeps_the_meaning(self.corpus)
        return (
            *(Choice(name, value, "suits small pictures") for name, value in sizes.items()),
            Choice("model.patch", patch, f"pictures are {shape}"),
            Choice(
                "model.stem",
                "linear" if linear else "convolution",
                "suits these patches" if linear else "learns faster",
            ),
            Choice(
                "model.overlap", patch // 2 if linear else 0, "patches see their neighbours" if linear else "not needed"
            ),
            Choice("batch.tokens", PICTURES_AT_A_TIME, "pictures at a time"),
            BY_MUON,
            Choice("optimizer.lr", PEAK_RATE, "suits a classifier"),
            Choice("model.dropout", 0.0, "augmentation is enough against overfitting"),
            Choice("augment.shift", shift, f"pictures are {shape}"),
            Choice("augment.mirror", mirror, why),
            Choice("augment.erase", ERASE, "suits pictures"),
            Choice("augment.mixup", MIXUP, "suits pictures"),
        )

    def config(self, settings: Settings) -> BaseConfig:
        """The preset with the classes and the pictures of the corpus."""
        shape = self.encoder.shape
        own: dict[str, Any] = {
            "classes": len(self.corpus.classes),
            "height": shape.height,
            "width": shape.width,
            "channels": shape.channels,
            "mirror": bool(settings.augment.mirror),
        }
        values = {**own, **settings.model}
        return preset_config(settings.preset, vocabulary=self.encoder.size, task=self.task, **values)

    def loss(self, model: ImageClassifier, settings: Settings) -> Callable[[PictureBatch], Tensor]:
        """Cross-entropy. A mixture of two pictures is to be recognised as both, by their shares."""
        weights, encoder = self.class_weights(), self.encoder

        def loss(batch: PictureBatch) -> Tensor:
            device = device_of(model)
            scores = model(standardised(batch.pictures, encoder, device)).float()
            labels, partners, shares = (
                to_device(torch.from_numpy(array), device) for array in (batch.labels, batch.partners, batch.shares)
            )
            own, other = (
                nn.functional.cross_entropy(
                    scores,
                    classes,
                    weight=to_device(weights, device),
                    label_smoothing=settings.loss.smoothing,
                    reduction="none",
                )
                for classes in (labels, partners)
            )
            return (shares * own + (1 - shares) * other).sum()

        return loss

    def validate(self, model: ImageClassifier, count: int) -> Validation:
        """Accuracy, macro-F1 and calibration on validation pictures, and a few predictions to look at."""
        pictures = np.empty((min(count, len(self.corpus.valid)), *self.encoder.shape.dimensions), np.uint8)
        examples = []
        for number, example in enumerate(self.iterate_validation_examples(count)):
            pictures[number] = picture_from_text(example.inputs[0])
            examples.append(example._replace(inputs=()))  # a picture as text takes more memory than its bytes
        scores = TorchImageClassifier(model).scores(pictures, self.encoder)
        metrics = self.metrics(scores, examples)
        return Validation(self.score(scores, examples, metrics), metrics)

    def sample(self, example: Example) -> dict[str, Any]:
        """The file of a picture. Not the picture itself: a line of the log holds a megabyte at most."""
        return {"source": example.where.removesuffix(":1")}


def _shape_before(store: Path) -> PictureShape | None:
    """The shape of the pictures of a corpus that was prepared before."""
    file = store / ENCODERS["pictures"].file
    return PictureEncoder.from_bytes(file.read_bytes(), str(file)).shape if file.is_file() else None
