"""IDX files, the format of MNIST and its relatives: one file with all pictures, another with all labels, plain or
compressed. https://yann.lecun.com/exdb/mnist describes them."""

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from jumok.data.reading.lines import byte_chunks, without_compression
from jumok.errors import InputError, counted
from jumok.pictures import PictureShape, Pixels

_BYTES = 0x08  # the type of values: unsigned bytes
_LARGEST_SIDE = 4096
_IDX_NAME = re.compile(r"idx\d", re.IGNORECASE)


@dataclass(frozen=True)
class IdxHeader:
    """What the beginning of an IDX file says."""

    dimensions: tuple[int, ...]  # the first is the number of pictures or labels
    size: int  # of the header, in bytes

    @property
    def is_labels(self) -> bool:
        """Whether the file holds labels: one value for each picture."""
        return len(self.dimensions) == 1

    @property
    def shape(self) -> PictureShape:
        """The shape of every picture."""
        return PictureShape(*self.dimensions[1:3], *(self.dimensions[3:] or (1,)))


def read_idx_header(path: Path) -> IdxHeader | None:
    """The header of an IDX file; None if the file is none. InputError if it is called like one and cannot be read."""
    try:
        head = b"".join(islice(byte_chunks(path), 1))[:20]
    except InputError:
        if _IDX_NAME.search(path.name):
            raise
        return None
    if len(head) < 8 or head[:3] != bytes((0, 0, _BYTES)) or head[3] not in (1, 3, 4):
        return None
    size = 4 + 4 * head[3]
    if len(head) < size:
        return None
    dimensions = struct.unpack(f">{head[3]}I", head[4:size])
    sides_fit = all(0 < side <= _LARGEST_SIDE for side in dimensions[1:3])
    return IdxHeader(dimensions, size) if sides_fit and dimensions[3:] in ((), (1,), (3,)) else None


def idx_pairs(files: Sequence[Path]) -> list[tuple[Path, Path]]:
    """Each file of pictures with its file of labels. InputError if one is missing."""
    headers = {file: read_idx_header(file) for file in files}
    pictures = [file for file, header in headers.items() if header and not header.is_labels]
    labels = [file for file, header in headers.items() if header and header.is_labels]
    if len(pictures) == len(labels) == 1:
        return [(pictures[0], labels[0])]
    pairs = []
    for file in pictures:
        found = [each for each in labels if _stem(each) == _stem(file)]
        if len(found) != 1:
            raise InputError(
                f"{file}: its labels are not given. Give the file of the pictures and the file of their labels, such "
                "as train-images-idx3-ubyte.gz train-labels-idx1-ubyte.gz."
            )
        pairs.append((file, found[0]))
    if len(labels) > len(pairs):
        raise InputError(f"{labels[0]}: holds labels; the pictures that they belong to are not given.")
    return pairs


def _stem(file: Path) -> str:
    """What the names of pictures and labels have in common: "train-images-idx3-ubyte" → "train"."""
    name = without_compression(file).name.lower()
    return re.sub(r"images|labels|idx\d", "", name)


def idx_records(pictures: Path, labels: Path) -> Iterator[tuple[str, Pixels]]:
    """Label and picture, one by one. InputError if the files do not belong together or are cut off."""
    header, label_header = read_idx_header(pictures), read_idx_header(labels)
    assert header is not None  # the files were found by their headers
    assert label_header is not None
    count = header.dimensions[0]
    if label_header.dimensions[0] != count:
        raise InputError(
            f"{pictures}: holds {counted(count, 'picture')}, but {labels} has "
            f"{counted(label_header.dimensions[0], 'label')}. Give the two files that belong together."
        )
    names = _rows(labels, label_header, 1)
    for picture, label in zip(_rows(pictures, header, header.shape.bytes), names, strict=True):
        yield str(label[0]), np.frombuffer(picture, np.uint8).reshape(header.shape.dimensions)


def _rows(path: Path, header: IdxHeader, size: int) -> Iterator[bytes]:
    """The values of each picture or label, in bounded memory."""
    waiting, skip, left = bytearray(), header.size, header.dimensions[0]
    for chunk in byte_chunks(path):
        waiting += chunk[skip:]
        skip = 0
        whole = min(left, len(waiting) // size)
        for start in range(0, whole * size, size):
            yield bytes(waiting[start : start + size])
        del waiting[: whole * size]
        left -= whole
    if left or waiting:
        total = header.dimensions[0]
        problem = f"ends after {total - left:,} of {total:,} entries" if left else f"goes on after {total:,} entries"
        raise InputError(f"{path}: {problem}. Copy or download it again.")
