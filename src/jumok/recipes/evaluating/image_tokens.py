"""How much of pictures image tokens keep."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from jumok.data.reading.directories import files_of_classes
from jumok.data.reading.pictures import is_picture_name
from jumok.engines.image_tokens import ImageTokenizer, reconstruction_scores
from jumok.errors import InputError
from jumok.pictures import read_picture
from jumok.recipes.evaluating.evaluation import Evaluation, only_file


def evaluate(model: ImageTokenizer, files: Sequence[Path]) -> Evaluation:
    """The error of the pictures of a directory that are drawn from their image tokens, and how many codes they use."""
    directory = only_file(files)
    paths = sorted(filter(is_picture_name, files_of_classes(directory))) if directory.is_dir() else []
    if not paths:
        raise InputError(f"{directory}: is not a directory with pictures.")
    pictures = np.stack([read_picture(path, model.encoder.shape) for path in paths])
    scores = reconstruction_scores(model.engine.model.pictures, pictures)
    return Evaluation({"pictures": len(paths), **scores}, reconstruction_lines(scores, len(paths)))


def reconstruction_lines(scores: dict[str, float], pictures: int) -> list[str]:
    """The scores of `reconstruction_scores` as text."""
    return [
        f"PSNR         {scores['psnr']:8.1f}  decibels, pictures drawn from their own tokens",
        f"codes used   {scores['codes_used']:8.1%}  by {pictures:,} pictures",
    ]
