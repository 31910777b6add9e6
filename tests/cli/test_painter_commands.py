"""jumok train painter, paint, and evaluate, info and resuming for it."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import SMALL, Jumok
from PIL import Image

from faulty_files import FaultyFiles
from jumok.bundle import load_bundle
from jumok.cli.app import run as run_command
from jumok.engines.loading import load
from jumok.errors import ArgumentError, BundleError, ConfigError, InputError
from jumok.recipes import training
from jumok.recipes.painter import train_painter
from jumok.recipes.training import plan
from jumok.training import auto
from jumok.training.settings import parse_assignments
from jumok.training.trainer import StoppedEarly, Trainer

pytestmark = pytest.mark.xdist_group("painter")

COLOURS = {"red": (220, 0, 0), "green": (0, 160, 0), "blue": (0, 0, 220), "black": (0, 0, 0)}
STEPS = 4
OPTIONS = [setting for setting in SMALL if not setting.startswith(("--set=batch", "--set=validate"))]
OPTIONS += ["--set=validate.every=2", f"--steps={STEPS}"]


def write_pictures(directory: Path) -> None:
    """captions.tsv and pictures/: halves of 16 × 16 pixels, with captions in English and Korean."""
    (directory / "pictures").mkdir(parents=True)
    lines = []
    for upper, colour in COLOURS.items():
        for lower, other in COLOURS.items():
            for number, caption in enumerate((f"{upper} above {lower}", f"{lower} 위의 {upper}")):
                pixels = np.full((16, 16, 3), colour, np.uint8)
                pixels[8 + 4 * number :] = other
                name = f"{upper}-{lower}-{number}.png"
                Image.fromarray(pixels).save(directory / "pictures" / name)
                lines.append(f"{name}\t{caption}\n")
    (directory / "captions.tsv").write_text("".join(lines), encoding="utf-8")


def size_of(path: Path) -> tuple[int, int]:
    with Image.open(path) as image:
        return image.size


def arguments(directory: Path, out: Path | str = "run") -> list[str]:
    return [str(directory / "captions.tsv"), str(directory / "pictures"), "-o", str(directory / out), *OPTIONS]


@pytest.fixture(scope="session")
def painted(build_once: Callable[..., Path]) -> Path:
    """A directory with captions.tsv, pictures and run, the run of a painter, which nobody changes."""

    def build(directory: Path) -> None:
        write_pictures(directory)
        assert run_command(["train", "painter", *arguments(directory), "--quiet"]) == 0

    return build_once("painted", build)


def test_both_stages_are_in_the_model_and_in_the_log(painted: Path) -> None:
    bundle = load_bundle(painted / "run")
    names = set(bundle.weights())
    assert {"pictures.codebook", "tokens.weight", "encoder.layers.0.norm1.weight"} & names >= {"pictures.codebook"}
    assert bundle.config["task"] == "painter"
    assert bundle.card["picture"] == "16 × 16, colour"
    assert {"red", "위의"} <= set(bundle.card["words"])
    stage = load_bundle(painted / "run" / "first_stage")
    assert stage.config["task"] == "image_tokens"
    assert (bundle.weights()["pictures.codebook"] == stage.weights()["pictures.codebook"]).all()


def test_pictures_are_painted_to_a_file_a_sheet_or_several_files(jumok: Jumok, painted: Path, tmp_path: Path) -> None:
    run, out = painted / "run", tmp_path / "a.png"
    ended = jumok("paint", "-m", run, "red above blue", "-o", out)
    assert ended.code == 0
    assert "1 picture of 16 × 16 pixels" in ended.out
    assert size_of(out) == (64, 64)
    assert jumok("paint", "-m", run, "red above blue", "blue 위의 red", "-o", out, "--n=3", "--zoom=1").code == 0
    assert size_of(out) == (4 + 3 * 20, 4 + 2 * 20)
    jumok("paint", "-m", run, "red above blue", "-o", out, "--n=2", "--separate", "--seed=3", "--quiet")
    assert size_of(tmp_path / "a-2.png") == (64, 64)
    answer = json.loads(jumok("paint", "-m", run, "red above blue", "-o", out, "--json").out)
    assert answer["files"] == [str(out)]


def test_what_cannot_be_painted_is_said(jumok: Jumok, painted: Path, trained: Path, tmp_path: Path) -> None:
    run, out = painted / "run", tmp_path / "a.png"
    assert (
        'not in any caption that this model has learned from: "dinosaur"'
        in jumok("paint", "-m", run, "red above dinosaur", "-o", out).err
    )
    for wrong, said in (
        (["", "-o", out], "Caption 1 is empty"),
        (["red", "-o", tmp_path / "a.txt"], "written as PNG, JPEG, WebP or BMP"),
        (["red", "-o", out, "--guidance=-1"], "guidance is -1.0"),
        (["red", "-o", tmp_path / "none" / "a.png"], "there is no directory"),
        (
            ["red", "-o", tmp_path / "a.webp", "--zoom=64", "--n=300"],
            "at most 16,383 a side. Write a.png, or use --separate or",
        ),
        (
            ["red", "-o", tmp_path / "a.jpg", "--zoom=64", *["blue"] * 64],
            "a .jpg file has at most 65,500 a side. Write a.png",
        ),
    ):
        ended = jumok("paint", "-m", run, *wrong)
        assert (ended.code, said in ended.err) == (2, True), ended.err
    other = jumok("paint", "-m", trained / "run", "red", "-o", out)
    assert (other.code, "is a translator, not a painter" in other.err) == (2, True)
    assert "jumok paint" in jumok("translate", "-m", run, stdin="x").err
    assert "CTranslate2 cannot run a painter; it runs with PyTorch." in jumok("export", "-m", run).err
    assert "a painter runs with PyTorch only. Copy" in jumok("export", "-m", run, "--to", "bundle", out).err
    assert "is a painter. Sentence vectors need a translator" in jumok("embed", "-m", run, stdin="x").err
    for more in (["--save", tmp_path / "a.html"], ["--rank-heads", painted / "captions.tsv"]):
        looked = jumok("look", "-m", run / "first_stage", painted / "pictures", *more)
        assert (looked.code, "cannot be looked into" in looked.err) == (2, True), looked.err
    evaluated = jumok("evaluate", "-m", run, painted / "captions.tsv", painted / "pictures", "--sheet", "1")
    assert "--sheet has no effect" in evaluated.err


def test_a_picture_that_cannot_be_written_leaves_the_one_that_was_there(
    jumok: Jumok, painted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a.png"
    out.write_bytes(b"before")
    for number in (1, 2, 3):
        monkeypatch.setattr("jumok.cli.paint.REAL_FILES", FaultyFiles(fails_at=number))
        ended = jumok("paint", "-m", painted / "run", "red above blue", "-o", out)
        assert (ended.code, str(out) in ended.err) == (2, True)
        assert out.read_bytes() == b"before"


def test_a_painter_is_used_from_python(painted: Path) -> None:
    painter = load(painted / "run", task="painter")
    pictures = painter.paint("red above blue", n=2, seed=1)
    assert [picture.size for picture in pictures] == [(16, 16)] * 2
    again = painter.paint_arrays(["red above blue"], n=2, seed=1)[0]
    assert (np.stack([np.asarray(picture) for picture in pictures]) == again).all()
    assert len(painter.paint(["red above blue", "blue 위의 red"])) == 2
    assert "16 × 16, colour" in repr(painter)
    with pytest.raises(ArgumentError, match=r'Unknown option "guidence".*"guidance"'):
        painter.paint("red", guidence=2)  # type: ignore[call-overload]
    with pytest.raises(BundleError, match="CTranslate2 cannot run this kind of model"):
        load(painted / "run", engine="ctranslate2")
    tokens = load(painted / "run" / "first_stage")
    file = painted / "pictures" / "red-blue-0.png"
    assert (tokens.draw(tokens.encode([file]))[0].shape) == (16, 16, 3)


def test_a_painter_and_its_image_tokens_are_measured(jumok: Jumok, painted: Path) -> None:
    data = painted / "captions.tsv", painted / "pictures"
    measured = json.loads(jumok("evaluate", "-m", painted / "run", *data, "--json").out)
    assert measured["pictures"] == 32
    assert 0 < measured["bits_per_token"] < 10
    assert measured["psnr"] > 40
    tokens = json.loads(jumok("evaluate", "-m", painted / "run" / "first_stage", data[1], "--json").out)
    assert tokens["psnr"] == pytest.approx(measured["psnr"])
    shown = jumok("info", "-m", painted / "run").out
    assert "bits/image token" in shown


def test_a_finished_painter_is_not_trained_again(jumok: Jumok, painted: Path, tmp_path: Path) -> None:
    shutil.copytree(painted, tmp_path / "copy")
    ended = jumok("train", "painter", *arguments(tmp_path / "copy"))
    assert ended.code == 0
    assert ended.out.count("is already finished") == 2
    assert "Stage 1 of 2: " in ended.out
    assert "Stage 2 of 2: painter" in ended.out
    [caption] = re.findall(r"Now: jumok paint -m \S+ '(.+)' -o picture.png\n", ended.out)
    assert f"\t{caption}\n" in (painted / "captions.tsv").read_text(encoding="utf-8")


@pytest.mark.parametrize("stage", [1, 2])
def test_a_training_stopped_in_either_stage_ends_with_the_same_weights(
    painted: Path, tmp_path: Path, stage: int
) -> None:
    settings = parse_assignments(option.removeprefix("--set=") for option in OPTIONS if "--set" in option)
    now, steps = 0, 0

    def on_event(event: object) -> None:
        nonlocal now
        if event["event"] == "stage":  # type: ignore[index]
            now = event["number"]  # type: ignore[index]

    def stop_requested() -> bool:
        nonlocal steps
        steps += now == stage
        return steps == 3

    def train() -> None:
        train_painter(
            painted / "captions.tsv",
            painted / "pictures",
            out=tmp_path / "run",
            settings=settings,
            steps=STEPS,
            progress=False,
            on_event=on_event,
            stop_requested=stop_requested,
        )

    with pytest.raises(StoppedEarly):
        train()
    train()
    stopped, straight = (load_bundle(run).weights() for run in (tmp_path / "run", painted / "run"))
    assert stopped.keys() == straight.keys()
    assert all((stopped[name] == straight[name]).all() for name in stopped)


def test_both_stages_share_the_minutes(painted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainers: list[Trainer] = []

    class Noted(Trainer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            trainers.append(self)

    monkeypatch.setattr(training, "Trainer", Noted)
    monkeypatch.setattr(auto, "LEAST_SECONDS", 0.05)
    began = time.perf_counter()
    data, settings = (painted / "captions.tsv", painted / "pictures"), {"model.d_model": 32, "model.codes": 8}
    train_painter(*data, out=tmp_path / "run", minutes=0.03, settings=settings, progress=False)
    tokens, painter = trainers
    assert [each.options.seconds for each in trainers] == pytest.approx([0.2 * 1.8, 1.8])
    assert painter._began == tokens._began > began
    assert load_bundle(tmp_path / "run").config["codes"] == 8


@pytest.mark.parametrize("repeated", [True, False])
def test_validation_data_are_captions_and_a_directory_too(
    jumok: Jumok, painted: Path, tmp_path: Path, repeated: bool
) -> None:
    (tmp_path / "pictures").mkdir()
    (tmp_path / "valid.tsv").write_text("red-blue-0.png\tred above blue\n")
    shutil.copy(painted / "pictures" / "red-blue-0.png", tmp_path / "pictures")
    valid = ["--valid", tmp_path / "valid.tsv", *(["--valid"] if repeated else []), tmp_path / "pictures"]
    data = painted / "captions.tsv", painted / "pictures"
    ended = jumok("train", "painter", *valid, *data, "-o", tmp_path / "run", "--steps=1", "--print-config")
    assert (ended.code, "batch.tokens" in ended.out) == (0, True), ended.err


def test_the_size_of_pictures_is_no_setting(painted: Path, tmp_path: Path) -> None:
    data = painted / "captions.tsv", painted / "pictures"
    wrong: Any = "16"
    with pytest.raises(ConfigError, match=r"`picture_size='16'` cannot be used: give the longer side"):
        train_painter(*data, out=tmp_path / "run", picture_size=wrong)
    with pytest.raises(ConfigError, match=r"model\.height cannot be set: the pictures decide it"):
        train_painter(*data, out=tmp_path / "run", settings={"model.height": 64})


def test_bad_data_is_refused_before_anything_is_trained(jumok: Jumok, tmp_path: Path) -> None:
    write_pictures(tmp_path)
    data = [tmp_path / "captions.tsv", tmp_path / "pictures"]
    for wrong, said in (
        ([tmp_path / "pictures", tmp_path / "captions.tsv"], "the name of a picture and a caption in each row"),
        ([tmp_path / "captions.tsv", tmp_path / "gone"], "no such file"),
        ([*data, "--valid", data[0]], "captions.tsv: give a TSV, CSV, XLSX or JSONL file"),
        ([*data, "--valid", data[1], data[0]], "the name of a picture and a caption in each row"),
        ([*data, "--sheet", "2"], "--sheet has no effect"),
        ([*data, "--picture-size", "7"], "--picture-size 7 cannot be used: give the longer side in pixels, 8 to 256."),
    ):
        ended = jumok("train", "painter", *wrong, "-o", tmp_path / "run", *OPTIONS)
        assert (ended.code, said in ended.err) == (2, True), ended.err
    for name in list((tmp_path / "pictures").iterdir())[:20]:
        name.unlink()
    ended = jumok("train", "painter", *arguments(tmp_path))
    assert ended.code == 2
    assert "20 of 32 pictures cannot be used, more than a third:\n20 × no such picture" in ended.err
    assert not (tmp_path / "run" / "run.json").exists()


def test_what_cannot_be_used_is_named_and_the_rest_is_learned_from(tmp_path: Path) -> None:
    """Pictures of other sizes and colours are fitted; nothing is left out in silence."""
    write_pictures(tmp_path)
    directory, table = tmp_path / "pictures", tmp_path / "captions.tsv"
    Image.new("CMYK", (40, 24), "red").save(directory / "print.jpg")
    Image.new("RGB", (9, 9)).save(
        directory / "film.webp", save_all=True, append_images=[Image.new("RGB", (9, 9), "red")]
    )
    Image.new("RGB", (16, 16)).save(directory / "nameless.png")
    (directory / "broken.png").write_bytes(b"\x89PNG\r\n")
    with open(table, "a", encoding="utf-8") as file:
        file.write("print.jpg\ta print\nfilm.webp\ta film\nbroken.png\tnothing\ngone.png\tnothing\nprint.jpg\t\n")
    facts = plan("painter", table, directory, settings={"model.patch": 5}).facts
    reasons = {reason: found["examples"] for reason, found in facts["rejected"]["reasons"].items()}
    assert reasons == {
        "animated; save one of its frames as a picture": [f"{table}:34 ({directory / 'film.webp'})"],
        "not a PNG, JPEG, WebP or BMP picture": [f"{table}:35 ({directory / 'broken.png'})"],
        "no such picture": [f"{table}:36 (gone.png)"],
        "empty caption": [f"{table}:37"],
        "a picture without a caption": [str(directory / "nameless.png")],
    }
    said = facts["layouts"][1]["what"]
    assert "33 pictures, 15 × 15, colour: scaled to fit (2 sizes, from 16 × 16 to 40 × 24)" in said


def test_one_picture_is_too_few(tmp_path: Path) -> None:
    write_pictures(tmp_path)
    (tmp_path / "one.tsv").write_text("red-red-0.png\tred above red\n")
    for other in [path for path in (tmp_path / "pictures").iterdir() if path.name != "red-red-0.png"]:
        other.unlink()
    with pytest.raises(InputError, match="Give at least two different pictures"):
        plan("painter", tmp_path / "one.tsv", tmp_path / "pictures")
