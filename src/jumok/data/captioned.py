"""Pictures with captions: the kind of examples, and batches of pictures and of captions with image tokens."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok.data.batch import Batch, IdArray, Rows, pad_rows
from jumok.data.buckets import Lengths
from jumok.data.corpus import Corpus
from jumok.data.epochs import CorpusEpochs
from jumok.data.examples import Example, ExampleKind
from jumok.data.kinds import LONGEST, learn_tokenizer
from jumok.data.reading.captions import FILES, read_captioned
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.store import Indices, TokenStore
from jumok.pictures import PictureShape, picture_from_text
from jumok.seeds import derive_seed
from jumok.tokenizer import BOS, Tokenizer

PICTURES_AT_A_TIME = 500  # turned into image tokens
PictureArray = npt.NDArray[np.uint8]  # [B, H, W, C]
Encode = Callable[[PictureArray], IdArray]  # pictures → ids of their image tokens [B, T]


def _learn_tokenizer(examples: Callable[[], Iterator[Example]], size: int | None, seed: int) -> tuple[Tokenizer, str]:
    """A tokenizer for the captions."""

    def captions() -> Iterator[Example]:
        return (Example((example.inputs[1],), example.where) for example in examples())

    return learn_tokenizer(captions, size, seed)


CAPTIONED_PICTURES = ExampleKind(
    name="pictures",
    columns=("picture", "caption"),  # the picture first: those with equal captions are still held out one by one
    pictures=("picture",),
    files=FILES,
    read=partial(read_captioned, shape=PictureShape(32, 32, 3)),
    learn_encoder=_learn_tokenizer,
    longest=LONGEST,
)


def captioned_pictures(shape: PictureShape, why: str, options: ReadingOptions = DEFAULT) -> ExampleKind:
    """Pictures of one shape with captions, read from files as the options say."""
    return replace(
        CAPTIONED_PICTURES,
        read=partial(read_captioned, shape=shape, why=why, options=options),
        variant=(*options.variant, *map(str, shape.dimensions)),
        reading=options.to_json(),
    )


@dataclass(frozen=True)
class PictureBatch(Rows):
    """Pictures to be drawn from their image tokens."""

    pixels: PictureArray  # [B, H, W, C]
    lines: IdArray  # [B]

    @property
    def tokens(self) -> int:
        """Number of pictures."""
        return len(self.pixels)


class PictureEpochs(CorpusEpochs):
    """Batches of pictures without their captions. A batch of `tokens` has so many pictures."""

    columns = ("picture",)

    def __init__(self, corpus: Corpus, *, shape: PictureShape, **options: Any) -> None:
        super().__init__(corpus, **options)
        self.shape = shape

    def _lengths(self, examples: slice) -> tuple[Lengths, ...]:
        return (np.ones_like(self.corpus.train.lengths("picture", examples)),)

    def _collate(self, epoch: int, number: int, indices: Indices) -> PictureBatch:
        return self._plain(indices)

    def _plain(self, indices: Indices) -> PictureBatch:
        return PictureBatch(pictures_of(self.corpus.train, indices, self.shape), self._column("line", indices))

    def _make(self, texts: Sequence[tuple[IdArray, IdArray]], indices: Indices) -> PictureBatch:
        return self._plain(indices)


class PaintingEpochs(CorpusEpochs):
    """Batches of captions and the image tokens of their pictures, which are equally many for all."""

    columns = ("source", "target")

    def _texts(self, epoch: int, number: int, indices: Indices) -> list[tuple[IdArray, IdArray]]:
        target = self.corpus.train.gather("target", indices)
        if not self.sampling:
            return [self.corpus.train.gather("source", indices), target]
        return [self._sampled("source", indices, derive_seed(self.seed, "subwords", epoch, number)), target]

    def _make(self, texts: Sequence[tuple[IdArray, IdArray]], indices: Indices) -> Batch:
        target_out = texts[1][0].reshape(len(indices), -1)
        target_in = np.concatenate((np.full((len(indices), 1), BOS), target_out[:, :-1]), 1)
        return Batch(pad_rows(*texts[0]), target_in, target_out, self._column("line", indices))


def pictures_of(store: TokenStore, indices: Indices, shape: PictureShape) -> PictureArray:
    """Some pictures of a store [B, H, W, C]."""
    return store.gather_rows("picture", indices).reshape(-1, *shape.dimensions)


def with_image_tokens(corpus: Corpus, directory: Path, fingerprint: str, shape: PictureShape, encode: Encode) -> Corpus:
    """The corpus with image tokens instead of pictures: "source" is the caption, "target" the ids of the image tokens.
    They are in the store `directory`, or are made by `encode` and kept there."""
    train = TokenStore.open(directory, fingerprint)
    if train is None:
        rows = _rows_with_tokens(corpus.train, shape, encode)
        train = TokenStore.build(directory, rows, columns=("source", "target", "line"), fingerprint=fingerprint)
    valid = [
        Example((example.inputs[1], encode(picture_from_text(example.inputs[0])[None])[0].tolist()), example.where)
        for example in corpus.valid
    ]
    tokens = int(train.lengths("target").sum())
    return Corpus(corpus.encoder, train, valid, {**corpus.facts, "tokens": tokens})


def _rows_with_tokens(store: TokenStore, shape: PictureShape, encode: Encode) -> Iterator[list[list[int]]]:
    for start in range(0, len(store), PICTURES_AT_A_TIME):
        indices = np.arange(start, min(start + PICTURES_AT_A_TIME, len(store)))
        tokens = encode(pictures_of(store, indices, shape)).tolist()
        lines = store.gather("line", indices)[0].tolist()
        for index, ids, line in zip(indices.tolist(), tokens, lines, strict=True):
            yield [store.example("caption", index), ids, [line]]
