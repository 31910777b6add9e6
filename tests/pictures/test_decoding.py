"""Pictures of every kind people have become arrays of one shape, and unusable ones say why."""

import struct
import warnings
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps
from PIL.PngImagePlugin import PngImageFile

from jumok.errors import BundleError
from jumok.pictures import (
    PictureEncoder,
    PictureShape,
    UnusablePictureError,
    measure_picture,
    picture_from_text,
    picture_to_text,
    png_bytes,
    read_picture,
)

COLOUR, GREY = PictureShape(8, 8, 3), PictureShape(8, 8, 1)
RED = (200, 10, 30)


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    file = BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def noise(*shape: int) -> Any:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


@pytest.mark.parametrize("form", ["PNG", "WEBP", "BMP"])
def test_a_picture_of_the_right_size_keeps_every_value(form: str) -> None:
    pixels = noise(8, 8, 3)
    options = {"lossless": True, "exact": True} if form == "WEBP" else {}
    assert np.array_equal(read_picture(saved(Image.fromarray(pixels), form, **options), COLOUR), pixels)
    assert np.array_equal(read_picture(pixels, COLOUR), pixels)
    assert np.array_equal(read_picture(png_bytes(pixels), COLOUR), pixels)


def test_a_turned_photo_is_read_upright_and_measured_so(tmp_path: Path) -> None:
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, :4] = 255  # white at the left
    exif = Image.Exif()
    exif[0x0112] = 6  # is to be turned to the right: white is on top then
    path = tmp_path / "photo.png"
    Image.fromarray(pixels).save(path, exif=exif)
    assert measure_picture(path) == PictureShape(8, 4, 3)
    upright = read_picture(path, PictureShape(8, 4, 3))
    assert upright[:4].min() == 255
    assert upright[4:].max() == 0


def test_every_way_of_holding_a_camera_is_turned_as_pillow_does() -> None:
    image = Image.fromarray(noise(8, 8, 3))
    for orientation in range(10):
        exif = Image.Exif()
        exif[0x0112] = orientation
        source = saved(image, "PNG", exif=exif)
        expected = ImageOps.exif_transpose(Image.open(BytesIO(source)))
        assert np.array_equal(read_picture(source, COLOUR), np.asarray(expected)), orientation


def with_chunk(png: bytes, name: bytes, data: bytes, before: bytes) -> bytes:
    place = png.index(before) - 4
    return png[:place] + chunk(name, data) + png[place:]


def test_measuring_decodes_no_png_and_what_is_said_behind_its_pixels_turns_it_when_it_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pixels = np.zeros((4, 8, 3), np.uint8)
    pixels[:, :4] = 255
    exif = Image.Exif()
    exif[0x0112] = 6
    plain, said = png_bytes(pixels), exif.tobytes().removeprefix(b"Exif\0\0")
    first, last = (with_chunk(plain, b"eXIf", said, before=place) for place in (b"IDAT", b"IEND"))
    with monkeypatch.context() as patched:
        patched.setattr(PngImageFile, "load", lambda _: pytest.fail("decoded while measuring"))
        shapes = [measure_picture(each) for each in (plain, first, last)]
    assert shapes == [PictureShape(4, 8, 3), PictureShape(8, 4, 3), PictureShape(4, 8, 3)]
    for each in (first, last):
        upright = read_picture(each, PictureShape(8, 4, 3))
        assert upright[:4].min() == 255
        assert upright[4:].max() == 0


def test_a_picture_with_damaged_exif_is_taken_as_it_is_without_a_warning() -> None:
    damaged = b"Exif\0\0II*\0\x08\0\0\0\x40\0\x1a\x01\x05\0\xff\xff\xff\xff"
    for form in ("JPEG", "PNG", "WEBP"):
        source = saved(Image.new("RGB", (16, 8), RED), form, exif=damaged)
        with pytest.warns(UserWarning, match="Corrupt EXIF data"):
            Image.open(BytesIO(source)).getexif()
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("always")
            assert measure_picture(source) == PictureShape(8, 16, 3)
            assert np.abs(read_picture(source, COLOUR).astype(int) - RED).max() <= 12
        assert not shown


def test_the_image_of_a_caller_keeps_its_size() -> None:
    image = Image.open(BytesIO(saved(Image.new("RGB", (640, 480), RED), "JPEG")))
    assert read_picture(image, COLOUR).shape == (8, 8, 3)
    assert image.size == (640, 480)


def test_pictures_damaged_in_the_same_way_have_one_reason_and_details_of_their_own() -> None:
    photo = saved(Image.fromarray(noise(64, 64, 3)), "JPEG")
    found = set()
    for length in (2000, 2500, 3000):
        with pytest.raises(UnusablePictureError, match=r"damaged picture \(image file is truncated .*\)\.$") as caught:
            read_picture(photo[:length], PictureShape(64, 64, 3))
        found.add((caught.value.reason, caught.value.detail))
    assert {reason for reason, _ in found} == {"damaged picture"}
    assert len(found) == 3


def test_too_little_memory_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", fail)
    with pytest.raises(MemoryError):
        read_picture(PNG, COLOUR)


def test_transparent_parts_are_white_in_colour_grey_and_palettes() -> None:
    clear = Image.new("RGBA", (8, 8), (0, 0, 0, 0))
    assert read_picture(clear, COLOUR).min() == 255
    assert read_picture(saved(clear.convert("LA"), "PNG"), GREY).min() == 255
    palette = Image.new("P", (8, 8), 0)
    palette.putpalette([0, 0, 0, *RED])
    assert read_picture(saved(palette, "PNG", transparency=0), COLOUR).min() == 255


@pytest.mark.parametrize("mode", ["RGB", "CMYK", "YCbCr", "RGBA"])
def test_colours_survive_every_mode(mode: str) -> None:
    image = Image.new("RGB", (8, 8), RED).convert(mode)
    assert np.abs(read_picture(image, COLOUR).astype(int) - RED).max() <= 8


def test_a_cmyk_photo_and_one_with_a_preview_are_read() -> None:
    photo = Image.new("RGB", (8, 8), RED)
    cmyk = read_picture(saved(photo.convert("CMYK"), "JPEG", quality=100), COLOUR)
    assert np.abs(cmyk.astype(int) - RED).max() <= 12
    with_preview = saved(photo, "MPO", save_all=True, append_images=[photo])
    assert np.abs(read_picture(with_preview, COLOUR).astype(int) - RED).max() <= 12


def test_sixteen_bits_and_one_bit_become_eight() -> None:
    deep = Image.fromarray(np.full((8, 8), 0x8040, np.uint16))
    assert (read_picture(saved(deep, "PNG"), GREY) == 0x80).all()
    assert measure_picture(saved(deep, "PNG")).channels == 1
    assert (read_picture(saved(Image.new("1", (8, 8), 1), "PNG"), GREY) == 255).all()


def test_grey_is_known_from_the_palette_too() -> None:
    grey, colour = Image.new("P", (8, 8)), Image.new("P", (8, 8))
    grey.putpalette([0, 0, 0, 90, 90, 90])
    colour.putpalette([0, 0, 0, 90, 90, 91])
    assert [measure_picture(saved(each, "PNG")).channels for each in (grey, colour)] == [1, 3]


def test_other_sizes_are_fitted_with_their_proportions_and_edges_repeated() -> None:
    wide = np.zeros((10, 40, 3), np.uint8)
    wide[:5] = 255
    fitted = read_picture(wide, COLOUR)
    assert fitted.shape == (8, 8, 3)
    assert fitted[:4].min() > 220
    assert fitted[4:].max() < 35
    assert read_picture(np.full((1, 5000), 7, np.uint8), GREY).tolist() == np.full((8, 8, 1), 7).tolist()


def chunk(name: bytes, data: bytes) -> bytes:
    """A part of a PNG file."""
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _bomb() -> bytes:
    """A PNG of a few bytes that claims 60,000 × 60,000 pixels."""

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


PNG = png_bytes(noise(8, 8, 3))
FRAMES = [Image.new("RGB", (8, 8), (shade, 0, 0)) for shade in (0, 90, 180)]
UNUSABLE = {
    "animated PNG": (saved(FRAMES[0], "PNG", save_all=True, append_images=FRAMES[1:]), "animated"),
    "animated WebP": (saved(FRAMES[0], "WEBP", save_all=True, append_images=FRAMES[1:]), "animated"),
    "GIF": (saved(FRAMES[0], "GIF"), "not a PNG, JPEG, WebP or BMP picture"),
    "cut off": (PNG[: len(PNG) // 2], "damaged picture"),
    "changed": (PNG[:60] + b"\0\1\2\3" + PNG[64:], "damaged picture"),
    "text": (b"hello", "not a PNG"),
    "empty": (b"", "not a PNG"),
    "bomb": (_bomb(), "pixels"),
    "float array": (np.zeros((4, 4)), "of float64"),
    "five channels": (np.zeros((4, 4, 5), np.uint8), "array"),
    "number": (7, "int is no picture"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_what_cannot_be_used_is_said(name: str) -> None:
    source, reason = UNUSABLE[name]
    with pytest.raises(UnusablePictureError, match=reason):
        read_picture(source, COLOUR)


def test_a_large_picture_is_refused_before_it_is_decoded(tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    Image.new("1", (9_500, 9_500)).save(path)  # Pillow warns of as many, and warnings are errors here
    with pytest.raises(UnusablePictureError, match=r"large.png: more than 50,000,000 pixels \(9,500 × 9,500\)"):
        measure_picture(path)
    with pytest.raises(UnusablePictureError, match=r"missing.png: no such file"):
        read_picture(tmp_path / "missing.png", COLOUR)


def test_text_and_encoder_keep_a_picture() -> None:
    pixels = noise(3, 5, 3)
    assert np.array_equal(picture_from_text(picture_to_text(pixels)), pixels)
    encoder = PictureEncoder.fit([picture_to_text(pixels)])
    assert encoder.shape == PictureShape(3, 5, 3)
    assert encoder.mean == pytest.approx(pixels.mean((0, 1)) / 255, abs=1e-4)
    assert encoder.deviation == pytest.approx(pixels.std((0, 1)) / 255, abs=1e-4)
    assert PictureEncoder.from_bytes(encoder.to_bytes(), "x") == encoder
    assert encoder.encode([picture_to_text(pixels)]) == [pixels.ravel().tolist()]


def test_an_encoder_of_many_pictures_knows_those_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.pictures.encoder._FITTED", 10)
    looked_at = []

    def read(text: str) -> Any:
        looked_at.append(text)
        return picture_from_text(text)

    monkeypatch.setattr("jumok.pictures.encoder.picture_from_text", read)
    sorted_by_class = [picture_to_text(np.full((2, 2, 1), shade, np.uint8)) for shade in (0, 255) for _ in range(500)]
    encoder = PictureEncoder.fit(sorted_by_class)
    assert encoder.mean == pytest.approx([0.5], abs=0.1)
    assert encoder.deviation == pytest.approx([0.5], abs=0.1)
    assert len(looked_at) < 60


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"shape": {"height": 1, "width": 1}}', b"\xff"])
def test_a_damaged_encoder_is_an_error(data: bytes) -> None:
    with pytest.raises(BundleError, match=r"pictures.json: does not describe"):
        PictureEncoder.from_bytes(data, "pictures.json")
