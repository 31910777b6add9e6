"""Pictures to vectors: every patch of a picture becomes a vector, as every token of a text does.
Axes: B pictures, H height, W width, Ch channels, S patches, N values that a patch sees, D d_model."""

from jaxtyping import Float
from torch import Tensor, nn

from jumok.errors import ShapeError
from jumok.model.dropout import Dropout
from jumok.model.positions import make_positions


def split_into_patches(pictures: Float[Tensor, "B H W Ch"], patch: int, overlap: int = 0) -> Float[Tensor, "B S N"]:
    """The patches of each picture, row by row: squares at a distance of `patch`, which also see `overlap` pixels of
    their neighbours on each side. Beyond the picture everything is 0."""
    batch, height, width, channels = pictures.shape
    beyond = -height % patch, -width % patch
    if overlap or any(beyond):
        pad = (0, 0, overlap, overlap + beyond[1], overlap, overlap + beyond[0])
        pictures = nn.functional.pad(pictures, pad)
    side = patch + 2 * overlap
    squares = pictures.unfold(1, side, patch).unfold(2, side, patch)  # [B, rows, columns, C, side, side]
    return squares.reshape(batch, -1, channels * side * side)


class PatchEmbedder(nn.Module):
    """Patch vector plus position, then dropout: what enters the bottom of the encoder."""

    def __init__(
        self,
        shape: tuple[int, int, int],
        d_model: int,
        *,
        patch: int,
        overlap: int,
        positions: str,
        dropout: float,
    ) -> None:
        super().__init__()
        self.shape, self.patch, self.overlap = shape, patch, overlap
        height, width, channels = shape
        self.tokens = nn.Linear(channels * (patch + 2 * overlap) ** 2, d_model)
        nn.init.xavier_uniform_(self.tokens.weight)
        nn.init.zeros_(self.tokens.bias)
        self.positions = make_positions(positions, d_model, -(-height // patch) * -(-width // patch))
        self.dropout = Dropout(dropout)

    def forward(self, pictures: Float[Tensor, "B H W Ch"]) -> Float[Tensor, "B S D"]:
        if tuple(pictures.shape[1:]) != self.shape:
            raise ShapeError(
                f"Pictures of shape {list(pictures.shape[1:])} do not fit this model, which reads "
                f"{list(self.shape)}: height, width, channels."
            )
        patches = split_into_patches(pictures, self.patch, self.overlap)
        embedded: Tensor = self.dropout(self.positions(self.tokens(patches)))
        return embedded
