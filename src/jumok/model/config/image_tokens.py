"""The config of image tokens, and the fields that a painter's config has of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jumok.errors import ConfigError, require_at_least
from jumok.model.config.base import BaseConfig

PICTURE_FIELDS = ("height", "width", "channels", "patch", "codes", "code_width", "code_blocks")


@dataclass(frozen=True, kw_only=True)
class PictureFields(BaseConfig):
    """How a picture is cut into patches, and how the codes of those are learned."""

    height: int = 32  # of a picture, in pixels
    width: int = 32
    channels: int = 3  # 1 is grey, 3 colour
    patch: int = 4  # pixels from side to side: each patch becomes one image token
    codes: int = 512  # K: rows of the codebook
    code_width: int = 64  # of a code's vector
    code_blocks: int = 1  # residual blocks of convolutions on either side of the codebook

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(2, codes=self.codes)  # one code tells nothing
        if self.height % self.patch or self.width % self.patch:
            raise ConfigError(
                f"A picture of {self.width} × {self.height} pixels cannot be cut into patches of patch={self.patch}. "
                "Use a patch that divides both sides."
            )

    @property
    def grid(self) -> tuple[int, int]:
        """Rows and columns of image tokens."""
        return self.height // self.patch, self.width // self.patch

    @property
    def picture_tokens(self) -> int:
        """Number of image tokens of a picture."""
        rows, columns = self.grid
        return rows * columns

    def picture_options(self) -> dict[str, Any]:
        """The keyword arguments of `PictureTokenizer`, which knows no configs."""
        return {name: getattr(self, name) for name in PICTURE_FIELDS}


@dataclass(frozen=True, kw_only=True)
class ImageTokensConfig(PictureFields):
    """An autoencoder of pictures. Its vocabulary is that of its inputs: bytes."""

    task: str = "image_tokens"
