"""Pictures are varied as the settings say, a batch at a time, and always the same for a seed, epoch and batch."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest

from jumok.data.corpus import Corpus, open_corpus, prepare_corpus
from jumok.data.pictures import LABELLED_PICTURES, PictureBatch, PictureEpochs, erased, mirrored, mixed, shifted
from jumok.pictures import picture_from_text, png_bytes
from jumok.recipes.mirroring import mirroring_keeps_the_meaning
from jumok.seeds import bit_stream

PICTURES = np.random.default_rng(0).integers(1, 256, (200, 8, 6, 3), dtype=np.uint8)


def bits() -> np.random.Philox:
    return bit_stream(1, "test")


def test_a_shifted_picture_is_the_same_elsewhere_with_repeated_edges() -> None:
    found = shifted(PICTURES, bits(), 2)
    padded = np.pad(PICTURES, ((0, 0), (2, 2), (2, 2), (0, 0)), mode="edge")
    places = set()
    for number in range(200):
        ways = [
            (down, right)
            for down in range(5)
            for right in range(5)
            if np.array_equal(padded[number, down : down + 8, right : right + 6], found[number])
        ]
        assert len(ways) == 1
        places.update(ways)
    assert len(places) == 25


def test_half_of_the_pictures_are_mirrored() -> None:
    found = mirrored(PICTURES, bits())
    changed = [not np.array_equal(*pair) for pair in zip(found, PICTURES, strict=True)]
    assert 70 < sum(changed) < 130
    assert np.array_equal(found[changed], PICTURES[changed][:, :, ::-1])


def test_a_share_of_the_pictures_has_one_rectangle_hidden() -> None:
    found = erased(PICTURES, bits(), 0.3)
    different = (found != PICTURES).any(-1)
    changed = different.any((1, 2))
    assert 35 < changed.sum() < 85
    for picture in different[changed]:
        rows, columns = picture.any(1).nonzero()[0], picture.any(0).nonzero()[0]
        assert picture[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1].mean() > 0.9  # noise may hit the old value
        assert len(rows) <= 3
        assert len(columns) <= 3
    assert np.array_equal(erased(PICTURES, bits(), 0.0), PICTURES)


def test_pictures_are_mixed_in_pairs_by_the_share_that_their_class_keeps() -> None:
    labels = np.arange(200)  # every picture is of a class of its own
    batch = PictureBatch(PICTURES, labels, labels, np.ones(200, np.float32), labels + 1)
    found = mixed(batch, bits(), 1.0)
    assert sorted(found.partners.tolist()) == labels.tolist()
    assert (found.partners != labels).mean() > 0.9
    [share] = set(found.shares.tolist())
    assert 0.05 < share < 0.95  # else the next line would show little
    mixture = share * PICTURES.astype(np.float64) + (1 - share) * PICTURES[found.partners].astype(np.float64)
    assert np.abs(found.pictures - mixture).max() <= 0.5 + 1e-4
    assert found.pictures.dtype == np.uint8
    assert np.array_equal(found.labels, batch.labels)
    assert np.array_equal(found.lines, batch.lines)


@pytest.mark.parametrize("concentration", [0.05, 0.2, 1.0])
def test_shares_of_mixtures_have_the_beta_distribution(concentration: float) -> None:
    one = PictureBatch(PICTURES[:1], np.zeros(1, int), np.zeros(1, int), np.ones(1, np.float32), np.ones(1, int))
    stream = bits()
    shares = np.array([mixed(one, stream, concentration).shares[0] for _ in range(4000)])
    assert 0 <= shares.min() <= shares.max() <= 1
    assert shares.mean() == pytest.approx(0.5, abs=0.03)
    assert shares.var() == pytest.approx(1 / (4 * (2 * concentration + 1)), rel=0.05)


def corpus_of(tmp_path: Path, one: np.ndarray, other: np.ndarray, count: int = 60) -> Corpus:
    draw = np.random.default_rng(0)
    for name, drawn in (("one", one), ("other", other)):
        (tmp_path / "data" / name).mkdir(parents=True)
        for number in range(count):
            noise = draw.integers(0, 30, drawn.shape, dtype=np.uint8)
            (tmp_path / "data" / name / f"{number}.png").write_bytes(png_bytes(drawn + noise))
    return prepare_corpus(LABELLED_PICTURES, tmp_path / "store", [tmp_path / "data"], seed=1)


def test_nothing_says_that_pictures_have_a_vocabulary(tmp_path: Path) -> None:
    corpus_of(tmp_path, LEFT, TOP, count=20)
    phases: list[str] = []
    prepare_corpus(LABELLED_PICTURES, tmp_path / "again", [tmp_path / "data"], seed=1, on_phase=phases.append)
    assert "encoding" in phases
    assert "vocabulary" not in phases


def test_validation_pictures_need_not_fit_into_the_largest_file_that_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number, picture in enumerate(PICTURES):
        path = tmp_path / ("data" if number < 40 else "valid") / ("one", "other")[number % 2] / f"{number:03d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(png_bytes(picture))
    monkeypatch.setattr("jumok.data.corpus._MAX_FILE_BYTES", 10_000)
    made = prepare_corpus(LABELLED_PICTURES, tmp_path / "store", [tmp_path / "data"], valid=[tmp_path / "valid"])
    assert (tmp_path / "store" / "valid.jsonl").stat().st_size > 10_000
    opened = open_corpus(tmp_path / "store", made.facts["fingerprint"])
    expected = [*PICTURES[40::2], *PICTURES[41::2]]
    assert len(opened.valid) == len(expected)
    for example, picture in zip(opened.valid, expected, strict=True):
        assert np.array_equal(picture_from_text(example.inputs[0]), picture)
    assert opened.valid[-1] == opened.valid[158:][1] == made.valid[159]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode")
def test_a_corpus_of_names_that_are_not_utf_8_is_prepared_and_opened_again(tmp_path: Path) -> None:
    corpus_of(tmp_path, LEFT, TOP, count=20)
    data, korean = tmp_path / os.fsdecode("사진".encode("cp949")), os.fsdecode("가".encode("cp949"))
    (tmp_path / "data").rename(data)
    (data / "one").rename(data / korean)
    (data / korean / f"{korean}.png").write_bytes(b"no picture")
    made, opened = (prepare_corpus(LABELLED_PICTURES, tmp_path / "again", [data], seed=1) for _ in range(2))
    assert made.classes == ["\\udcb0\\udca1", "other"]
    assert opened.facts == made.facts
    rejected = (tmp_path / "again" / "rejected.tsv").read_text("utf-8")
    assert rejected.partition("\t")[0].endswith("/\\udcb0\\udca1/\\udcb0\\udca1.png")


LEFT = np.zeros((6, 6, 1), np.uint8)
LEFT[:, :3] = 200
TOP = LEFT.transpose(1, 0, 2)


def test_batches_are_the_same_for_a_seed_and_differ_between_epochs(tmp_path: Path) -> None:
    corpus = corpus_of(tmp_path, LEFT, TOP)
    options = {"tokens": 16, "seed": 3, "shift": 1, "mirror": True, "erase": 0.5, "mixup": 0.3}
    epochs, again = (PictureEpochs(corpus, **options) for _ in range(2))  # type: ignore[arg-type]
    assert epochs.size(0) == -(-len(corpus.train) // 16)
    first = list(epochs.batches(0, range(epochs.size(0))))
    assert sorted(np.concatenate([batch.labels for batch in first]).tolist()) == sorted(
        corpus.train.gather("label", np.arange(len(corpus.train)))[0].tolist()
    )
    [third] = again.batches(0, [2])  # alone, as after a restart
    assert np.array_equal(third.pictures, first[2].pictures)
    assert np.array_equal(third.shares, first[2].shares)
    assert len({float(batch.shares[0]) for batch in first}) == len(first)
    [other] = again.batches(1, [2])
    assert not np.array_equal(other.pictures, first[2].pictures)
    largest = epochs.largest()
    assert largest.tokens == 16
    assert np.array_equal(largest.shares, np.ones(16))
    assert largest.pictures.shape == (16, 6, 6, 1)


@pytest.mark.parametrize(("other", "keeps"), [(TOP, True), (LEFT[:, ::-1], False)])
def test_whether_mirroring_keeps_the_meaning_is_measured(tmp_path: Path, other: np.ndarray, keeps: bool) -> None:
    one = LEFT if not keeps else np.maximum(LEFT, LEFT[:, ::-1])  # the latter is its own mirror image
    found, why = mirroring_keeps_the_meaning(corpus_of(tmp_path, one, other))
    assert found is keeps
    assert "nearest neighbours recognise 100% of the pictures" in why
