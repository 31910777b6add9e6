"""Pictures to image tokens and back, with the first stage of a painter."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch

from jumok.engines.facade import Facade
from jumok.engines.torch_models import TorchEngine, computing
from jumok.errors import InputError
from jumok.model.devices import device_of, to_device
from jumok.model.image_tokens import ImageTokens, PictureTokenizer
from jumok.pictures import PictureEncoder, PictureSource, read_picture

PICTURES_AT_A_TIME = 256
LEAST_ERROR = 1e-10  # the peak signal-to-noise ratio of an exact picture would be infinite

PictureArray = npt.NDArray[np.uint8]  # [B, H, W, C]
Codes = npt.NDArray[np.int64]  # [B, T]


def encode_pictures(tokenizer: PictureTokenizer, pictures: PictureArray) -> Codes:
    """The codes [B, T] of pictures [B, H, W, C]."""
    parts = np.split(pictures, range(PICTURES_AT_A_TIME, len(pictures), PICTURES_AT_A_TIME))
    with torch.inference_mode():
        device = device_of(tokenizer)
        found = [tokenizer.codes(to_device(torch.from_numpy(np.array(part)), device)).cpu().numpy() for part in parts]
    return np.concatenate(found)


def draw_pictures(tokenizer: PictureTokenizer, codes: Codes) -> PictureArray:
    """The pictures [B, H, W, C] that codes [B, T] stand for."""
    parts = np.split(codes, range(PICTURES_AT_A_TIME, len(codes), PICTURES_AT_A_TIME))
    with torch.inference_mode():
        device = device_of(tokenizer)
        drawn = [tokenizer.pictures(to_device(torch.from_numpy(part), device)).cpu().numpy() for part in parts]
        return np.concatenate(drawn)


def require_codes(codes: Any, tokenizer: PictureTokenizer) -> Codes:
    """[B, T] The codes, if they can be those of pictures."""
    tokens, count = math.prod(tokenizer.grid), len(tokenizer.codebook)
    try:
        found = np.asarray(codes)
    except ValueError:  # rows of several lengths
        found = np.empty(0)
    fitting = found.ndim == 2 and found.shape[1] == tokens and found.dtype.kind in "iu"
    if not fitting or not ((found >= 0) & (found < count)).all():
        raise InputError(
            f"`codes` of a picture must be {tokens} numbers from 0 to {count - 1}, one for each of its image tokens."
        )
    return found.astype(np.int64)


def reconstruction_scores(tokenizer: PictureTokenizer, pictures: PictureArray) -> dict[str, float]:
    """How much of pictures is lost on the way to tokens and back: the mean squared error of values from 0 to 1, the
    peak signal-to-noise ratio in decibels; and the share of the codes that these pictures use."""
    codes = encode_pictures(tokenizer, pictures)
    difference = draw_pictures(tokenizer, codes).astype(np.float64) - pictures
    error = float(((difference / 255) ** 2).mean())
    return {
        "psnr": -10 * math.log10(max(error, LEAST_ERROR)),
        "squared_error": error,
        "codes_used": len(np.unique(codes)) / len(tokenizer.codebook),
    }


class TorchImageTokens(TorchEngine):
    """Runs the autoencoder in PyTorch."""

    kind = ImageTokens
    model: ImageTokens

    @computing
    def encode(self, pictures: PictureArray) -> Codes:
        """The codes [B, T] of pictures [B, H, W, C]."""
        return encode_pictures(self.model.pictures, pictures)

    @computing
    def draw(self, codes: Codes) -> PictureArray:
        """The pictures [B, H, W, C] of codes [B, T]."""
        return draw_pictures(self.model.pictures, codes)


class ImageTokenizer(Facade):
    """What `jumok.load` returns for the first stage of a painter."""

    task: ClassVar[str] = "image_tokens"
    engines = "jumok.engines.image_tokens:TorchImageTokens", None
    method = "encode"

    def __init__(self, engine: TorchImageTokens, encoder: PictureEncoder, card: dict[str, Any], path: Path) -> None:
        self.engine, self.encoder, self.card, self.path = engine, encoder, card, path

    def encode(self, pictures: Sequence[PictureSource]) -> Codes:
        """The codes [B, T] of pictures: files, Pillow images or arrays, fitted into the shape of the model's."""
        read = np.stack([read_picture(picture, self.encoder.shape) for picture in pictures])
        codes: Codes = self.engine.encode(read)
        return codes

    def draw(self, codes: Codes) -> PictureArray:
        """The pictures [B, H, W, C] that codes [B, T] stand for."""
        pictures: PictureArray = self.engine.draw(require_codes(codes, self.engine.model.pictures))
        return pictures
