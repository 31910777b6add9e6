"""Batches of pictures, varied at random in each epoch: moved by a few pixels, mirrored, a part of them hidden, mixed.
All is done on bytes, a whole batch at a time; what is drawn depends on (seed, epoch, batch) alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.batch import IdArray, Rows
from jumok.data.buckets import Lengths
from jumok.data.corpus import Corpus
from jumok.data.epochs import CorpusEpochs
from jumok.data.examples import Example, ExampleKind, Paths, Rejections
from jumok.data.reading.options import ReadingOptions
from jumok.data.reading.pictures import read_labelled_pictures, survey_pictures
from jumok.data.store import Indices
from jumok.pictures import PictureEncoder, PictureShape
from jumok.seeds import bit_stream

PictureArray = npt.NDArray[np.uint8]  # [B, H, W, C]

SMALLEST_ERASED, LARGEST_ERASED = 1 / 7, 3 / 7  # of the side of a picture


def learn_picture_encoder(
    examples: Callable[[], Iterator[Example]], _size: int | None, _seed: int
) -> tuple[PictureEncoder, str]:
    """Mean and deviation of the values of the pictures."""
    return PictureEncoder.fit(example.inputs[0] for example in examples()), ""


def read_surveyed(paths: Paths, rejections: Rejections) -> Iterator[Example]:
    """Labelled pictures, in the shape that suits them."""
    survey = survey_pictures(paths)
    return read_labelled_pictures(paths, rejections, shape=survey.shape, why=survey.why)


LABELLED_PICTURES = ExampleKind(
    name="pictures",
    columns=("picture",),
    pictures=("picture",),
    files="a directory with one directory of pictures a class, a table of paths and labels, or two IDX files",
    read=read_surveyed,
    learn_encoder=learn_picture_encoder,
    encoder="pictures",
    labelled=True,
)


@dataclass(frozen=True)
class PictureBatch(Rows):
    """Pictures and the numbers of their classes."""

    pictures: PictureArray  # [B, H, W, C]
    labels: IdArray  # [B]
    partners: IdArray  # [B] classes of the pictures that these are mixed with
    shares: npt.NDArray[np.float32]  # [B] of their own class in each mixture; 1 is not mixed
    lines: IdArray

    @property
    def tokens(self) -> int:
        """Number of labels to predict: one a picture."""
        return len(self.labels)


class PictureEpochs(CorpusEpochs):
    """Batches of pictures with labels; `batch.tokens` is their number in a batch. `shift`: they are moved by up to so
    many pixels; `mirror`: half of them are mirrored; `erase`: this share of them has a rectangle of noise; `mixup`:
    they are mixed in pairs, see `mixed`."""

    columns = ("picture",)
    augmentations = ("shift", "mirror", "erase", "mixup")

    def __init__(
        self,
        corpus: Corpus,
        *,
        shift: int = 0,
        mirror: bool = False,
        erase: float = 0.0,
        mixup: float = 0.0,
        **options: Any,
    ) -> None:
        super().__init__(corpus, **options)
        self.shift, self.mirror, self.erase, self.mixup = shift, mirror, erase, mixup
        assert isinstance(corpus.encoder, PictureEncoder)
        self.shape = corpus.encoder.shape

    def _lengths(self, examples: slice) -> tuple[Lengths, ...]:
        return (np.ones_like(self.corpus.train.lengths("picture", examples)),)

    def _collate(self, epoch: int, number: int, indices: Indices) -> PictureBatch:
        pictures, bits = self._pictures(indices), bit_stream(self.seed, "pictures", epoch, number)
        if self.shift:
            pictures = shifted(pictures, bits, self.shift)
        if self.mirror:
            pictures = mirrored(pictures, bits)
        if self.erase:
            pictures = erased(pictures, bits, self.erase)
        batch = self._batch(pictures, indices)
        return mixed(batch, bits, self.mixup) if self.mixup else batch

    def _plain(self, indices: Indices) -> PictureBatch:
        return self._batch(self._pictures(indices), indices)

    def _make(self, texts: Sequence[tuple[IdArray, IdArray]], indices: Indices) -> PictureBatch:
        raise NotImplementedError  # pictures are gathered as rows

    def _pictures(self, indices: Indices) -> PictureArray:
        return self.corpus.train.gather_rows("picture", indices).reshape(-1, *self.shape.dimensions)

    def _batch(self, pictures: PictureArray, indices: Indices) -> PictureBatch:
        labels = self._column("label", indices)
        shares = np.ones(len(labels), np.float32)
        return PictureBatch(pictures, labels, labels, shares, self._column("line", indices))


def _numbers(bits: np.random.Philox, count: int, below: int) -> npt.NDArray[np.int64]:
    """So many whole numbers from 0 to `below` - 1. Raw bits: other ways to draw may change with a version of NumPy."""
    return (bits.random_raw(count) >> np.uint64(33)).astype(np.int64) % below


def _chosen(bits: np.random.Philox, count: int, share: float) -> npt.NDArray[np.int64]:
    """The numbers of a random share of so many examples."""
    return np.flatnonzero(bits.random_raw(count) < share * 2**64)


def shifted(pictures: PictureArray, bits: np.random.Philox, most: int) -> PictureArray:
    """Each picture moved by up to `most` pixels in both directions; what comes in repeats its edge."""
    count, height, width, _ = pictures.shape
    padded = np.pad(pictures, ((0, 0), (most, most), (most, most), (0, 0)), mode="edge")
    down, right = (_numbers(bits, count, 2 * most + 1)[:, None] for _ in range(2))
    rows, columns = down + np.arange(height), right + np.arange(width)
    moved: PictureArray = padded[np.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :]]
    return moved


def mirrored(pictures: PictureArray, bits: np.random.Philox) -> PictureArray:
    """Half of the pictures with left and right exchanged."""
    chosen = _chosen(bits, len(pictures), 0.5)
    result = pictures.copy()
    result[chosen] = pictures[chosen, :, ::-1]
    return result


def erased(pictures: PictureArray, bits: np.random.Philox, share: float) -> PictureArray:
    """A share of the pictures with one rectangle of random bytes each (random erasing, Zhong et al. 2017)."""
    chosen = _chosen(bits, len(pictures), share)
    inside = [_spans(bits, len(chosen), side) for side in pictures.shape[1:3]]
    hidden = inside[0][:, :, None] & inside[1][:, None, :]
    some = pictures[chosen]
    noise = bits.random_raw(-(-some.size // 8)).view(np.uint8)[: some.size].reshape(some.shape)
    result = pictures.copy()
    result[chosen] = np.where(hidden[..., None], noise, some)
    return result


def mixed(batch: PictureBatch, bits: np.random.Philox, concentration: float) -> PictureBatch:
    """Each picture mixed with another one of the batch (mixup, Zhang et al. 2018), all by the same share. It is drawn
    from Beta(concentration, concentration), so that it is most often close to 0 or 1."""
    share = _beta(bits, concentration)
    others = bits.random_raw(len(batch.labels)).argsort(kind="stable")
    mixture = share * batch.pictures.astype(np.float32) + (1 - share) * batch.pictures[others].astype(np.float32)
    return replace(
        batch,
        pictures=np.rint(mixture).astype(np.uint8),
        partners=batch.labels[others],
        shares=np.full_like(batch.shares, share),
    )


def _beta(bits: np.random.Philox, concentration: float) -> float:
    """A number from 0 to 1, of the symmetric beta distribution with a concentration of at most 1 (Jöhnk 1964)."""
    while True:
        one, other = (bits.random_raw(2) / 2.0**64) ** (1 / concentration)
        if 0 < one + other <= 1:
            return float(one / (one + other))


def _spans(bits: np.random.Philox, count: int, side: int) -> npt.NDArray[np.bool_]:
    """[count, side] Where a random stretch of a side is."""
    least, most = max(1, round(SMALLEST_ERASED * side)), max(1, round(LARGEST_ERASED * side))
    length = least + _numbers(bits, count, most - least + 1)
    start = _numbers(bits, count, 1 << 30) % (side - length + 1)
    places = np.arange(side)
    return (places >= start[:, None]) & (places < (start + length)[:, None])


def reading_pictures(
    options: ReadingOptions, shape: PictureShape, why: str, size: int | None, digest: str
) -> ExampleKind:
    """Labelled pictures fitted into a shape; `size` is the side that was asked for, `digest` that of named files."""
    asked = {} if size is None else {"picture_size": size}
    return replace(
        LABELLED_PICTURES,
        read=partial(read_labelled_pictures, shape=shape, why=why, options=options),
        variant=(*options.variant, str(shape), digest, str(size)),
        reading={**options.to_json(), **asked},
    )
