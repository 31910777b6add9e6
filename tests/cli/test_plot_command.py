"""jumok plot: a picture of every kind, and errors in words."""

import sys
from pathlib import Path

import pytest
from commands import Jumok

FROZEN = Path(__file__).parent.parent / "frozen" / "format-1" / "model"
TEXT = "The red horse likes the horse."
KINDS = ["positions", "masks", "schedule", "attention", "beta", "alignment", "training", "confusion"]


def test_without_arguments_the_kinds_are_listed(jumok: Jumok) -> None:
    shown = jumok("plot")
    assert all(f"  {kind} " in shown.out + shown.err for kind in KINDS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_help_with_an_example(jumok: Jumok, kind: str) -> None:
    assert f"Example: jumok plot {kind} " in jumok("plot", kind, "--help").out


@pytest.mark.parametrize(
    "arguments",
    [
        ["positions", "--show", "waves", "--dimension", "4", "--dimension", "5"],
        ["positions", "-m", FROZEN, "--show", "products", "--length", "9"],
        ["masks", "나는 학생 이다", "--padding", "1"],
        ["schedule", "--d-model", "512", "--warmup", "400", "--steps", "1000"],
        ["attention", "-m", FROZEN, TEXT, "--attention", "decoder-self", "--layer", "0", "--head", "1"],
        ["beta", "-m", FROZEN, TEXT, "--query", "0"],
        ["alignment", "-m", FROZEN, TEXT],
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_picture_is_written(jumok: Jumok, tmp_path: Path, arguments: list[str | Path]) -> None:
    ended = jumok("plot", *arguments, "-o", tmp_path / "picture.svg")
    assert ended.code == 0, ended.err
    assert (tmp_path / "picture.svg").read_bytes().startswith(b"<?xml")
    assert f"Saved {tmp_path / 'picture.svg'}" in ended.err


def test_curves_and_confusions_of_a_trained_classifier(jumok: Jumok, trained_classifier: Path, tmp_path: Path) -> None:
    run = trained_classifier / "run"
    assert jumok("plot", "training", run, "-o", tmp_path / "training.png").code == 0
    ended = jumok("plot", "confusion", "-m", run, trained_classifier / "test.tsv", "-o", tmp_path / "confusion.png")
    assert "accuracy" in ended.out
    assert (tmp_path / "training.png").exists()
    assert (tmp_path / "confusion.png").exists()
    ended = jumok("plot", "attention", "-m", run, "Good.", "--target", "Gut.", "-o", tmp_path / "attention.png")
    assert ended.code == 2
    assert "--target: only for a translator" in ended.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["masks", "-o", "masks.bmp"], "must end in .png, .svg or .pdf"),
        (["masks", "-o", "nowhere/masks.png"], "there is no directory"),
        (["positions", "--d-model", "7", "-o", "p.png"], "must be even"),
        (["positions", "--length", "0", "-o", "p.png"], "0 is not in the range"),
        (["positions", "--dimension", "3", "-o", "p.png"], "--show waves"),
        (["positions", "--show", "waves", "--dimension", "128", "-o", "p.png"], "Dimension 128"),
        (["attention", "-m", FROZEN, "", "-o", "a.png"], "no tokens"),
        (["attention", "-m", FROZEN, TEXT, "--layer", "5", "-o", "a.png"], "There is no layer 5"),
        (["attention", "-m", FROZEN, f"{TEXT} {TEXT}", "--sentence", "7", "-o", "a.png"], "no sentence 7"),
        (["beta", "-m", FROZEN, TEXT, "--query", "zebra", "-o", "b.png"], "choose a position with --query"),
        (["alignment", "-m", FROZEN, "", "-o", "a.png"], "nothing to align"),
        (["training", "nowhere", "-o", "t.png"], "is not the run directory"),
        (["confusion", "-m", FROZEN, "x.tsv", "-o", "c.png"], "translator"),
    ],
)
def test_bad_input_is_an_error_that_says_what_to_do(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str | Path], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = jumok("plot", *arguments)
    assert message in ended.err
    assert ended.code == 2
    assert not list(tmp_path.iterdir())


def test_a_damaged_run_is_not_blamed_on_the_picture(jumok: Jumok, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"format": 1,', encoding="utf-8")
    ended = jumok("plot", "training", tmp_path, "-o", tmp_path / "t.png")
    assert ended.code == 2
    assert "not valid JSON" in ended.err
    assert ended.err.rstrip().endswith("Restore it from a copy.")  # another -o would not help


def test_without_matplotlib_the_extra_is_named(jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("matplotlib", "jumok.lens.plots."))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = jumok("plot", "masks", "-o", tmp_path / "masks.png")
    assert ended.code == 2
    assert 'needs matplotlib, which is not installed. Install it with: pip install "jumok[train]"' in ended.err
