"""jumok paint: pictures of a caption."""

import json
from io import BytesIO
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import JSON, MODEL, PATH, QUIET, hardware_options, print_json, say
from jumok.cli.writing import require_file
from jumok.errors import ArgumentError, counted
from jumok.files import REAL_FILES, replace_file_durably

_LONGEST_SIDES = {"JPEG": 65_500, "WEBP": 16_383}  # of pictures in these formats; others have no limit to reach
_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP", ".bmp": "BMP"}


@click.command(epilog='Example: jumok paint -m run "a small red circle above a blue square" -o picture.png --n 4')
@click.argument("captions", nargs=-1, required=True, metavar="CAPTION...", help="What the pictures shall show.")
@MODEL
@click.option(
    "-o", "--out", type=PATH, required=True, metavar="FILE.png", help="Write the picture, or a sheet of several, here."
)
@click.option("--n", default=1, metavar="N", help="Pictures of each caption.")
@click.option("--separate", is_flag=True, help="Write each picture to a file of its own: FILE-1.png, FILE-2.png …")
@click.option("--zoom", type=click.IntRange(min=1, max=64), default=4, metavar="N", help="Enlarge pictures N times.")
@click.option("--guidance", default=2.0, metavar="G", help="How much the caption counts; 1: as in training.")
@click.option(
    "--temperature", default=1.0, metavar="T", help="Sampling temperature: higher is more varied; 0 is greedy."
)
@click.option("--top-k", default=0, metavar="K", help="Sample from the K most probable image tokens; 0: all.")
@click.option(
    "--top-p", default=1.0, metavar="P", help="Sample from the smallest set of image tokens with total probability P."
)
@click.option("--seed", default=0, metavar="N", help="Random seed for sampling.")
@hardware_options
@QUIET
@JSON
def command(
    model: Path,
    captions: tuple[str, ...],
    out: Path,
    separate: bool,
    zoom: int,
    hardware: dict[str, Any],
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Paint pictures of captions.

    Several pictures are written as one sheet, a row for each caption, or with --separate as files.
    """
    from jumok.cli.models import other_command_named
    from jumok.cli.picture_sheet import contact_sheet, enlarged, sheet_size
    from jumok.engines.loading import load
    from jumok.engines.painter.options import PaintingOptions

    PaintingOptions(**options)  # wrong options fail before anything is read
    _require_picture_name(out)
    with other_command_named(model):
        painter = load(model, task="painter", **hardware)
    count, columns = len(captions) * options["n"], options["n"] if len(captions) > 1 else None
    as_sheet = count > 1 and not separate
    size = (zoom * painter.picture_size[0], zoom * painter.picture_size[1])
    _require_possible_size(out, sheet_size(size, count, columns) if as_sheet else size, as_sheet)
    _say_unknown_words(painter, captions)
    pictures = [enlarged(picture, zoom) for row in painter.paint(list(captions), **options) for picture in row]
    paths = [out] if count == 1 or as_sheet else [_numbered(out, number + 1) for number in range(count)]
    for path, picture in zip(paths, [contact_sheet(pictures, columns)] if as_sheet else pictures, strict=True):
        _save(picture, path)
    if as_json:
        print_json({"captions": list(captions), "files": [str(path) for path in paths], **options})
    elif not quiet:
        width, height = painter.picture_size
        print(f"{counted(count, 'picture')} of {width} × {height} pixels → {', '.join(map(str, paths))}")


def _require_picture_name(out: Path) -> None:
    require_file(out)
    if out.suffix.lower() not in _FORMATS:
        raise ArgumentError(f"{out}: pictures are written as PNG, JPEG, WebP or BMP. Give a name such as {out}.png.")


def _require_possible_size(out: Path, size: tuple[int, int], is_sheet: bool) -> None:
    longest = _LONGEST_SIDES.get(_FORMATS[out.suffix.lower()])
    if longest is None or max(size) <= longest:
        return
    what, separate = ("The sheet", "use --separate or ") if is_sheet else ("The picture", "")
    raise ArgumentError(
        f"{what} would have {size[0]:,} × {size[1]:,} pixels; a {out.suffix} file has at most {longest:,} a side. "
        f"Write {out.with_suffix('.png').name}, or {separate}a smaller --zoom."
    )


def _say_unknown_words(painter: Any, captions: tuple[str, ...]) -> None:
    for caption in captions:
        if unknown := painter.unknown_words(caption):
            words = ", ".join(json.dumps(word, ensure_ascii=False) for word in unknown)
            say(f"jumok: warning: not in any caption that this model has learned from: {words}")


def _numbered(out: Path, number: int) -> Path:
    return out.with_name(f"{out.stem}-{number}{out.suffix}")


def _save(picture: Any, path: Path) -> None:
    written = BytesIO()
    picture.save(written, format=_FORMATS[path.suffix.lower()])
    replace_file_durably(REAL_FILES, path, written.getvalue())
