"""Labelled pictures are found in directories, tables and IDX files, and every one that is left out is named."""

import gzip
import json
import os
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jumok.data.examples import Example, Rejections
from jumok.data.reading.options import reading_options
from jumok.data.reading.pictures import (
    choose_shape,
    holds_pictures,
    read_labelled_pictures,
    survey_pictures,
)
from jumok.errors import InputError
from jumok.pictures import PictureShape, picture_from_text, png_bytes

CLASSES = ("cat", "dog")


def flat(shade: int, side: int = 8, channels: int = 3) -> Any:
    return np.full((side, side, channels), shade, np.uint8)


@pytest.fixture
def by_class(tmp_path: Path) -> Path:
    root = tmp_path / "pets"
    for number, name in enumerate(CLASSES):
        (root / name / "more").mkdir(parents=True)
        for shade in range(3):
            (root / name / f"{shade}.png").write_bytes(png_bytes(flat(100 * number + shade)))
        (root / name / "more" / "x.png").write_bytes(png_bytes(flat(100 * number + 50)))
    return root


def read(*paths: Path, options: Any = None, **kwargs: Any) -> tuple[list[Example], Rejections]:
    rejections = Rejections()
    chosen = reading_options(columns=options)
    survey = survey_pictures(paths, chosen)
    found = read_labelled_pictures(paths, rejections, shape=survey.shape, why=survey.why, options=chosen, **kwargs)
    return list(found), rejections


def shades(examples: list[Example]) -> list[tuple[str, int]]:
    return [(example.label, int(picture_from_text(example.inputs[0])[0, 0, 0])) for example in examples]


def test_a_directory_for_each_class(by_class: Path) -> None:
    (by_class / "cat" / ".DS_Store").write_bytes(b"x")
    (by_class / "cat" / "broken.png").write_bytes(png_bytes(np.arange(192, dtype=np.uint8).reshape(8, 8, 3))[:-60])
    (by_class / "dog" / "notes.txt").write_text("no picture", encoding="utf-8")
    assert holds_pictures(by_class)
    examples, rejections = read(by_class)
    assert shades(examples) == [
        *(("cat", shade) for shade in (0, 1, 2, 50)),
        *(("dog", shade) for shade in (100, 101, 102, 150)),
    ]
    assert examples[0].where == f"{by_class}/cat/0.png:1"
    places = {reason: where for reason, [where] in rejections.examples.items()}
    assert places["not a PNG, JPEG, WebP or BMP picture"] == f"{by_class}/dog/notes.txt"
    assert f"{by_class}/cat/broken.png" in places.values()
    assert (rejections.total, rejections.lost) == (3, 2)
    assert rejections.layouts[0].describe().endswith("8 pictures, 8 × 8, colour: all pictures have this size")


def test_links_that_cannot_be_followed_are_rejections(by_class: Path) -> None:
    (by_class / "cat" / "lost.png").symlink_to(by_class / "gone.png")
    (by_class / "cat" / "other").symlink_to(by_class / "dog", target_is_directory=True)
    (by_class / "cat" / "again.png").symlink_to(by_class / "cat" / "0.png")
    (by_class / "kitten").symlink_to(by_class / "cat" / "more", target_is_directory=True)
    examples, rejections = read(by_class)
    assert [example.label for example in examples] == ["cat"] * 5 + ["dog"] * 4 + ["kitten"]
    assert rejections.examples == {
        "no such file": [f"{by_class}/cat/lost.png"],
        "a link to a directory; only that of a class may be one": [f"{by_class}/cat/other"],
    }


def test_directories_of_classes_that_are_links_hold_pictures(tmp_path: Path, by_class: Path) -> None:
    linked = tmp_path / "linked"
    linked.mkdir()
    for name in CLASSES:
        (linked / name).symlink_to(by_class / name, target_is_directory=True)
    assert holds_pictures(linked)
    assert len(read(linked)[0]) == 8


def test_files_that_accompany_pictures_are_counted_and_no_reason_to_take_them_for_texts(by_class: Path) -> None:
    for picture in list(by_class.rglob("*.png")):
        for sidecar in (picture.with_suffix(".json"), picture.with_name(f"{picture.name}.xml")):
            sidecar.write_text("{}", encoding="utf-8")
        picture.with_name(f"._{picture.name}").write_bytes(b"left by macOS")
    assert holds_pictures(by_class)
    examples, rejections = read(by_class)
    assert len(examples) == 8
    assert rejections.counts == {"a file beside a picture of the same name": 16, "left by the operating system": 8}
    assert rejections.lost == 0


def test_a_directory_that_cannot_be_read_is_an_error(by_class: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(directory: Any) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refuse)  # whoever runs the tests may be allowed to read everything
    with pytest.raises(InputError, match=r"pets: cannot be read \(Permission denied\)\. Make it readable"):
        holds_pictures(by_class)


def test_a_few_pictures_among_texts_are_texts(tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    for number in range(3):
        (tmp_path / "good" / f"{number}.txt").write_text("What a film!", encoding="utf-8")
    (tmp_path / "good" / "2.png").write_bytes(png_bytes(flat(1)))
    assert not holds_pictures(tmp_path)


def test_a_class_without_pictures_is_mentioned(by_class: Path) -> None:
    (by_class / "bird").mkdir()
    _, rejections = read(by_class)
    assert rejections.examples == {"a directory of a class without files": [f"{by_class}/bird"]}
    assert rejections.lost == 0


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode")
def test_names_that_are_not_utf_8_are_escaped_and_their_pictures_read(by_class: Path) -> None:
    korean = os.fsdecode("가".encode("cp949"))
    (by_class / "cat").rename(by_class / korean)
    (by_class / korean / "0.png").rename(by_class / korean / f"{korean}\n.png")
    (by_class / korean / "1.png").rename(by_class / korean / f"{korean}.txt")
    (by_class / korean / "2.png").write_bytes(b"no picture")
    examples, rejections = read(by_class)
    assert [example.where for example in examples if example.label == "\\udcb0\\udca1"] == [
        f"{by_class}/\\udcb0\\udca1/{name}:1" for name in ("more/x.png", "\\udcb0\\udca1\\n.png", "\\udcb0\\udca1.txt")
    ]
    assert rejections.examples == {"not a PNG, JPEG, WebP or BMP picture": [f"{by_class}/\\udcb0\\udca1/2.png"]}
    assert survey_pictures([by_class]).digest == ""  # no table names them


def tables(by_class: Path) -> dict[str, str]:
    rows = [(f"{name}/{shade}.png", name) for name in CLASSES for shade in range(3)]
    return {
        "a.csv": "image,class\n" + "".join(f"{path},{label}\n" for path, label in rows),
        "b.tsv": "".join(f"{label}\t{path}\n" for path, label in rows),
        "c.jsonl": "".join(json.dumps({"file_name": path, "label": label}) + "\n" for path, label in rows),
        "d.csv": "id,split,path,label\n" + "".join(f"{n},train,{row[0]},{row[1]}\n" for n, row in enumerate(rows)),
    }


@pytest.mark.parametrize("name", ["a.csv", "b.tsv", "c.jsonl", "d.csv"])
def test_a_table_of_paths_and_labels(by_class: Path, name: str) -> None:
    table = by_class / name
    table.write_text(tables(by_class)[name], encoding="utf-8")
    assert holds_pictures(table)
    examples, rejections = read(table)
    assert shades(examples) == [(label, 100 * n + shade) for n, label in enumerate(CLASSES) for shade in range(3)]
    assert not rejections.lost
    before = survey_pictures([table]).digest
    (by_class / "cat" / "0.png").write_bytes(png_bytes(flat(9)))
    assert survey_pictures([table]).digest != before


def test_a_table_names_pictures_that_are_missing_and_columns_that_are_uncertain(by_class: Path) -> None:
    table = by_class / "a.csv"
    too_long = f"{'x' * 256}.png"
    rows = f"cat/none.png,cat\ncat/1.png,\n{too_long},cat\n"
    table.write_text(tables(by_class)["a.csv"] + rows, encoding="utf-8")
    _, rejections = read(table)
    assert rejections.counts == {"no such file": 1, "no label": 1, "cannot be read: File name too long": 1}
    table.write_text("a.png,x,y\nb.png,y,x\nc.png,x,x\n", encoding="utf-8")
    with pytest.raises(InputError, match="not certain which of them are the picture and the label"):
        read(table)
    table.write_text("cat/0.png,x,y\ncat/1.png,y,x\ncat/2.png,x,x\n", encoding="utf-8")
    assert [label for label, _ in shades(read(table, options=(1, 3))[0])] == ["y", "x", "x"]


def test_texts_are_no_pictures(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("good\tWhat a film!\nbad\tSee a.png\nbad\tIt was dull.\n", encoding="utf-8")
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "1.txt").write_text("What a film!", encoding="utf-8")
    assert not holds_pictures(table)
    assert not holds_pictures(tmp_path)
    assert not holds_pictures(tmp_path / "missing")


def write_idx(directory: Path, name: str, count: int = 6, *, cut: int = 0, labels: int | None = None) -> list[Path]:
    """Two files as those of MNIST; returns their paths."""
    pictures = np.arange(count * 6, dtype=np.uint8).reshape(count, 2, 3)
    content = struct.pack(">IIII", 0x803, count, 2, 3) + pictures.tobytes()
    numbers = bytes(n % 2 for n in range(labels or count))
    paths = [directory / f"{name}-images-idx3-ubyte.gz", directory / f"{name}-labels-idx1-ubyte"]
    paths[0].write_bytes(gzip.compress(content[: len(content) - cut]))
    paths[1].write_bytes(struct.pack(">II", 0x801, len(numbers)) + numbers)
    return paths


def test_idx_files_plain_and_compressed(tmp_path: Path) -> None:
    paths = write_idx(tmp_path, "train")
    assert all(map(holds_pictures, [*paths, tmp_path]))
    examples, _ = read(*reversed(paths))
    assert [example.label for example in examples] == ["0", "1"] * 3
    assert picture_from_text(examples[1].inputs[0])[..., 0].tolist() == [[6, 7, 8], [9, 10, 11]]
    assert examples[1].where == f"{paths[0]}:2"
    assert read(tmp_path)[0] == examples
    write_idx(tmp_path, "t10k")
    with pytest.raises(InputError, match="2 sets of pictures"):
        read(tmp_path)


def test_idx_files_that_do_not_fit_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds 6 pictures, but .* has 5 labels"):
        read(*write_idx(tmp_path, "a", labels=5))
    with pytest.raises(InputError, match="ends after 5 of 6 entries"):
        read(*write_idx(tmp_path, "b", cut=1))
    with pytest.raises(InputError, match="its labels are not given"):
        read(write_idx(tmp_path, "c")[0])


def test_parts_and_directories_without_classes_are_asked_about(tmp_path: Path, by_class: Path) -> None:
    by_class.rename(tmp_path / "train")
    (tmp_path / "test" / "cat").mkdir(parents=True)
    with pytest.raises(InputError, match="test, train are parts of a corpus, not classes"):
        read(tmp_path)
    with pytest.raises(InputError, match="contains no directories"):
        read(tmp_path / "train" / "cat" / "more")
    with pytest.raises(InputError, match="is a single picture"):
        holds_pictures(tmp_path / "train" / "cat" / "0.png")


@pytest.mark.parametrize(
    ("sizes", "side", "shape"),
    [
        ([(28, 28)], None, (28, 28)),  # as they are
        ([(17, 9), (17, 9)], None, (17, 9)),
        ([(480, 640)], None, (48, 64)),  # the same proportions, smaller
        ([(480, 640), (300, 400)], None, (48, 64)),
        ([(480, 640), (640, 480)], None, (64, 64)),  # other proportions
        ([(20, 30), (32, 16), (200, 300)], None, (32, 32)),  # the size of most
        ([(480, 640)], 128, (96, 128)),
        ([(28, 28)], 32, (32, 32)),
        ([(1, 5000)], None, (4, 64)),
    ],
)
def test_the_shape_is_chosen_from_the_sizes(sizes: list[tuple[int, int]], side: int | None, shape: Any) -> None:
    chosen, why = choose_shape([PictureShape(*size, 1) for size in sizes], side)
    assert (chosen.height, chosen.width) == shape
    assert ("all pictures have this size" in why) == (set(sizes) == {shape})


def test_one_picture_in_colour_makes_all_of_them_colour() -> None:
    assert choose_shape([PictureShape(8, 8, 1), PictureShape(8, 8, 3)])[0].channels == 3


def test_a_damaged_idx_file_is_called_damaged(tmp_path: Path) -> None:
    pictures, _ = write_idx(tmp_path, "train")
    pictures.write_bytes(pictures.read_bytes()[:-9])
    for data in (pictures, tmp_path):
        with pytest.raises(InputError, match=r"images-idx3-ubyte\.gz: damaged, cut off"):
            holds_pictures(data)
