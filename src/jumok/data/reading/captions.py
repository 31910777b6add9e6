"""Pictures with captions: a table or JSON lines that names a picture and says what it shows, and a directory.

Each picture is decoded once and fitted into one shape. A caption whose picture is missing or broken, a picture without
a caption and an empty caption are rejections with their places.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from jumok.data.examples import Example, FileLayout, Paths, Rejections
from jumok.data.reading.directories import LEFT_BY_SYSTEM, is_left_by_system
from jumok.data.reading.lines import EMPTY, Damage, display_name
from jumok.data.reading.options import DEFAULT, ReadingOptions
from jumok.data.reading.picture_tables import paths_with_labels
from jumok.data.reading.pictures import (
    LabelledPicture,
    choose_shape,
    is_picture_name,
    read_pictures_in_parallel,
)
from jumok.errors import ConfigError, InputError, counted
from jumok.pictures import PictureShape, UnusablePictureError, measure_picture, picture_to_text

NO_PICTURE, NO_CAPTION, EMPTY_CAPTION = "no such picture", "a picture without a caption", "empty caption"
FILES = "a TSV, CSV, XLSX or JSONL file with the name of a picture and a caption in each row, and their directory"


def read_captioned(
    paths: Paths,
    rejections: Rejections,
    *,
    shape: PictureShape,
    why: str = "",
    options: ReadingOptions = DEFAULT,
) -> Iterator[Example]:
    """The usable pictures, fitted into the shape, with their captions: `Example((picture, caption))`.
    `paths` are the table and the directory of the pictures."""
    count = 0
    named: set[Path] = set()
    for picture, pixels in read_pictures_in_parallel(_records(paths, rejections, options, named), shape):
        if isinstance(pixels, UnusablePictureError):
            rejections.add(pixels.reason, f"{picture.where} ({picture.name})", pixels.detail)
        else:
            count += 1
            yield Example((picture_to_text(pixels), picture.label), picture.where)
    _reject_uncaptioned(Path(paths[1]), named, rejections)
    if not count:
        raise InputError(_none_usable(paths, rejections))
    said = f"{counted(count, 'picture')}, {shape}{f': {why}' if why else ''}"
    rejections.layouts.append(FileLayout(display_name(paths[1]), pictures=said))


def survey_captioned(
    paths: Paths, options: ReadingOptions = DEFAULT, side: int | None = None
) -> tuple[PictureShape, str]:
    """The shape for all pictures that a table names, by their headers alone, and why. `side`: the one asked for."""
    rejections = Rejections()
    shapes = []
    for picture in _records(paths, rejections, options, set()):
        try:
            shapes.append(measure_picture(picture.source))
        except UnusablePictureError as error:
            rejections.add(error.reason, f"{picture.where} ({picture.name})", error.detail)
    if not shapes:
        raise InputError(_none_usable(paths, rejections))
    return choose_shape(shapes, side)


def require_captions_and_pictures(paths: Paths) -> None:
    """Refuse anything but a file of captions and a directory, before anything is read."""
    is_directory = [Path(path).is_dir() for path in paths]
    if all(map(os.path.exists, paths)) and is_directory != [False, True]:
        raise ConfigError(f"{', '.join(map(str, paths)) or 'No files'}: give {FILES}.")


def _none_usable(paths: Paths, rejections: Rejections) -> str:
    left_out = f"all were left out:\n{rejections.render()}" if rejections.total else "there are none."
    return f"{', '.join(map(str, paths))}: no picture with a caption that can be used; {left_out}"


def _records(
    paths: Paths, rejections: Rejections, options: ReadingOptions, named: set[Path]
) -> Iterator[LabelledPicture]:
    """Pictures with captions, not decoded yet. Every picture that the table names is added to `named`."""
    table, directory = Path(paths[0]), Path(paths[1])
    for where, name, caption in paths_with_labels(table, options, rejections, "caption"):
        rejections.not_meant += name is EMPTY and caption is EMPTY
        if isinstance(name, Damage):
            rejections.add("no name of a picture" if name is EMPTY else name.reason, where)
            continue
        path = _resolve(name.strip(), directory, table.parent)
        if path is None:
            rejections.add(NO_PICTURE, f"{where} ({name.strip()})")
            continue
        named.add(path.resolve())
        if isinstance(caption, Damage):
            rejections.add(EMPTY_CAPTION if caption is EMPTY else caption.reason, where)
        else:
            yield LabelledPicture(" ".join(caption.split()), where, path)


def _resolve(name: str, directory: Path, beside_table: Path) -> Path | None:
    """The file of that name, which may begin at the directory of the pictures, at the one around it, or at that of the
    table. It must be inside the directory of the pictures: only what is given is read."""
    inside = directory.resolve()
    for start in (directory, directory.parent, beside_table):
        path = start / name
        if os.path.isfile(path) and path.resolve().is_relative_to(inside):
            return path
    return None


def _reject_uncaptioned(directory: Path, named: set[Path], rejections: Rejections) -> None:
    """Count the pictures of the directory that no row names."""
    for file in sorted(filter(is_picture_name, directory.rglob("*"))):
        if file.resolve() in named:
            continue
        if is_left_by_system(file):
            rejections.add_not_meant(LEFT_BY_SYSTEM, display_name(file))
        else:
            rejections.add(NO_CAPTION, display_name(file))
