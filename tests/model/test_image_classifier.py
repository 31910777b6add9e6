"""Patches of pictures are what they should be, and the model refuses pictures of another shape."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from jumok.errors import ConfigError, ShapeError
from jumok.model.config import preset
from jumok.model.config.image_classifier import LARGEST_SIDE, ImageClassifierConfig
from jumok.model.image_classifier import ImageClassifier
from jumok.model.patches import FEATURES, PatchEmbedder, split_into_patches

SIZES = {"task": "image_classifier", "d_model": 16, "heads": 2, "d_ff": 32, "encoder_layers": 2, "classes": 3}


def make_model(**changes: object) -> ImageClassifier:
    torch.manual_seed(0)
    return ImageClassifier(preset("tiny", vocabulary=256, **SIZES, **changes)).eval()  # type: ignore[arg-type]


def test_patches_are_the_squares_of_a_picture_row_by_row() -> None:
    picture = torch.arange(2 * 6 * 4 * 3, dtype=torch.float32).view(2, 6, 4, 3)
    patches = split_into_patches(picture, 2)
    assert patches.shape == (2, 6, 12)
    assert torch.equal(patches[1, 3].view(3, 2, 2), picture[1, 2:4, 2:4].permute(2, 0, 1))


def test_overlapping_patches_see_their_neighbours_and_zeros_beyond() -> None:
    picture = torch.arange(1.0, 26.0).view(1, 5, 5, 1)
    patches = split_into_patches(picture, 2, 1).view(3, 3, 4, 4)  # 5 is no multiple of 2: the last reach beyond
    padded = torch.nn.functional.pad(picture[0, :, :, 0], (1, 2, 1, 2))
    for row in range(3):
        for column in range(3):
            assert torch.equal(patches[row, column], padded[2 * row : 2 * row + 4, 2 * column : 2 * column + 4])


def test_pictures_are_filled_up_to_whole_patches_on_each_side_as_needed() -> None:
    picture = torch.ones(1, 5, 8, 1)
    assert split_into_patches(picture, 4).sum(2).tolist() == [[16, 16, 4, 4]]
    assert split_into_patches(picture.transpose(1, 2), 4).sum(2).tolist() == [[16, 4, 16, 4]]


def test_patches_hold_every_pixel_once_without_overlap() -> None:
    picture = torch.randn(1, 7, 9, 3)
    values = split_into_patches(picture, 4).flatten()
    assert torch.equal(values[values != 0].sort().values, picture.flatten().sort().values)


def test_without_positions_the_order_of_patches_does_not_matter_and_with_them_it_does() -> None:
    model = make_model(height=8, width=8, patch=4, overlap=0)
    picture = torch.randn(1, 8, 8, 1)
    turned = picture.roll(4, 1)  # whole rows of patches change places
    assert not torch.allclose(model(picture), model(turned), atol=1e-4)
    torch.nn.init.zeros_(model.embed.positions.weight)  # type: ignore[arg-type]
    assert torch.allclose(model(picture), model(turned), atol=1e-5)


def test_a_picture_is_scored_as_in_a_batch() -> None:
    model = make_model(height=9, width=6, channels=3, patch=4, overlap=2)
    pictures = torch.randn(5, 9, 6, 3)
    together = model(pictures)
    assert together.shape == (5, 3)
    assert torch.allclose(together[2:3], model(pictures[2:3]), atol=1e-5)


def test_convolutions_halve_a_picture_and_see_across_patches() -> None:
    model = make_model(height=9, width=6, channels=3, patch=4, overlap=0, stem="convolution")
    pictures = torch.randn(2, 9, 6, 3)
    assert model.embed(pictures).shape == (2, 3 * 2, 16)
    changed = pictures.clone()
    changed[:, 4, 4] += 1  # the first pixel of another patch
    first = [model.embed(each)[:, 0] for each in (pictures, changed)]
    assert not torch.equal(*first)
    with pytest.raises(
        ConfigError, match=r"patch=6 is not possible with convolutions.* use one of 2, 4, 8, 16, or stem"
    ):
        make_model(patch=6, stem="convolution")


@pytest.mark.parametrize("patch", [2, 4, 8, 16])
def test_convolutions_make_one_place_of_every_patch_with_more_features_at_each_halving(patch: int) -> None:
    model = make_model(height=33, width=16, patch=patch, overlap=0, stem="convolution")
    convolutions = [each for each in model.modules() if isinstance(each, nn.Conv2d)]
    assert [each.stride[0] for each in convolutions].count(2) == patch.bit_length() - 1
    assert convolutions[-1].out_channels == FEATURES
    widths = [each.out_channels for each in convolutions if each.stride[0] == 2]
    assert all(2 * narrow == wide for narrow, wide in pairwise(widths))
    assert model.embed(torch.randn(1, 33, 16, 1)).shape == (1, model.config.rows * model.config.columns, 16)


def test_impossible_shapes_are_refused() -> None:
    with pytest.raises(ShapeError, match=r"\[8, 9, 1\] do not fit this model, which reads \[8, 8, 1\]"):
        make_model(height=8, width=8)(torch.zeros(1, 8, 9, 1))
    with pytest.raises(ConfigError, match="1 or 3 channels"):
        make_model(channels=2)
    with pytest.raises(ConfigError, match="patch=9 is larger than pictures of 8 × 8"):
        make_model(height=8, width=8, patch=9)
    options = {"patch": 4, "overlap": 0, "positions": "learned", "dropout": 0.0}
    with pytest.raises(ConfigError, match=r"^stem='none' is unknown. Known: convolution, linear\.$"):
        PatchEmbedder((8, 8, 1), 16, stem="none", **options)  # type: ignore[arg-type]


def test_the_largest_pictures_and_patches_are_allowed() -> None:
    config = ImageClassifierConfig(height=LARGEST_SIDE, width=8, patch=LARGEST_SIDE)
    assert (config.rows, config.columns) == (1, 1)
    with pytest.raises(ConfigError, match="Pictures of 8 × 4097 with 1 channels are not possible: at most 4096 "):
        ImageClassifierConfig(height=LARGEST_SIDE + 1, width=8)
