"""jumok classify for pictures: a class for each file."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from jumok.cli.options import print_json, say
from jumok.cli.progress import PictureProgress
from jumok.cli.writing import output_to
from jumok.data.reading.directories import LEFT_BY_SYSTEM, files_of_classes, is_left_by_system
from jumok.data.reading.lines import STANDARD_INPUT, display_name, escaped
from jumok.data.reading.pictures import is_picture_name
from jumok.data.source_files import require_files
from jumok.errors import ConfigError, InputError, counted
from jumok.pictures import UnusablePictureError

if TYPE_CHECKING:
    from jumok.engines.classifier.text import Classification
    from jumok.engines.image_classifier.pictures import PictureClassifier

AT_A_TIME = 64


def classify_pictures(
    classifier: PictureClassifier,
    files: Sequence[Path],
    out: Path | None,
    *,
    probabilities: bool,
    explain: int,
    encoding: str | None,
    on_error: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write path, class and probability of each picture; of a directory, of all pictures in it. A picture that cannot
    be used stops the command; with `on_error` "skip" its class is empty."""
    if explain:
        raise ConfigError("`explain=` has no effect on pictures. Leave it out; `jumok look` shows what was looked at.")
    if encoding is not None:
        raise ConfigError("`encoding=` has no effect on pictures. Leave it out.")
    if not files:
        raise InputError(
            "Give the files of pictures, directories, or - for a picture from standard input: this model classifies "
            "pictures."
        )
    require_files(files)
    pictures = list(_all_pictures(files))
    with PictureProgress(pictures, out, quiet=quiet) as progress, output_to(out) as output:
        if probabilities and not as_json:
            print("picture", "class", *classifier.classes, sep="\t", file=output)
        for chunk in (pictures[start : start + AT_A_TIME] for start in range(0, len(pictures), AT_A_TIME)):
            for path, found in _classified(classifier, chunk, skip=on_error == "skip"):
                if as_json:
                    values = {"label": None, "probabilities": None}
                    if found is not None:
                        values = {"label": found.label, "probabilities": found.probabilities}  # type: ignore[dict-item]
                    print_json({"picture": str(path), **values}, file=output)
                else:
                    print(_line(path, found, probabilities), file=output)
            output.flush()
            progress.add(len(chunk), len(chunk))


def _all_pictures(files: Sequence[Path]) -> Iterator[Path]:
    for path in files:
        if not path.is_dir():
            yield path
            continue
        named = sorted(filter(is_picture_name, files_of_classes(path)))
        found = [file for file in named if not is_left_by_system(file)]
        if len(found) < len(named):
            what = counted(len(named) - len(found), f"file {LEFT_BY_SYSTEM} is", f"files {LEFT_BY_SYSTEM} are")
            say(f"jumok: {path}: {what} left out.")
        if not found:
            raise InputError(f"{path}: holds no PNG, JPEG, WebP or BMP pictures.")
        yield from found


def _classified(
    classifier: PictureClassifier, paths: Sequence[Path], *, skip: bool
) -> Iterator[tuple[Path, Classification | None]]:
    """Each path with the class of its picture, or None if it cannot be used and is skipped."""
    sources = [sys.stdin.buffer.read() if str(path) == STANDARD_INPUT else path for path in paths]
    with suppress(UnusablePictureError):
        together = classifier.classify(sources)
        yield from zip(paths, together, strict=True)
        return
    for path, source in zip(paths, sources, strict=True):  # at least one of them cannot be used
        try:
            yield path, classifier.classify(source)
        except UnusablePictureError as error:
            problem = f"{display_name(path)}: {error.explanation}."
            if not skip:
                raise InputError(f'{problem} Correct or remove it, or give `on_error="skip"`.') from error
            say(f"jumok: warning: {problem} Skipped, its class is empty.")
            yield path, None


def _line(path: Path, found: Classification | None, probabilities: bool) -> str:
    name = escaped(str(path))  # a tab in it would be taken for the next column
    if found is None:
        return f"{name}\t\t"
    shown = found.probabilities.values() if probabilities else [found.probability]
    return "\t".join([name, found.label, *(f"{each:.4f}" for each in shown)])
