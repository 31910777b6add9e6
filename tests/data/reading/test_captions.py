"""Reading pictures with captions."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from jumok.data.examples import Rejections
from jumok.data.reading.captions import read_captioned, require_captions_and_pictures, survey_captioned
from jumok.data.reading.options import reading_options
from jumok.errors import ConfigError, InputError
from jumok.pictures import PictureShape, picture_from_text

SHAPE = PictureShape(16, 16, 3)


def write_picture(path: Path, colour: tuple[int, int, int], side: int = 16) -> None:
    path.parent.mkdir(exist_ok=True)
    Image.new("RGB", (side, side), colour).save(path)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    for number in range(3):
        write_picture(tmp_path / "pictures" / f"{number}.png", (80 * number, 10, 200))
    return tmp_path / "pictures"


def read(table: Path, pictures: Path, **options: object) -> tuple[list[tuple[int, str]], Rejections]:
    """Red of the first pixel and the caption of each example, and what was rejected."""
    rejections = Rejections()
    found = read_captioned([table, pictures], rejections, shape=SHAPE, options=reading_options(**options))  # type: ignore[arg-type]
    return [(int(picture_from_text(each.inputs[0])[0, 0, 0]), each.inputs[1]) for each in found], rejections


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "0.png\ta black sea\n1.png\t파란 바다\n2.png\ta pink sea\n"),
        ("a.csv", "file,caption\n0.png,a black sea\n1.png,파란 바다\n2.png,a pink sea\n"),
        ("a.csv", 'caption,file\n"a black sea",pictures/0.png\n파란 바다,pictures/1.png\na pink sea,pictures/2.png\n'),
        (
            "a.jsonl",
            "".join(
                json.dumps({"file_name": f"{number}.png", "text": text, "id": number}) + "\n"
                for number, text in enumerate(("a black sea", "파란 바다", "a pink sea"))
            ),
        ),
    ],
)
def test_tables_and_json_lines_are_read(tmp_path: Path, pictures: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found, rejections = read(tmp_path / name, pictures)
    assert found == [(0, "a black sea"), (80, "파란 바다"), (160, "a pink sea")]
    assert rejections.total == 0
    assert [layout.describe() for layout in rejections.layouts if "3 pictures" in layout.describe()]


def test_whatever_cannot_be_used_is_counted_with_its_place(tmp_path: Path, pictures: Path) -> None:
    (pictures / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n nonsense")
    write_picture(tmp_path / "outside.png", (1, 2, 3))
    table = tmp_path / "a.tsv"
    too_long = f"{'x' * 256}.png"
    rows = ["0.png\tone", f"{too_long}\ttwo", "1.png\t ", "broken.png\tthree", "../outside.png\tfour", ""]
    table.write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    found, rejections = read(table, pictures)
    assert found == [(0, "one")]
    assert rejections.counts["no such picture"] == 2
    assert rejections.examples["no such picture"] == [f"{table}:2 ({too_long})", f"{table}:5 (../outside.png)"]
    assert rejections.examples["empty caption"] == [f"{table}:3"]
    assert rejections.examples["a picture without a caption"] == [str(pictures / "2.png")]
    assert any(str(pictures / "broken.png") in each for places in rejections.examples.values() for each in places)
    assert (rejections.total, rejections.not_meant) == (6, 1)


def test_pictures_of_different_sizes_get_one_shape_and_it_is_said(tmp_path: Path, pictures: Path) -> None:
    write_picture(pictures / "large.png", (9, 9, 9), side=40)
    table = tmp_path / "a.tsv"
    table.write_text("0.png\tone\n1.png\ttwo\nlarge.png\tthree\n2.png\tfour\n", encoding="utf-8")
    shape, why = survey_captioned([table, pictures])
    assert (shape, "2 sizes, from 16 × 16 to 40 × 40" in why) == (SHAPE, True)
    assert survey_captioned([table, pictures], side=32)[0] == PictureShape(32, 32, 3)
    found, _ = read(table, pictures)
    assert [caption for _, caption in found] == ["one", "two", "three", "four"]


def test_columns_that_are_not_certain_are_asked_for(tmp_path: Path, pictures: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("0.png,one,un\n1.png,two,deux\n2.png,three,trois\n", encoding="utf-8")
    with pytest.raises(InputError, match="the picture and the caption"):
        read(table, pictures)
    assert [caption for _, caption in read(table, pictures, columns=(1, 3))[0]] == ["un", "deux", "trois"]


def test_a_table_of_one_column_is_told_what_it_lacks(tmp_path: Path, pictures: Path) -> None:
    table = tmp_path / "a.csv"
    table.write_text("0.png\n1.png\n2.png\n", encoding="utf-8")
    with pytest.raises(InputError, match="has 1 column in most rows, but 2 are needed: the picture and the caption"):
        read(table, pictures)


def test_what_macos_leaves_beside_pictures_needs_no_captions(tmp_path: Path, pictures: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("0.png\tone\n1.png\ttwo\n2.png\tthree\n", encoding="utf-8")
    (pictures / "._0.png").write_bytes(b"left by macOS")
    _, rejections = read(table, pictures)
    assert rejections.examples == {"left by the operating system": [str(pictures / "._0.png")]}
    assert rejections.lost == 0


def test_nothing_usable_is_an_error(tmp_path: Path, pictures: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("x.png\tone\ny.png\ttwo\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"with a caption that can be used; all were left out:\n2 × no such"):
        survey_captioned([table, pictures])


def test_other_files_than_captions_and_a_directory_are_refused(tmp_path: Path, pictures: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("0.png\tone\n", encoding="utf-8")
    for wrong in ([table], [pictures, table], [table, table], [table, pictures, pictures]):
        with pytest.raises(ConfigError, match="the name of a picture and a caption in each row"):
            require_captions_and_pictures(wrong)
    require_captions_and_pictures([table, pictures])


def test_pictures_keep_their_pixels(tmp_path: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (16, 16, 3), np.uint8)
    (tmp_path / "p").mkdir()
    Image.fromarray(pixels).save(tmp_path / "p" / "a.png")
    (tmp_path / "a.tsv").write_text("a.png\tnoise\n", encoding="utf-8")
    [example] = read_captioned([tmp_path / "a.tsv", tmp_path / "p"], Rejections(), shape=SHAPE)
    assert (picture_from_text(example.inputs[0]) == pixels).all()
