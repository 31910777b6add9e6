"""Pictures through the command line: train, classify, evaluate, resume to the same bits, and clear errors."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import CLASSIFIER
from PIL import Image
from rich.cells import cell_len

import jumok
from jumok.bundle import load_bundle
from jumok.cli.app import run
from jumok.engines.image_classifier.pictures import PictureClassifier
from jumok.errors import BundleError, ConfigError
from jumok.pictures import UnusablePictureError, png_bytes

pytestmark = pytest.mark.xdist_group("pictures")
SETTINGS = [each for each in CLASSIFIER if "batch.tokens" not in each] + [
    f"--set={setting}" for setting in ("batch.tokens=16", "model.patch=4", "validate.every=20")
]


def stripes(name: str, draw: np.random.Generator) -> Any:
    """A grey picture with two bright stripes, one below the other or side by side, in the corner of its class."""
    pixels = draw.integers(0, 60, (12, 12, 1), dtype=np.uint8)
    pixels[2:5, 2:10] = 200
    pixels[7:10, 2:10] = 220
    return pixels if name == "lying" else pixels.transpose(1, 0, 2)


def write_stripes(directory: Path, count: int = 40) -> None:
    draw = np.random.default_rng(0)
    for name in ("lying", "standing"):
        (directory / name).mkdir(parents=True)
        for number in range(count):
            (directory / name / f"{number}.png").write_bytes(png_bytes(stripes(name, draw)))


@pytest.fixture(scope="session")
def trained(build_once: Callable[..., Path]) -> Path:
    """pictures/ and run/, a classifier of two classes; nobody changes them."""

    def build(directory: Path) -> None:
        write_stripes(directory / "pictures")
        (directory / "pictures" / "lying" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        train(directory / "pictures", "-o", directory / "run")

    return build_once("pictures", build)


def train(data: Path, *arguments: object, steps: int = 40) -> None:
    words = ["train", "classifier", data, *arguments, "--steps", steps, "--quiet", *SETTINGS]
    assert run(list(map(str, words))) == 0


def test_pictures_are_recognised_and_learned(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle = load_bundle(trained / "run")
    assert (bundle.config["task"], bundle.encoder_name) == ("image_classifier", "pictures")
    assert (bundle.config["height"], bundle.config["width"], bundle.config["channels"]) == (12, 12, 1)
    assert bundle.card["metrics"]["accuracy"] == 1.0
    rejected = (trained / "run" / "store" / "rejected.tsv").read_text("utf-8")
    assert rejected.startswith(f"{trained}/pictures/lying/broken.png\t")
    assert run(["info", str(trained / "run")]) == 0
    assert "picture classifier" in capsys.readouterr().out


def test_classify_writes_path_class_and_probability(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(trained / "pictures" / name / "3.png") for name in ("lying", "standing")]
    assert run(["classify", "-m", str(trained / "run"), *files]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [[files[0], "lying"], [files[1], "standing"]]
    assert all(float(row[2]) > 0.5 for row in rows)
    folder = trained / "pictures" / "standing"
    assert run(["classify", "-m", str(trained / "run"), str(folder), "--json"]) == 0
    values = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(values) == 40
    assert {value["label"] for value in values} == {"standing"}
    assert set(values[0]["probabilities"]) == {"lying", "standing"}


def test_a_broken_picture_stops_or_is_skipped(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [str(trained / "pictures" / "lying" / name) for name in ("broken.png", "1.png")]
    assert run(["classify", "-m", str(trained / "run"), *files]) == 2
    assert "broken.png: not a PNG, JPEG, WebP or BMP picture. Correct or remove it, or give --on-error skip." in (
        capsys.readouterr().err
    )
    assert run(["classify", "-m", str(trained / "run"), *files, "--on-error", "skip"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{files[0]}\t\t"
    assert second.split("\t")[1] == "lying"


def test_evaluate_measures_and_counts_what_it_leaves_out(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "-m", str(trained / "run"), str(trained / "pictures"), "--json"]) == 0
    values = json.loads(capsys.readouterr().out)
    assert (values["pictures"], values["accuracy"], values["rejected"]["total"]) == (80, 1.0, 1)


def test_python_takes_paths_images_and_arrays_of_any_size(trained: Path) -> None:
    classifier = jumok.load(trained / "run")
    assert isinstance(classifier, PictureClassifier)
    path = trained / "pictures" / "lying" / "1.png"
    image = Image.open(path)
    image.load()
    larger = image.resize((48, 48), Image.Resampling.NEAREST).convert("RGB")
    content = path.read_bytes()
    sources = [path, str(path), content, bytearray(content), memoryview(content), image, np.asarray(image), larger]
    found = classifier.classify(sources)
    assert [each.label for each in found] == ["lying"] * 8
    assert [each.probability for each in found[1:7]] == pytest.approx([found[0].probability] * 6)
    assert classifier.classify(bytearray(content)).probability == pytest.approx(found[0].probability)
    assert classifier.classify(path).probability == pytest.approx(found[0].probability)
    assert classifier.classify([]) == []
    assert classifier.picture_vectors([path]).shape == (1, 32)
    assert "2 classes, 12 × 12, grey" in repr(classifier)
    with pytest.raises(UnusablePictureError, match="no such file"):
        classifier.classify("What a film!")
    with pytest.raises(UnusablePictureError, match="has no pixels"):
        classifier.classify(np.zeros((0, 5, 3), np.uint8))
    wrong: Any = "12"
    with pytest.raises(ConfigError, match="`picture_size='12'` cannot be used"):
        jumok.train_classifier(trained / "pictures", out=trained / "other", picture_size=wrong)
    with pytest.raises(BundleError, match="CTranslate2 cannot run"):
        jumok.load(trained / "run", "ctranslate2")


# As gunicorn does with --preload: the module is loaded first, and requests are answered in a forked process.
REQUESTS = """
import io, sys

def request(body, size=None):
    environ = {"CONTENT_LENGTH": size or str(len(body)), "wsgi.input": io.BytesIO(body)}
    status = []
    answer = b"".join(application(environ, lambda line, headers: status.append(line)))
    return status[0], json.loads(answer)

child = os.fork()
if child == 0:
    print(json.dumps([request(open(sys.argv[1], "rb").read()), request(b"text"), request(b"", "10000001")]))
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def test_the_documented_service_classifies_what_is_posted(trained: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "production.md").read_text("utf-8")
    [block] = re.findall(r"^```python\n([^`]*image_classifier[^`]*)^```", page, re.MULTILINE)
    picture = trained / "pictures" / "standing" / "1.png"
    command = [sys.executable, "-c", block + REQUESTS, picture]
    environment = {**os.environ, "MODEL": str(trained / "run" / "model")}
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=True)
    [good, bad, large] = json.loads(ended.stdout)
    assert (good[0], good[1]["class"], set(good[1]["probabilities"])) == ("200 OK", "standing", {"lying", "standing"})
    assert bad == ["400 Bad Request", {"error": "not a PNG, JPEG, WebP or BMP picture."}]
    assert large == ["413 Content Too Large", {"error": "at most 10000000 bytes"}]


def test_a_stopped_training_ends_in_the_same_bits(trained: Path, tmp_path: Path) -> None:
    from jumok.recipes.training import train as train_model
    from jumok.training.settings import Settings, parse_assignments
    from jumok.training.trainer import StoppedEarly

    settings = Settings.from_dict({}).changed(parse_assignments(each.removeprefix("--set=") for each in SETTINGS))
    made = iter(range(23))
    arguments: dict[str, Any] = {"out": tmp_path / "run", "steps": 40, "settings": settings, "progress": False}
    with pytest.raises(StoppedEarly):
        train_model(
            "image_classifier",
            trained / "pictures",
            **arguments,
            stop_requested=lambda: next(made, None) is None,
        )
    train(trained / "pictures", "-o", tmp_path / "run")  # the same through the command line
    digests = [load_bundle(path).weights_digest for path in (trained / "run", tmp_path / "run")]
    assert digests[0] == digests[1]


def test_changed_pictures_are_noticed_before_anything_is_written(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained, tmp_path / "copy")
    data, out = tmp_path / "copy" / "pictures", tmp_path / "copy" / "run"
    (data / "lying" / "0.png").write_bytes(png_bytes(np.zeros((12, 12, 1), np.uint8)))
    words = ["train", "classifier", str(data), "-o", str(out), "--quiet", *SETTINGS, "--steps"]
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != ".lock"}
    assert run([*words, "40"]) == 2
    assert "was trained on other data" in capsys.readouterr().err
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file() and path.name != ".lock"}
    assert after == before
    (data / "lying" / "0.png").write_bytes(png_bytes(np.zeros((20, 30, 3), np.uint8)))
    assert run([*words, "50", "--continue-with-changes"]) == 0  # the model keeps the size of its pictures
    assert load_bundle(out).config["height"] == 12


def test_changed_pictures_that_tables_name_are_noticed(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(trained / "pictures", tmp_path / "pictures")
    tables = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for table, numbers in zip(tables, (range(20), range(20, 24)), strict=True):
        rows = (f"pictures/{name}/{number}.png,{name}\n" for name in ("lying", "standing") for number in numbers)
        table.write_text("".join(rows), encoding="utf-8")
    words = ["train", "classifier", tables[0], "--valid", tables[1], "-o", tmp_path / "run", "--quiet", *SETTINGS]
    again = [*map(str, words), "--steps", "1"]
    assert run(again) == 0
    capsys.readouterr()
    for number in (22, 2):  # of validation, of training
        picture = tmp_path / "pictures" / "lying" / f"{number}.png"
        before = picture.read_bytes()
        picture.write_bytes((picture.parent.parent / "standing" / "1.png").read_bytes())
        assert run(again) == 2
        assert f"Changed since: pictures that are named in {tables[0]}, {tables[1]}." in capsys.readouterr().err
        picture.write_bytes(before)
        assert run(again) == 0
    assert run([*again, "--picture-size", "8"]) == 2
    assert "The files are the same, but are read in another way" in capsys.readouterr().err


def test_patches_add_up_to_the_scores_and_are_drawn(trained: Path, tmp_path: Path) -> None:
    from jumok.lens import load_trace, trace

    classifier = jumok.load(trained / "run")
    path = trained / "pictures" / "lying" / "2.png"
    found = trace(classifier, path)
    [scores] = classifier.scores([path])
    bias = classifier.engine.model.head.bias.numpy()
    assert np.allclose(found["patch_scores"].values.sum(0) + bias, scores, atol=1e-5)
    assert found["patch_scores"].axes == ("position", "class")
    assert found.output == "lying"
    assert found["encoder.0.self.weights"].shape == (2, 9, 9)
    assert np.allclose(found["encoder.0.self.weights"].values.sum(-1), 1)
    found.save(tmp_path / "trace")
    assert np.array_equal(load_trace(tmp_path / "trace")["picture"].values, classifier.pixels([path])[0])
    figure = tmp_path / "patches.png"
    assert run(["plot", "patches", "-m", str(trained / "run"), str(path), "-o", str(figure)]) == 0
    assert figure.read_bytes().startswith(b"\x89PNG")


def write_one_class(directory: Path) -> Path:
    shutil.move(directory / "lying", directory / "only" / "lying")
    return directory / "only"


def write_texts(directory: Path) -> Path:
    path = directory / "texts.tsv"
    path.write_text("good\tWhat a film!\nbad\tIt was dull.\n" * 20, encoding="utf-8")
    return path


def test_bad_input_is_an_error_in_words(trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_stripes(tmp_path / "pictures", 4)
    texts, model = write_texts(tmp_path), str(trained / "run")

    def error(*words: object) -> str:
        assert run(list(map(str, words))) == 2
        return capsys.readouterr().err

    out = tmp_path / "run"
    one = write_one_class(tmp_path / "pictures")
    assert 'every picture has the label "lying"' in error("train", "classifier", one, "-o", out, "--quiet")
    assert "Give one kind" in error("train", "classifier", one, texts, "-o", out)
    assert f"{one} holds pictures, {texts} does not" in error("train", "classifier", one, "--valid", texts, "-o", out)
    assert f"{one} holds pictures, {texts} does not" in error("train", "classifier", texts, "--valid", one, "-o", out)
    assert "gone: no such file" in error("train", "classifier", one, "--valid", "gone", "-o", out)
    assert "--picture-size has no effect" in error("train", "classifier", texts, "-o", out, "--picture-size", 9)
    assert "augment.case has no effect on a picture classifier" in error(
        "train", "classifier", one, "-o", out, "--set", "augment.case=0.1"
    )
    assert "CTranslate2 cannot run a picture classifier" in error("export", "-m", model)
    assert (
        f"a picture classifier runs with PyTorch only. Copy the model directory {trained / 'run' / 'model'}"
        in error("export", "-m", model, "--to", "bundle", tmp_path / "copy")
    )
    assert capsys.readouterr().out == ""
    assert error("export", "-m", model, "--probe", one).startswith("jumok: CTranslate2 cannot run")
    assert "is a picture classifier. Sentence vectors need" in error("embed", "-m", model, texts)
    assert 'The preset "rnn" is for a translator, not for a picture classifier' in error(
        "train", "classifier", one, "-o", out, "--preset", "rnn"
    )
    assert "texts.tsv: not a PNG" in error("classify", "-m", model, texts)
    assert "Give a picture to begin with" in error("look", "-m", model, "--no-open")
    assert "not a PNG" in error("look", "-m", model, texts, "--save", tmp_path / "page.html")
    assert "Give the files of pictures" in error("classify", "-m", model)
    assert "holds no pictures, but this model classifies pictures" in error("evaluate", "-m", model, texts)
    assert "has no effect on pictures" in error("classify", "-m", model, one / "lying" / "0.png", "--explain", 2)


@pytest.mark.parametrize("option", ["--columns a b", "--sheet 1", "--separator ;", "--encoding cp949"])
def test_options_for_tables_have_no_effect_on_directories(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    pictures = str(trained / "pictures")
    for command in (["evaluate", "-m", str(trained / "run")], ["train", "classifier", "-o", str(tmp_path / "run")]):
        assert run([*command, pictures, *option.split()]) == 2
        assert f"has no effect: {pictures} is not" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_picture_from_standard_input(
    trained: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def classify(content: bytes, *options: str) -> int:
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(content)))
        return run(["classify", "-m", str(trained / "run"), "-", *options])

    assert classify((trained / "pictures" / "standing" / "1.png").read_bytes()) == 0
    assert capsys.readouterr().out.startswith("-\tstanding\t0.")
    assert classify(b"no picture") == 2
    assert "standard input: not a PNG, JPEG, WebP or BMP picture. Correct or" in capsys.readouterr().err


def test_the_progress_over_many_pictures_is_shown(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["classify", "-m", str(trained / "run"), str(trained / "pictures"), "-o", str(tmp_path / "out.tsv")]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert run([*command, "--on-error", "skip", "--quiet"]) == 0
    assert " of " not in capsys.readouterr().err
    assert run([*command, "--on-error", "skip"]) == 0
    assert "64 of 81 pictures" in capsys.readouterr().err
    assert len((tmp_path / "out.tsv").read_text("utf-8").splitlines()) == 81


def test_a_link_that_leads_nowhere_is_a_lost_picture(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "lost.png").symlink_to(tmp_path / "gone.png")
    assert run(["classify", "-m", str(trained / "run"), str(tmp_path)]) == 2
    assert f"{tmp_path / 'lost.png'}: no such file." in capsys.readouterr().err


def test_classes_that_are_links_are_classified_and_what_macos_left_is_not(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "linked").symlink_to(trained / "pictures" / "standing", target_is_directory=True)
    (tmp_path / "._0.png").write_bytes(b"left by macOS")
    assert run(["classify", "-m", str(trained / "run"), str(tmp_path)]) == 0
    found = capsys.readouterr()
    assert len(found.out.splitlines()) == 40
    assert f"{tmp_path}: 1 file left by the operating system is left out." in found.err


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are Unicode")
def test_any_name_of_a_file_is_one_cell_of_the_output(trained: Path, tmp_path: Path) -> None:
    picture = tmp_path / os.fsdecode(b"\xb0\xa1\t\n.png")
    shutil.copy(trained / "pictures" / "lying" / "1.png", picture)
    command = ["classify", "-m", str(trained / "run"), str(picture), "-o", str(tmp_path / "out")]
    assert run(command) == 0
    [row] = (tmp_path / "out").read_text("utf-8").splitlines()
    assert row.split("\t")[:2] == [f"{tmp_path}/\\udcb0\\udca1\\t\\n.png", "lying"]
    assert run([*command, "--json"]) == 0
    assert Path(json.loads((tmp_path / "out").read_text("utf-8"))["picture"]) == picture


def test_a_file_that_is_missing_is_said_to_be(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "-m", str(trained / "run"), "nothing"]) == 2
    assert "nothing: no such file." in capsys.readouterr().err


def test_a_table_of_hangul_is_aligned() -> None:
    from jumok.recipes.evaluating.classifier import _lines

    values = {"classes": ["동그라미", "box"], "confusion": [[9, 0], [1, 1234]], "accuracy": 1.0, "macro_f1": 1.0}
    values |= {"ece": 0.0, "ece_uncalibrated": 0.0, "pictures": 1244, "pictures_per_second": 1.0}
    head, *rows = _lines(values, "pictures")[-3:]
    assert {cell_len(line) for line in (head, *rows)} == {cell_len(head)}
    assert rows[0].startswith("동그라미 ")


def test_a_classifier_of_texts_given_pictures_says_so(
    trained: Path, trained_classifier: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pictures, model = trained / "pictures", str(trained_classifier / "run")
    assert run(["classify", "-m", model, str(pictures / "lying" / "1.png")]) == 2
    assert "is a PNG image, not text" in capsys.readouterr().err
    Image.new("RGB", (60, 60), (65, 66, 67)).save(tmp_path / "uniform.bmp")
    assert run(["classify", "-m", model, str(tmp_path / "uniform.bmp")]) == 2
    assert "is a BMP image, not text" in capsys.readouterr().err
    assert run(["evaluate", "-m", model, str(pictures)]) == 2
    assert "holds no texts, but this model classifies texts" in capsys.readouterr().err
