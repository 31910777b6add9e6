"""Pictures to vectors: every patch of a picture becomes a vector, as every token of a text does.
Axes: B pictures, H height, W width, Ch channels, S patches, N values that a patch sees, D d_model."""

from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from jumok.errors import ShapeError, require_choice
from jumok.model.config.image_classifier import STEMS
from jumok.model.dropout import Dropout
from jumok.model.positions import make_positions

FEATURES = 128  # of a patch after the last convolution


def split_into_patches(pictures: Float[Tensor, "B H W Ch"], patch: int, overlap: int = 0) -> Float[Tensor, "B S N"]:
    """The patches of each picture, row by row: squares at a distance of `patch`, which also see `overlap` pixels of
    their neighbours on each side. Beyond the picture everything is 0."""
    batch, height, width, channels = pictures.shape
    beyond = -height % patch, -width % patch
    if overlap or any(beyond):
        pad = (0, 0, overlap, overlap + beyond[1], overlap, overlap + beyond[0])
        pictures = nn.functional.pad(pictures, pad)
    side = patch + 2 * overlap
    squares = pictures.unfold(1, side, patch).unfold(2, side, patch)  # [B, rows, columns, Ch, side, side]
    return squares.reshape(batch, -1, channels * side * side)


class Convolutions(nn.Module):
    """Convolutions of 3 × 3 with ReLU that halve height and width until a patch is one place, with twice the features
    each time. They find edges and their corners, which a linear map of patches cannot (Xiao et al. 2021, "Early
    Convolutions Help Transformers See Better")."""

    def __init__(self, channels: int, patch: int) -> None:
        super().__init__()
        widths = [FEATURES >> halving for halving in reversed(range(patch.bit_length()))]
        layers = [_convolution(channels, widths[0]), _convolution(widths[0], widths[1], stride=2)]
        layers.append(_convolution(widths[1], widths[1]))
        layers += [_convolution(*pair, stride=2) for pair in pairwise(widths[1:])]
        self.layers = nn.ModuleList(layers)

    def forward(self, pictures: Float[Tensor, "B H W Ch"]) -> Float[Tensor, "B H2 W2 F"]:
        features = pictures.permute(0, 3, 1, 2)
        for convolution in self.layers:
            features = convolution(features).relu()
        return features.permute(0, 2, 3, 1)


def _convolution(channels: int, features: int, stride: int = 1) -> nn.Conv2d:
    convolution = nn.Conv2d(channels, features, 3, stride=stride, padding=1)
    nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution


class PatchEmbedder(nn.Module):
    """Patch vector plus position, then dropout: what enters the bottom of the encoder."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        d_model: int,
        *,
        stem: str,
        patch: int,
        overlap: int,
        positions: str,
        dropout: float,
    ) -> None:
        super().__init__()
        require_choice("stem", stem, STEMS)
        self.shape = shape
        height, width, channels = shape
        count = -(-height // patch) * -(-width // patch)
        self.features = nn.Identity()
        if stem == "convolution":
            self.features = Convolutions(channels, patch)  # type: ignore[assignment]
            channels, patch, overlap = FEATURES, 1, 0
        self.patch, self.overlap = patch, overlap
        self.tokens = nn.Linear(channels * (patch + 2 * overlap) ** 2, d_model)
        nn.init.xavier_uniform_(self.tokens.weight)
        nn.init.zeros_(self.tokens.bias)
        self.positions = make_positions(positions, d_model, count)
        self.dropout = Dropout(dropout)

    def forward(self, pictures: Float[Tensor, "B H W Ch"]) -> Float[Tensor, "B S D"]:
        if tuple(pictures.shape[1:]) != self.shape:
            raise ShapeError(
                f"Pictures of shape {list(pictures.shape[1:])} do not fit this model, which reads "
                f"{list(self.shape)}: height, width, channels."
            )
        patches = split_into_patches(self.features(pictures), self.patch, self.overlap)
        embedded: Tensor = self.dropout(self.positions(self.tokens(patches)))
        return embedded
