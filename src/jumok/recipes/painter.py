"""Pictures with captions in, a painter out: first image tokens are learned, then a translator from captions to them."""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from jumok.bundle import load_bundle
from jumok.data.batch import Batch, IdArray
from jumok.data.captioned import (
    CAPTIONED_PICTURES,
    PaintingEpochs,
    PictureArray,
    captioned_pictures,
    with_image_tokens,
)
from jumok.data.corpus import Corpus
from jumok.data.reading.captions import require_captions_and_pictures, survey_captioned
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.pictures import require_picture_size
from jumok.data.reading.unused_options import refuse_unused_for_pictures
from jumok.engines.image_tokens import encode_pictures
from jumok.engines.painter.text import words_of
from jumok.engines.painter.torch import TorchPainter
from jumok.engines.torch_models import load_model
from jumok.errors import ConfigError, require_at_least
from jumok.model.config import BaseConfig, preset
from jumok.model.config.painter import PainterConfig
from jumok.model.devices import device_of, to_device
from jumok.model.image_tokens import ImageTokens
from jumok.model.painter import FIRST_CODE, Painter
from jumok.pictures import PictureShape
from jumok.recipes.image_tokens import ImageTokensRecipe, fitted_shape
from jumok.recipes.picture_settings import SHAPE_DECIDED
from jumok.recipes.recipe import PathLike, Recipe
from jumok.recipes.training import TrainingResult, TrainRequest, train
from jumok.tokenizer import EOS, PAD
from jumok.training.auto import Choice
from jumok.training.events import EventCallback, ignore_event
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.progress import Validation
from jumok.training.settings import Settings

PICTURES_AT_A_TIME = 24  # in a batch
CAPTIONS_LEFT_OUT = 0.1  # of the training pictures, so that the model learns what pictures look like in general
MOST_WORDS = 2000  # of captions; if there are more, unknown words are not noticed
SMALLEST, LARGEST = 8, 256  # longer side of pictures that can be asked for
TOKENS = "image_tokens"  # in the store: the captions with image tokens


def train_painter(
    captions: PathLike,
    pictures: PathLike,
    *,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    picture_size: int | None = None,
    columns: Columns | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    **request: Unpack[TrainRequest],
) -> TrainingResult:
    """Train a painter in the run directory `out`, or resume it. `captions` names a picture and its caption in each
    row, `pictures` is their directory; `valid` names two such paths.

    `picture_size`: the longer side that pictures are scaled to; by default their own, but at most 64 pixels. `minutes`
    are shared by both stages; `steps` and `epochs` count in each. How files are read is found out, and told by the
    event "file"; these arguments choose instead: `columns`, of the picture and the caption, by name or number (from 1);
    `separator` of a CSV file; `sheet` of a workbook; `encoding` of text. Further arguments: those of `TrainRequest`.
    """
    reading = {"columns": columns, "separator": separator, "sheet": sheet, "encoding": encoding}
    return train("painter", captions, pictures, out=out, valid=valid, picture_size=picture_size, **reading, **request)


class PainterRecipe(Recipe):
    """Teacher forcing from captions to image tokens; the best model needs the fewest bits for an image token."""

    task, epochs_type = "painter", PaintingEpochs
    validation_cost = 0.5
    not_settings = {**Recipe.not_settings, **SHAPE_DECIDED}  # noqa: RUF012 (ClassVar above)

    def __init__(
        self,
        data: Sequence[PathLike],
        valid: Sequence[PathLike] | None = None,
        *,
        picture_size: int | None = None,
        columns: Columns | None = None,
        separator: str | None = None,
        sheet: str | int | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(data, valid)
        for files in (self.data, self.valid):
            if files:
                require_captions_and_pictures(files)
        require_picture_size(picture_size, SMALLEST, LARGEST)
        self.picture_size = picture_size
        self.reading = reading_options(columns=columns, separator=separator, sheet=sheet, encoding=encoding)
        refuse_unused_for_pictures(self.reading, self.data, self.valid)
        self.kind, self.shape = CAPTIONED_PICTURES, PictureShape(32, 32, 3)
        self._pictures: ImageTokens | None = None
        self._digest, self._stage_settings = "", Settings()

    @classmethod
    def check_settings(cls, settings: Settings, **of_the_data: Any) -> None:
        """See `Recipe`. Any patch within a picture will do: pictures are scaled so that patches fill them."""
        patch = settings.model.get("patch", PainterConfig.patch)
        require_at_least(1, patch=patch)
        if patch > LARGEST:
            raise ConfigError(f"patch={patch} is larger than any picture: they have at most {LARGEST} pixels a side.")
        super().check_settings(settings, **{"height": patch, "width": patch, **of_the_data})

    def prepare(self, store: Path, settings: Settings, **options: Any) -> dict[str, Any]:
        """See `Recipe`. One shape for all pictures is chosen from the headers of their files."""
        shape, why = survey_captioned(self.data, self.reading, self.picture_size)
        patch = settings.model.get("patch")
        if patch is not None and patch > max(shape.height, shape.width):
            raise ConfigError(f"patch={patch} is larger than pictures of {shape.width} × {shape.height} pixels.")
        self.shape = fitted_shape(shape, patch)
        self.kind = captioned_pictures(self.shape, why, self.reading)
        return super().prepare(store, settings, **options)

    def reopen(self, store: Path, fingerprint: str) -> dict[str, Any]:
        """See `Recipe`."""
        facts = super().reopen(store, fingerprint)
        side = self.corpus.valid[0].inputs[0].partition(":")[0]
        self.shape = PictureShape(*(int(number) for number in side.split("x")))
        return facts

    def first_stage(self, asked: Settings) -> tuple[Recipe, Settings]:
        """Image tokens for the pictures of the corpus."""
        stage = ImageTokensRecipe.of_corpus(self.corpus, self.shape, self.data)
        self._stage_settings = stage.settings_within(asked)
        return stage, self._stage_settings

    def use_first_stage(
        self, stage: Recipe, model: Path | None, store: Path, on_event: EventCallback = ignore_event
    ) -> None:
        """Turn the pictures into image tokens, with the model of the first stage, or with a new one for a plan."""
        if model is None:
            self._pictures = ImageTokens(stage.config(self._stage_settings))
            self._digest = "untrained"
        else:
            bundle = load_bundle(model)
            self._pictures = load_model(bundle, ImageTokens)
            self._digest = bundle.weights_digest
        self.corpus = self._with_image_tokens(self.corpus, store)

    def _with_image_tokens(self, corpus: Corpus, store: Path) -> Corpus:
        assert self._pictures is not None
        tokenizer = self._pictures.pictures

        def encode(pictures: PictureArray) -> IdArray:
            return encode_pictures(tokenizer, pictures) + FIRST_CODE

        fingerprint = sha256(f"{corpus.facts['fingerprint']} {self._digest}".encode()).hexdigest()
        return with_image_tokens(corpus, store / TOKENS, fingerprint, self.shape, encode)

    def fixed(self) -> dict[str, Any]:
        """The image tokens: their numbers are in the weights."""
        return {"image_tokens": self._digest[:16]}

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """No label smoothing: most image tokens never occur in most places."""
        tokens = math.prod(self.corpus.train.gather_rows("target", np.arange(1)).shape)
        return (
            Choice("loss.smoothing", 0.0, "the probabilities themselves are what counts"),
            Choice("batch.tokens", PICTURES_AT_A_TIME * (tokens + 1), f"{PICTURES_AT_A_TIME} pictures at a time"),
        )

    def config(self, settings: Settings) -> BaseConfig:
        """The preset, with the vocabulary of the captions and the image tokens of the first stage."""
        assert self._pictures is not None
        own = {**settings.model, **self._pictures.config.picture_options()}
        return preset(settings.preset, task=self.task, vocabulary=self.corpus.encoder.size, **own)

    def card(self) -> dict[str, Any]:
        """What the pictures are like, and the words of the captions, if they are few."""
        return {"picture": str(self.shape), "words": self._words}

    @cached_property
    def _words(self) -> list[str] | None:
        train, tokenizer = self.corpus.train, self.corpus.tokenizer
        words: set[str] = set()
        for start in range(0, len(train), 1000):
            some = range(start, min(start + 1000, len(train)))
            for caption in tokenizer.decode([train.example("source", number) for number in some]):
                words.update(words_of(caption))
        return sorted(words) if len(words) <= MOST_WORDS else None

    def model(self, settings: Settings) -> Painter:
        """A new model, with the image tokens of the first stage."""
        assert self._pictures is not None
        model = Painter(self.config(settings))
        model.pictures.load_state_dict(self._pictures.pictures.state_dict())
        return model

    def loss(self, model: Painter, settings: Settings) -> Callable[[Batch], Tensor]:
        """Teacher forcing. Some captions are left out, other ones in every step: see `PaintingOptions.guidance`."""

        def loss(batch: Batch) -> Tensor:
            captions = torch.from_numpy(batch.source).clone()
            left_out = torch.rand(len(captions)) < CAPTIONS_LEFT_OUT
            captions[left_out] = PAD
            captions[left_out, 0] = EOS
            device = device_of(model)
            target = to_device(torch.from_numpy(batch.target_in), device)
            states = model.states(to_device(captions, device), target).flatten(0, 1)
            targets = torch.from_numpy(batch.target_out).flatten()
            return smoothed_cross_entropy(states, model.tokens.weight, targets, settings.loss.smoothing)

        return loss

    def validate(self, model: Painter, count: int) -> Validation:
        """The bits that an image token of validation pictures needs, given the caption and the tokens before it."""
        examples = self.validation_examples(count)
        captions = self.corpus.tokenizer.encode([example.inputs[0] for example in examples])
        scores = TorchPainter(model).score(captions, np.array([example.inputs[1] for example in examples]) - FIRST_CODE)
        total, tokens = math.fsum(map(math.fsum, scores)), sum(map(len, scores))
        certain = sum(value > math.log(0.5) for value in scores[0])
        bits = -total / tokens / math.log(2)
        metrics = {
            "loss": -total / tokens,
            "bits_per_token": bits,
            "samples": [
                {
                    "source": examples[0].inputs[0],
                    "reference": f"{len(scores[0])} of {len(scores[0])} image tokens are more than 50 % probable",
                    "output": f"{certain} of {len(scores[0])} image tokens are more than 50 % probable",
                }
            ],
        }
        return Validation(-bits, metrics)
