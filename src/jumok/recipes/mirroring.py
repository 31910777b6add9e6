"""Whether mirrored pictures mean the same, measured on the pictures themselves: the mirror image of a digit is no
digit, that of a cat is a cat."""

import numpy as np
import numpy.typing as npt

from jumok.data.corpus import Corpus
from jumok.pictures import PictureEncoder

COMPARED, TESTED = 2000, 500  # pictures
SIDE = 16  # pictures are compared at about this size
MOST_LOST = 0.05  # accuracy that mirroring may cost

Vectors = npt.NDArray[np.float32]


def mirroring_keeps_the_meaning(corpus: Corpus) -> tuple[bool, str]:
    """Whether a picture finds its class by its nearest neighbour as often when it is mirrored, and how often it does.
    Where the pictures of a class all look the same way, as digits or shoes of a catalogue, it does not."""
    assert isinstance(corpus.encoder, PictureEncoder)
    chosen = np.unique(np.linspace(0, len(corpus.train) - 1, COMPARED + TESTED).astype(np.int64))
    is_tested = np.arange(len(chosen)) % 5 == 0
    known, tested = chosen[~is_tested], chosen[is_tested]
    if not len(known):
        return False, "too few pictures to know whether they may be"
    shape = corpus.encoder.shape

    def pictures(indices: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
        step = max(1, max(shape.height, shape.width) // SIDE)
        rows = corpus.train.gather_rows("picture", indices).reshape(-1, *shape.dimensions)
        return rows[:, ::step, ::step]

    labels = corpus.train.gather("label", known)[0]
    wanted = corpus.train.gather("label", tested)[0]
    compared, plain = _vectors(pictures(known)), pictures(tested)
    right = [
        float((labels[_nearest(_vectors(each), compared)] == wanted).mean()) for each in (plain, plain[:, :, ::-1])
    ]
    why = f"nearest neighbours recognise {right[0]:.0%} of the pictures, mirrored {right[1]:.0%}"
    return right[1] >= right[0] - MOST_LOST, why


def _vectors(pictures: npt.NDArray[np.uint8]) -> Vectors:
    vectors: Vectors = pictures.reshape(len(pictures), -1).astype(np.float32)
    return vectors


def _nearest(tested: Vectors, known: Vectors) -> npt.NDArray[np.int64]:
    """[B] The number of the nearest vector, for each that is tested."""
    distances = (known**2).sum(1) - 2 * tested @ known.T
    result: npt.NDArray[np.int64] = distances.argmin(1)
    return result
