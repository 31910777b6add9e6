"""Pictures as image tokens: an autoencoder whose middle is a codebook (van den Oord et al., 2017).
Axes: B pictures of H × W pixels and C channels, R rows and N columns of patches, T = R · N tokens, P values of a patch,
D width of a code, K codes."""

import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from jumok.model.config.base import BaseConfig, require_config
from jumok.model.config.image_tokens import ImageTokensConfig

_ROWS_AT_A_TIME = 4096  # patches whose distances to all codes exist at the same time


class ConvolutionBlock(nn.Module):
    """x + a function of the patch and its eight neighbours; it begins as the identity."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.neighbours = nn.Conv2d(width, width, 3, padding=1)
        self.out = nn.Conv2d(width, width, 1)
        nn.init.zeros_(self.out.weight)
        assert self.out.bias is not None
        nn.init.zeros_(self.out.bias)

    def forward(self, x: Float[Tensor, "B D R N"]) -> Float[Tensor, "B D R N"]:
        changed: Tensor = self.out(torch.relu(self.neighbours(torch.relu(x))))
        return x + changed


class PictureTokenizer(nn.Module):
    """Cuts pictures into patches, finds the nearest code of each, and draws pictures from codes."""

    def __init__(
        self, *, height: int, width: int, channels: int, patch: int, codes: int, code_width: int, code_blocks: int
    ) -> None:
        super().__init__()
        self.shape, self.patch = (height, width, channels), patch
        self.grid = height // patch, width // patch
        values = patch * patch * channels
        self.into = nn.Linear(values, code_width)
        self.encoder = nn.Sequential(*(ConvolutionBlock(code_width) for _ in range(code_blocks)))
        self.codebook = nn.Parameter(torch.randn(codes, code_width))
        self.decoder = nn.Sequential(*(ConvolutionBlock(code_width) for _ in range(code_blocks)))
        self.out = nn.Linear(code_width, values)

    def patches(self, pixels: UInt8[Tensor, "B H W C"]) -> Float[Tensor, "B T P"]:
        """The values of each patch, from -1 to 1."""
        rows, columns = self.grid
        cut = pixels.view(-1, rows, self.patch, columns, self.patch, self.shape[2]).transpose(2, 3)
        return cut.reshape(len(pixels), rows * columns, -1).float() / 127.5 - 1

    def states(self, patches: Float[Tensor, "B T P"]) -> Float[Tensor, "B T D"]:
        """What the encoder makes of each patch, to be compared with the codes."""
        return self._over_grid(self.encoder, self.into(patches))

    def nearest(self, states: Float[Tensor, "B T D"]) -> Int[Tensor, "B T"]:
        """The code whose vector is nearest to each state."""
        half_squares = self.codebook.square().sum(1) / 2
        flat = states.flatten(0, 1)
        found = [
            torch.addmm(half_squares, part, self.codebook.t(), alpha=-1).argmin(1)
            for part in torch.split(flat, _ROWS_AT_A_TIME)
        ]
        return torch.cat(found).view(states.shape[:2])

    def draw(self, vectors: Float[Tensor, "B T D"]) -> Float[Tensor, "B T P"]:
        """The patches that the decoder draws from the vectors of codes; values outside -1 … 1 are possible."""
        drawn: Tensor = self.out(self._over_grid(self.decoder, vectors))
        return drawn

    def codes(self, pixels: UInt8[Tensor, "B H W C"]) -> Int[Tensor, "B T"]:
        """The image tokens of pictures, row by row."""
        return self.nearest(self.states(self.patches(pixels)))

    def pictures(self, codes: Int[Tensor, "B T"]) -> UInt8[Tensor, "B H W C"]:
        """The pictures that image tokens stand for."""
        values = ((self.draw(self.codebook[codes]).clamp(-1, 1) + 1) * 127.5).round().to(torch.uint8)
        rows, columns = self.grid
        cut = values.view(-1, rows, columns, self.patch, self.patch, self.shape[2]).transpose(2, 3)
        return cut.reshape(-1, *self.shape)

    def _over_grid(self, blocks: nn.Sequential, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        grid = x.transpose(1, 2).reshape(len(x), -1, *self.grid)
        changed: Tensor = blocks(grid)
        return changed.flatten(2).transpose(1, 2)


class ImageTokens(nn.Module):
    """The first stage of a painter: the tokenizer of pictures, and what it is trained by."""

    def __init__(self, config: BaseConfig) -> None:
        super().__init__()
        self.config = config = require_config(config, ImageTokensConfig)
        self.pictures = PictureTokenizer(**config.picture_options())

    def forward(
        self, pixels: UInt8[Tensor, "B H W C"]
    ) -> tuple[Float[Tensor, "B T P"], Float[Tensor, "B T D"], Float[Tensor, "B T D"]]:
        """The drawn patches, the encoder's states, and the codes' vectors. Choosing a code has no gradient: the one at
        the code's vector is passed on to the state (straight-through), and to the vector itself."""
        tokenizer = self.pictures
        states = tokenizer.states(tokenizer.patches(pixels))
        vectors = tokenizer.codebook[tokenizer.nearest(states.detach())]
        return tokenizer.draw(vectors + states - states.detach()), states, vectors
