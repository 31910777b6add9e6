"""Image tokens, positions in a grid, and the painter's model."""

import pytest
import torch

from jumok.errors import ConfigError, ShapeError
from jumok.model.config.image_tokens import ImageTokensConfig
from jumok.model.config.painter import PainterConfig
from jumok.model.image_tokens import ConvolutionBlock, ImageTokens, PictureTokenizer
from jumok.model.painter import FIRST_CODE, Painter
from jumok.model.positions import GridPositions
from jumok.tokenizer import BOS, EOS

SIZES = {"d_model": 32, "heads": 2, "d_ff": 48, "dropout": 0.0, "norm": "pre"}
PICTURE = {"height": 8, "width": 12, "channels": 3, "patch": 4, "codes": 16, "code_width": 48, "code_blocks": 1}


def random_pixels(count: int = 2) -> torch.Tensor:
    return torch.randint(0, 256, (count, 8, 12, 3), dtype=torch.uint8)


def exact_tokenizer(pixels: torch.Tensor) -> PictureTokenizer:
    """A tokenizer whose codes are the patches of these pictures."""
    tokenizer = PictureTokenizer(**PICTURE)
    with torch.no_grad():
        for linear in (tokenizer.into, tokenizer.out):
            linear.weight.copy_(torch.eye(48))
            linear.bias.zero_()
        tokenizer.codebook[:12] = tokenizer.patches(pixels).flatten(0, 1)
        tokenizer.codebook[12:] = 9.0
    return tokenizer


def test_patches_are_cut_row_by_row_and_put_together_again() -> None:
    torch.manual_seed(1)
    pixels = random_pixels()
    tokenizer = exact_tokenizer(pixels)
    assert tokenizer.codes(pixels).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert tokenizer.pictures(tokenizer.codes(pixels)).equal(pixels)
    first = tokenizer.patches(pixels)[0, 1].view(4, 4, 3)
    assert first.allclose(pixels[0, :4, 4:8].float() / 127.5 - 1)


def test_the_nearest_code_is_found() -> None:
    torch.manual_seed(2)
    tokenizer = PictureTokenizer(**PICTURE)
    states = torch.randn(2, 6, 48)
    assert tokenizer.nearest(states).equal(torch.cdist(states, tokenizer.codebook[None]).argmin(2))


def test_gradients_reach_the_encoder_the_codebook_and_the_decoder() -> None:
    torch.manual_seed(3)
    model = ImageTokens(ImageTokensConfig(vocabulary=256, **PICTURE))
    pixels = random_pixels()
    drawn, _, _ = model(pixels)
    (drawn - model.pictures.patches(pixels)).square().mean().backward()
    for name in ("into.weight", "codebook", "out.weight"):
        gradient = model.pictures.get_parameter(name).grad
        assert gradient is not None
        assert gradient.abs().sum() > 0


@pytest.mark.parametrize("patch", [3, 5, 8])  # of 12 × 8: 3 divides the width, 8 the height
def test_a_patch_must_divide_both_sides_of_a_picture(patch: int) -> None:
    cut = f"A picture of 12 × 8 pixels cannot be cut into patches of patch={patch}"
    with pytest.raises(ConfigError, match=rf"^{cut}\. Use a patch that divides both sides\.$"):
        PainterConfig(vocabulary=9, **SIZES, **{**PICTURE, "patch": patch})


def test_a_place_of_the_grid_is_its_row_plus_its_column() -> None:
    grid = GridPositions(2, 3, 8)
    added = grid(torch.zeros(1, 6, 8))[0]
    assert added[4].equal(grid.rows[1] + grid.columns[1])
    assert grid(torch.zeros(1, 2, 8), 4).equal(added[None, 4:6])
    with pytest.raises(ShapeError, match="7 image tokens do not fit a picture of 6"):
        grid(torch.zeros(1, 1, 8), 6)


def test_positions_of_a_grid_begin_half_as_strong_as_tokens_and_say_their_sizes() -> None:
    torch.manual_seed(5)
    grid = GridPositions(200, 300, 64)
    for table in (grid.rows, grid.columns):
        assert abs(float(table.detach().std()) - 0.5) < 0.02
    assert grid.extra_repr() == "rows=200, columns=300, d_model=64"
    for name in ("rows", "columns", "d_model"):
        sizes = {"rows": 2, "columns": 3, "d_model": 8, name: 0}
        with pytest.raises(ConfigError, match=f"{name}=0 must be a whole number, at least 1"):
            GridPositions(**sizes)
    with pytest.raises(ShapeError):
        grid(torch.zeros(1, 1, 64), -1)


def painter() -> Painter:
    torch.manual_seed(4)
    return Painter(PainterConfig(vocabulary=20, encoder_layers=1, decoder_layers=2, **SIZES, **PICTURE)).eval()


def test_a_painter_decodes_with_a_cache_as_without() -> None:
    model = painter()
    captions = torch.tensor([[5, 6, 7, EOS], [8, EOS, 0, 0]])
    ids = torch.cat((torch.full((2, 1), BOS), torch.randint(FIRST_CODE, FIRST_CODE + 16, (2, 5))), 1)
    full = model(captions, ids)
    cache = model.remember(model.encode(captions))
    for position in range(6):
        states, cache = model.decode(ids[:, position : position + 1], cache)
        torch.testing.assert_close(model.logits(states)[:, 0], full[:, position])


def test_the_tokenizer_of_pictures_is_not_trained_with_the_painter() -> None:
    model = painter()
    assert not any(parameter.requires_grad for parameter in model.pictures.parameters())
    assert all(parameter.requires_grad for parameter in model.tokens.parameters())


def test_a_block_adds_to_its_input() -> None:
    block, x = ConvolutionBlock(3), torch.randn(2, 3, 4, 5)
    torch.nn.init.ones_(block.out.bias)  # type: ignore[arg-type]
    assert torch.equal(block(x), x + 1)


@pytest.mark.parametrize(("value", "pixel"), [(-5.0, 0), (-1.5, 0), (0.0, 128), (1.5, 255), (5.0, 255)])
def test_values_beyond_black_and_white_are_black_and_white(value: float, pixel: int) -> None:
    tokenizer = PictureTokenizer(height=4, width=6, channels=3, patch=2, codes=5, code_width=4, code_blocks=1)
    torch.nn.init.zeros_(tokenizer.out.weight)
    torch.nn.init.constant_(tokenizer.out.bias, value)
    pictures = tokenizer.pictures(torch.tensor([[0, 1, 2, 3, 4, 0]]))
    assert pictures.shape == (1, 4, 6, 3)
    assert pictures.unique().tolist() == [pixel]


def test_choosing_a_code_passes_the_gradient_on_and_changes_no_value() -> None:
    model = ImageTokens(ImageTokensConfig(vocabulary=256, **PICTURE))  # type: ignore[arg-type]
    drawn, states, vectors = model(random_pixels())
    torch.testing.assert_close(drawn, model.pictures.draw(vectors))
    (gradient,) = torch.autograd.grad(drawn.sum(), states)
    expected = model.pictures.out.weight.sum(0).expand_as(gradient)  # blocks begin as the identity
    torch.testing.assert_close(gradient, expected)


def test_padding_of_a_caption_changes_nothing() -> None:
    model = painter()
    alone, tokens = torch.tensor([[5, 6, EOS]]), torch.tensor([[BOS, FIRST_CODE, FIRST_CODE + 3]])
    padded = torch.tensor([[5, 6, EOS, 0, 0], [7, 8, 9, 10, EOS]])
    found = model(padded, tokens.repeat(2, 1))
    torch.testing.assert_close(found[:1], model(alone, tokens), atol=1e-5, rtol=1e-4)
    assert torch.equal(model.embed_target(tokens), model.embed_target(tokens, 0))
