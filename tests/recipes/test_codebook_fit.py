"""The codebook that a training of image tokens begins with."""

import numpy as np
import torch

from jumok.engines.image_tokens import reconstruction_scores
from jumok.model.image_tokens import PictureTokenizer
from jumok.recipes.codebook_fit import fit_codebook, k_means, revived_codes


def make_tokenizer(pictures: np.ndarray, codes: int, code_width: int = 20) -> PictureTokenizer:  # type: ignore[type-arg]
    height, width, channels = pictures.shape[1:]
    sizes = {"height": height, "width": width, "channels": channels, "codes": codes, "code_width": code_width}
    tokenizer = PictureTokenizer(patch=4, code_blocks=1, **sizes)
    patches = tokenizer.patches(torch.from_numpy(pictures)).flatten(0, 1).numpy()
    tokenizer.load_state_dict(fit_codebook(tokenizer, patches, seed=1), strict=False)
    return tokenizer


def test_pictures_of_few_kinds_of_patches_are_drawn_exactly_before_any_training() -> None:
    rng = np.random.default_rng(1)
    kinds = rng.integers(0, 256, (10, 4, 4, 1), np.uint8)
    pictures = np.stack([np.concatenate((kinds[a], kinds[b])) for a, b in rng.integers(0, 10, (50, 2))])
    scores = reconstruction_scores(make_tokenizer(pictures, codes=16), pictures)
    assert scores["squared_error"] < 1e-6
    assert scores["codes_used"] == 10 / 16


def test_every_code_is_used_where_there_are_more_patches_than_codes() -> None:
    pictures = np.random.default_rng(2).integers(0, 256, (40, 8, 8, 3), np.uint8)
    scores = reconstruction_scores(make_tokenizer(pictures, codes=32, code_width=64), pictures)
    assert scores["codes_used"] > 0.9


def test_a_single_kind_of_patch_is_enough() -> None:
    pictures = np.full((3, 4, 8, 1), 77, np.uint8)
    assert reconstruction_scores(make_tokenizer(pictures, codes=4), pictures)["squared_error"] < 1e-5


def test_k_means_finds_clusters_and_repeats_itself() -> None:
    rng = np.random.default_rng(3)
    truth = np.array([[0, 0], [10, 0], [0, 10]], np.float32)
    points = (truth[rng.integers(0, 3, 300)] + rng.normal(0, 0.1, (300, 2))).astype(np.float32)
    centres, again = (k_means(points, np.ones(300, np.float32), 3, seed=5) for _ in range(2))
    assert (centres == again).all()
    assert all(np.linalg.norm(centres - each, axis=1).min() < 0.1 for each in truth)


CORNERS = np.array([[0, 0], [10, 0], [0, 10], [10, 10]], np.float32)


def test_a_code_that_nothing_uses_moves_to_where_one_is_missing() -> None:
    codebook = np.array([[0, 0], [99, 99], [10, 0], [98, 98]], np.float32)
    moved, again = (revived_codes(codebook, np.repeat(CORNERS, 5, axis=0), seed=1) for _ in range(2))
    assert moved is not None
    assert (moved == again).all()  # type: ignore[operator]
    assert (moved[[0, 2]] == codebook[[0, 2]]).all()
    assert {tuple(code) for code in moved[[1, 3]].tolist()} == {(0.0, 10.0), (10.0, 10.0)}


def test_codes_that_nothing_needs_stay() -> None:
    """Two codes for equal patches would only make pictures less predictable."""
    spare = np.concatenate((CORNERS, CORNERS[:2] + 99))
    assert revived_codes(spare, np.repeat(CORNERS, 5, axis=0) + 0.01, seed=1) is None
    assert revived_codes(CORNERS, np.repeat(CORNERS, 5, axis=0) + 3, seed=1) is None  # all are used
