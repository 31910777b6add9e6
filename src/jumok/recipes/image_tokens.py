"""The first stage of a painter: pictures in, a codebook of image tokens out."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from jumok.data.captioned import CAPTIONED_PICTURES, PictureBatch, PictureEpochs, pictures_of
from jumok.data.corpus import Corpus
from jumok.engines.image_tokens import reconstruction_scores
from jumok.model.config.image_tokens import PICTURE_FIELDS, ImageTokensConfig
from jumok.model.devices import device_of, to_device
from jumok.model.image_tokens import ImageTokens
from jumok.pictures import PictureEncoder, PictureShape, picture_from_text
from jumok.recipes.codebook_fit import fit_codebook, revived_codes
from jumok.recipes.first_stage import FirstStageRecipe
from jumok.recipes.recipe import PathLike
from jumok.seeds import bit_stream, derive_seed
from jumok.training.auto import Choice
from jumok.training.progress import Validation
from jumok.training.settings import Settings

FITTED_PATCHES = 100_000  # that the first codebook is made from
REVIVED_EVERY = 50  # steps: codes that nothing uses any more move to where some are missing
REVIVAL_PATCHES = 20_000  # among which a code must be used
PICTURES_AT_A_TIME = 64  # in a batch
PEAK_RATE = 1e-3
EPSILON = 1e-5  # of Adam, which makes full steps of far smaller gradients otherwise
COMMITMENT = 4.0  # weight of the distance between states and codes; less, and training makes k-means worse
SHARE_OF_MINUTES = 0.2  # of both stages; less if validations no longer get better
EXACT = 50.0  # decibels; nobody sees smaller errors, and the training ends
PATIENCE = 3  # validations without a better score
LARGE_SIDE = 40  # pixels; patches of larger pictures are twice as wide


class ImageTokensRecipe(FirstStageRecipe):
    """Trains the autoencoder of pictures; the best one draws them with the smallest error."""

    task, epochs_type = "image_tokens", PictureEpochs
    validation_cost = 0.5

    def __init__(self, data: Sequence[PathLike], valid: Sequence[PathLike] | None = None) -> None:
        super().__init__(data, valid)
        self.kind = replace(CAPTIONED_PICTURES, encoder="pictures")
        self.shape = PictureShape(32, 32, 3)
        self._first: dict[str, Tensor] | None = None

    @classmethod
    def of_corpus(cls, corpus: Corpus, shape: PictureShape, data: Sequence[PathLike]) -> "ImageTokensRecipe":
        """The recipe for pictures that the second stage has prepared."""
        stage = cls(data)
        stage.shape = shape
        middle = (0.5,) * shape.channels
        encoder = PictureEncoder(shape, middle, middle)
        stage.corpus = Corpus(encoder, corpus.train, corpus.valid, {**corpus.facts, "tokens": corpus.facts["examples"]})
        return stage

    @staticmethod
    def settings_within(asked: Settings) -> Settings:
        """The settings of this stage, from those of both: the seed, what is kept and logged, and the length. It has a
        share of the minutes; steps and epochs count in each stage."""
        given = asked.to_dict()
        stop = {name: value for name, value in given["stop"].items() if value is not None}
        if "minutes" in stop:
            stop["minutes"] *= SHARE_OF_MINUTES
        kept = {name: given[name] for name in ("seed", "device", "checkpoint", "validate", "log")}
        own = {name: value for name, value in asked.model.items() if name in PICTURE_FIELDS}
        return Settings.from_dict(
            {**kept, "precision": "float32", "model": own, "stop": {"patience": PATIENCE, **stop}}
        )

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """Everything that `auto` chooses for texts."""
        return (
            Choice("preset", "tiny", "the only size of image tokens"),
            Choice("batch.tokens", PICTURES_AT_A_TIME, "pictures at a time"),
            Choice("optimizer.lr", PEAK_RATE, "suits image tokens"),
            Choice("optimizer.epsilon", EPSILON, "a codebook that is nearly exact from the start stays so"),
        )

    def config(self, settings: Settings) -> ImageTokensConfig:
        """Patches of 4 pixels, of 8 in large pictures, unless the settings say something else."""
        shape = self.shape
        sizes = {"height": shape.height, "width": shape.width, "channels": shape.channels, "patch": patch_of(shape)}
        return ImageTokensConfig(vocabulary=self.corpus.encoder.size, **{**sizes, **settings.model})

    def epochs(self, settings: Settings) -> PictureEpochs:
        """Batches of pictures."""
        assert settings.batch.tokens is not None
        return PictureEpochs(self.corpus, shape=self.shape, tokens=settings.batch.tokens, seed=settings.seed)

    def fit(self, settings: Settings) -> None:
        """Make the codebook that the training begins with."""
        tokenizer = ImageTokens(self.config(settings)).pictures
        count = min(len(self.corpus.train), -(-FITTED_PATCHES // math.prod(tokenizer.grid)))
        some = np.arange(count) * len(self.corpus.train) // count
        with torch.no_grad():
            patches = tokenizer.patches(torch.from_numpy(pictures_of(self.corpus.train, some, self.shape)))
        self._first = fit_codebook(tokenizer, patches.flatten(0, 1).numpy(), settings.seed)

    def model(self, settings: Settings) -> ImageTokens:
        """A new model, with the codebook that was fitted."""
        model = ImageTokens(self.config(settings))
        if self._first is not None:
            model.pictures.load_state_dict(self._first, strict=False)
        return model

    def loss(self, model: nn.Module, settings: Settings) -> Callable[[PictureBatch], Tensor]:
        """The mean squared error of the values of a picture, and the distance between states and their codes."""

        def loss(batch: PictureBatch) -> Tensor:
            pixels = to_device(torch.from_numpy(batch.pixels), device_of(model))
            drawn, states, vectors = model(pixels)
            error = nn.functional.mse_loss(drawn, model.pictures.patches(pixels))  # type: ignore[operator, union-attr]
            distance = nn.functional.mse_loss(states, vectors.detach()) + nn.functional.mse_loss(
                vectors, states.detach()
            )
            return (error + COMMITMENT * distance) * batch.tokens

        return loss

    def after_update(self, model: ImageTokens, settings: Settings, step: int) -> None:
        """Revive codes that are not used by any of some training pictures, which are other ones every time."""
        if step % REVIVED_EVERY:
            return
        tokenizer, train = model.pictures, self.corpus.train
        count = -(-REVIVAL_PATCHES // math.prod(tokenizer.grid))
        chosen = bit_stream(settings.seed, "revival", step).random_raw(count) % np.uint64(len(train))
        pictures = torch.from_numpy(pictures_of(train, np.unique(chosen).astype(np.int64), self.shape))
        with torch.no_grad():
            states = tokenizer.states(tokenizer.patches(to_device(pictures, device_of(model)))).flatten(0, 1)
            codebook = tokenizer.codebook.cpu().numpy()
            moved = revived_codes(codebook, states.cpu().numpy(), derive_seed(settings.seed, "revival", step))
            if moved is not None:
                tokenizer.codebook.copy_(torch.from_numpy(moved))

    def validate(self, model: ImageTokens, count: int) -> Validation:
        """How well validation pictures are drawn from their tokens, and how many of the codes they use."""
        pictures = [picture_from_text(example.inputs[0]) for example in self.validation_examples(count)]
        scores = reconstruction_scores(model.pictures, np.stack(pictures))
        return Validation(min(scores["psnr"], EXACT), {"loss": scores["squared_error"], **scores})


def patch_of(shape: PictureShape) -> int:
    """The width of a patch in pixels."""
    return 4 if max(shape.height, shape.width) <= LARGE_SIDE else 8


def fitted_shape(shape: PictureShape, patch: int | None = None) -> PictureShape:
    """The shape with sides that patches fill, of that width if it is given."""
    patch = patch or patch_of(shape)
    height, width = (max(patch, round(side / patch) * patch) for side in (shape.height, shape.width))
    return PictureShape(height, width, shape.channels)
