"""The config of an image classifier."""

from __future__ import annotations

from dataclasses import dataclass

from jumok.errors import ConfigError
from jumok.model.config.base import ModelConfig

LARGEST_SIDE = 4096
STEMS = ("linear", "convolution")
HALVED = (2, 4, 8, 16)  # sizes of patches that convolutions can make


@dataclass(frozen=True, kw_only=True)
class ImageClassifierConfig(ModelConfig):
    """An encoder of patches: squares of a picture, each a vector."""

    task: str = "image_classifier"
    vocabulary: int = 256  # values of a byte
    encoder_layers: int = 6
    classes: int = 2  # C
    height: int = 28  # of a picture, in pixels
    width: int = 28
    channels: int = 1  # 1: grey, 3: colour
    stem: str = "linear"  # linear: a patch's pixels, the Vision Transformer | convolution: convolutions instead
    patch: int = 4  # distance between two patches, in pixels
    overlap: int = 2  # pixels of its neighbours that a patch sees on each side
    mirror: bool = False  # mirrored pictures mean the same: the scores of both are averaged
    positions: str = "learned"

    choices = {**ModelConfig.choices, "stem": STEMS}  # noqa: RUF012 (ClassVar above)
    may_be_zero = frozenset({"overlap"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if max(self.height, self.width) > LARGEST_SIDE or self.channels not in (1, 3):
            raise ConfigError(
                f"Pictures of {self.width} × {self.height} with {self.channels} channels are not possible: at most "
                f"{LARGEST_SIDE} pixels a side, and 1 or 3 channels."
            )
        if self.stem == "convolution" and self.patch not in HALVED:
            raise ConfigError(
                f"patch={self.patch} is not possible with convolutions, which halve a picture some times: use one of "
                f"{', '.join(map(str, HALVED))}, or stem=linear."
            )
        if self.patch > max(self.height, self.width):
            raise ConfigError(f"patch={self.patch} is larger than pictures of {self.width} × {self.height} pixels.")

    @property
    def rows(self) -> int:
        """Rows of patches. The last may reach beyond the picture."""
        return -(-self.height // self.patch)

    @property
    def columns(self) -> int:
        """Columns of patches. The last may reach beyond the picture."""
        return -(-self.width // self.patch)
