"""Pictures with labels: a directory for each class, tables or JSONL of paths and labels, or IDX files.

They are read twice: first only as far as their sizes are known, so that one shape can be chosen for all of them; then
each is decoded and fitted into it. A picture that cannot be used is a rejection with its path.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import file_digest, sha256
from os.path import splitext
from pathlib import Path
from statistics import median_low

from jumok.data.examples import Example, FileLayout, Paths, Rejections
from jumok.data.reading.directories import LEFT_BY_SYSTEM, files_and_links, files_of_classes, is_left_by_system
from jumok.data.reading.idx import idx_pairs, idx_records, read_idx_header
from jumok.data.reading.labelled import EMPTY_CLASS, NO_LABEL, class_name
from jumok.data.reading.lines import EMPTY, Damage, display_name
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.reading.picture_tables import has_paths_of_pictures, paths_with_labels
from jumok.errors import ConfigError, InputError, counted
from jumok.pictures import (
    PICTURE_SUFFIXES,
    PictureShape,
    Pixels,
    UnusablePictureError,
    measure_picture,
    picture_to_text,
    read_picture,
)
from jumok.system import usable_cores

LARGEST_SIDE = 64  # of the shape that is chosen, unless another is asked for
ROUNDED_TO = 4  # sides of a shape that pictures are scaled to are a multiple of this: patches fill them
_AHEAD = 64  # pictures decoded before they are asked for
_PARTS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}
SIDECAR = "a file beside a picture of the same name"
LINKED_DIRECTORY = "a link to a directory; only that of a class may be one"


@dataclass(frozen=True)
class LabelledPicture:
    """A picture before it is decoded."""

    label: str
    where: str  # file:line
    source: Path | Pixels

    @property
    def name(self) -> str:
        """The path of a picture, or its place in a file with many, for messages."""
        return display_name(self.source) if isinstance(self.source, Path) else self.where


@dataclass(frozen=True)
class Survey:
    """What is known of pictures before they are decoded."""

    shape: PictureShape
    why: str
    digest: str  # of the files that tables name: a fingerprint of the tables alone would not notice their change


def is_picture_name(path: str | Path) -> bool:
    """Whether a file is called like a picture."""
    return Path(path).suffix.lower() in PICTURE_SUFFIXES


def holds_pictures(path: str | Path, options: ReadingOptions = DEFAULT) -> bool:
    """Whether a directory or file holds labelled pictures, and not texts: at least half of the files of the directory
    are called like pictures, most rows of the table name such files, or it is an IDX file. Files that only accompany
    pictures do not count."""
    path = Path(path)
    if path.is_dir():
        # All of them: in a sample, many a file would be without the picture that it accompanies.
        files = [file for file in files_of_classes(path) if not is_left_by_system(file)]
        pictures, alone = sum(map(is_picture_name, files)), len(files) - len(_sidecars(files))
        return 0 < alone <= 2 * pictures or any(map(read_idx_header, _idx_candidates(path)))
    if not path.is_file():
        return False
    if is_picture_name(path):
        raise InputError(f"{path}: is a single picture. Give a directory that has one directory for each class.")
    return read_idx_header(path) is not None or has_paths_of_pictures(path, options)


def survey_pictures(paths: Paths, options: ReadingOptions = DEFAULT, side: int | None = None) -> Survey:
    """Choose the shape for all usable pictures; `side`: the longer side that was asked for."""
    digest, rejections, shapes = sha256(), Rejections(), Counter[PictureShape]()
    for picture in _records(paths, rejections, options):
        if not isinstance(picture.source, Path):
            shapes[PictureShape(*picture.source.shape)] += 1
            continue
        try:
            shapes[measure_picture(picture.source)] += 1
        except UnusablePictureError as error:
            rejections.add(error.reason, picture.name, error.detail)
            continue
        if picture.where != _place(picture.source):  # named by a table
            with open(picture.source, "rb") as file:
                digest.update(file_digest(file, "sha256").digest())
    if not shapes:
        raise InputError(_none_usable(paths, rejections))
    named = digest.hexdigest() if digest.digest() != sha256().digest() else ""
    return Survey(*choose_shape(shapes.elements(), side), named)


def _none_usable(paths: Paths, rejections: Rejections) -> str:
    left_out = f"all were left out:\n{rejections.render()}" if rejections.total else "there are none."
    return f"{', '.join(map(str, paths))}: no picture with a label that can be used; {left_out}"


def require_picture_size(size: int | None, smallest: int, largest: int) -> None:
    """Raises unless the longer side that pictures are to be scaled to is within these bounds, or not given."""
    if size is not None and not (isinstance(size, int) and smallest <= size <= largest):
        raise ConfigError(
            f"`picture_size={size!r}` cannot be used: give the longer side in pixels, {smallest} to {largest}. "
            f"Without it, pictures have their own size, up to {LARGEST_SIDE}."
        )


def choose_shape(measured: Iterable[PictureShape], side: int | None = None) -> tuple[PictureShape, str]:
    """One shape for all pictures, and why: their own if they have the same and it is small; else one that they are
    scaled to fit into, in their proportions if these are the same, or a square. There must be at least one picture."""
    sizes: Counter[tuple[int, int]] = Counter()
    channels = 1
    for shape in measured:
        sizes[shape.height, shape.width] += 1
        channels = max(channels, shape.channels)
    longest = [max(size) for size in sizes.elements()]
    chosen = side or min(LARGEST_SIDE, median_low(longest))
    if len(sizes) == 1 and longest[0] == chosen:
        [(height, width)] = sizes
        return PictureShape(height, width, channels), "all pictures have this size"
    ratios = [height / width for height, width in sizes]
    height = width = _rounded(chosen)
    if max(ratios) < 1.05 * min(ratios):
        height, width = (_rounded(chosen * min(1.0, each)) for each in (ratios[0], 1 / ratios[0]))
    (low_height, low_width), (high_height, high_width) = (
        f(sizes, key=lambda size: size[0] * size[1]) for f in (min, max)
    )
    found = f"from {low_width:,} × {low_height:,} to {high_width:,} × {high_height:,}" if len(sizes) > 1 else ""
    found = f"{len(sizes):,} sizes, {found}" if found else f"{low_width:,} × {low_height:,}"
    return PictureShape(height, width, channels), f"scaled to fit ({found}); borders repeat the edge"


def _rounded(side: float) -> int:
    return max(ROUNDED_TO, round(side / ROUNDED_TO) * ROUNDED_TO)


def read_labelled_pictures(
    paths: Paths,
    rejections: Rejections,
    *,
    shape: PictureShape,
    why: str = "",
    options: ReadingOptions = DEFAULT,
) -> Iterator[Example]:
    """The usable pictures, fitted into the shape, with their labels; others are rejected. `why` that
    shape was chosen is written into the layout."""
    records = _records(paths, rejections, options)
    count = 0
    for picture, pixels in read_pictures_in_parallel(records, shape):
        if isinstance(pixels, UnusablePictureError):
            rejections.add(pixels.reason, picture.name, pixels.detail)
        else:
            count += 1
            yield Example((picture_to_text(pixels),), picture.where, picture.label)
    if not count:
        raise InputError(_none_usable(paths, rejections))
    layout = FileLayout(
        ", ".join(map(display_name, paths)), pictures=f"{counted(count, 'picture')}, {shape}{f': {why}' if why else ''}"
    )
    rejections.layouts.append(layout)


def read_pictures_in_parallel(
    records: Iterable[LabelledPicture], shape: PictureShape
) -> Iterator[tuple[LabelledPicture, Pixels | UnusablePictureError]]:
    """Each picture, decoded and fitted into the shape, or why it cannot be used; in order, on all cores."""

    def read(source: Path | Pixels) -> Pixels | UnusablePictureError:
        try:
            return read_picture(source, shape)
        except UnusablePictureError as error:
            return error

    ready: deque[tuple[LabelledPicture, Future[Pixels | UnusablePictureError]]] = deque()
    pool = ThreadPoolExecutor(usable_cores(), thread_name_prefix="pictures")
    try:
        for record in records:
            ready.append((record, pool.submit(read, record.source)))
            if len(ready) > _AHEAD:
                picture, decoded = ready.popleft()
                yield picture, decoded.result()
        while ready:
            picture, decoded = ready.popleft()
            yield picture, decoded.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _records(paths: Paths, rejections: Rejections, options: ReadingOptions) -> Iterator[LabelledPicture]:
    """All pictures with their labels, not decoded yet."""
    given = [Path(path) for path in paths]
    idx = [path for path in given if path.is_file() and read_idx_header(path)]
    for pictures, labels in idx_pairs(idx):
        yield from _idx_pictures(pictures, labels)
    for path in given:
        if path in idx:
            continue
        if not path.is_dir():
            yield from _named_pictures(path, rejections, options)
        elif found := [file for file in _idx_candidates(path) if read_idx_header(file)]:
            yield from _idx_pictures(*_only_pair(path, found))
        else:
            yield from _directory_pictures(path, rejections)


def _idx_candidates(directory: Path) -> list[Path]:
    return sorted(file for file in directory.iterdir() if file.is_file() and "idx" in file.name.lower())


def _only_pair(directory: Path, files: Sequence[Path]) -> tuple[Path, Path]:
    pairs = idx_pairs(files)
    if len(pairs) > 1:
        shown = "\n".join(f"  {pictures} {labels}" for pictures, labels in pairs)
        raise InputError(
            f"{directory}: holds {len(pairs)} sets of pictures; one may be for tests. Give the files that are meant:"
            f"\n{shown}"
        )
    return pairs[0]


def _idx_pictures(pictures: Path, labels: Path) -> Iterator[LabelledPicture]:
    for number, (label, pixels) in enumerate(idx_records(pictures, labels), 1):
        yield LabelledPicture(label, f"{display_name(pictures)}:{number}", pixels)


def _named_pictures(path: Path, rejections: Rejections, options: ReadingOptions) -> Iterator[LabelledPicture]:
    """Pictures that a table or a file of JSON lines names; their paths begin at the directory of that file."""
    for where, name, label in paths_with_labels(path, options, rejections):
        rejections.not_meant += name is EMPTY and label is NO_LABEL
        if isinstance(name, Damage):
            rejections.add("no path of a picture" if name is EMPTY else name.reason, where)
        elif isinstance(label, Damage):
            rejections.add(label.reason, where)
        else:
            yield LabelledPicture(label, where, path.parent / name.strip())


def _directory_pictures(path: Path, rejections: Rejections) -> Iterator[LabelledPicture]:
    """Pictures of a directory with one directory a class."""
    classes = sorted(entry for entry in path.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if not classes:
        raise InputError(f"{path}: contains no directories. Give it one for each class, with the pictures in it.")
    _refuse_parts(path, classes)
    for directory in classes:
        files = sorted(files_and_links(directory))
        if not files:
            rejections.add_not_meant(EMPTY_CLASS, display_name(directory))
        sidecars = _sidecars(files)
        for file in files:
            if file.is_dir():
                rejections.add(LINKED_DIRECTORY, display_name(file))
            elif is_left_by_system(file):
                rejections.add_not_meant(LEFT_BY_SYSTEM, display_name(file))
            elif file in sidecars:
                rejections.add_not_meant(SIDECAR, display_name(file))
            else:
                yield LabelledPicture(class_name(directory), _place(file), file)


def _place(file: Path) -> str:
    """Where a picture stands that has a file for itself."""
    return f"{display_name(file)}:1"


def _sidecars(files: Sequence[Path]) -> set[Path]:
    """Those of the files that are no pictures and accompany one: `a.json` and `a.png.json` beside `a.png`."""
    pictures = [str(file) for file in files if is_picture_name(file)]
    names = {*pictures, *(splitext(picture)[0] for picture in pictures)}
    others = (file for file in files if file.suffix and not is_picture_name(file))
    return {file for file in others if splitext(file)[0] in names}


def _refuse_parts(path: Path, classes: Sequence[Path]) -> None:
    """Directories for training and tests are no classes."""
    parts = [entry for entry in classes if entry.name.lower() in _PARTS]
    if len(parts) == len(classes) and all(any(each.is_dir() for each in part.iterdir()) for part in parts):
        names = ", ".join(part.name for part in parts)
        raise InputError(
            f"{path}: {names} are parts of a corpus, not classes. Give the directory to train on, such as {parts[-1]}, "
            f"and another with `valid=`."
        )
