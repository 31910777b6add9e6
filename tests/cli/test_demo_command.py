"""jumok demo, on a small part of its corpus; and its picture."""

from pathlib import Path

import numpy as np
import pytest
from commands import SMALL, Jumok

from jumok.cli import demo_translator, picture
from jumok.cli.demo_training import DemoTraining
from jumok.demo import pairs as corpus
from jumok.training.settings import parse_assignments


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo of seconds."""
    monkeypatch.setattr(corpus, "TEST_SIZE", 12)
    monkeypatch.setattr(corpus, "VALID_SIZE", 5)
    monkeypatch.setattr(corpus.write_demo_corpus, "__defaults__", (0, 200))
    settings = parse_assignments(setting.removeprefix("--set=") for setting in SMALL)
    monkeypatch.setattr(demo_translator, "SETTINGS", {"preset": "tiny", **settings})


@pytest.mark.usefixtures("small")
def test_the_tour_leaves_what_it_promises(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("demo", "--directory", tmp_path / "demo", "--minutes", "0.003")
    assert ended.code == 0, ended.err
    for said in ("I am a student.", "because it was too tired.", "exactly right: ", "BLEU", "jumok translate -m"):
        assert said in ended.out
    assert ended.out.count("✓") + ended.out.count("✗") == 3 + 8
    assert (tmp_path / "demo" / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo" / "run" / "model" / "weights.safetensors").exists()


@pytest.mark.usefixtures("small")
def test_a_changed_length_is_refused_and_what_the_error_advises_works(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for what_is_shown in ("_test", "_draw"):
        monkeypatch.setattr(demo_translator, what_is_shown, lambda *_: None)
    arguments = ["demo", "--directory", tmp_path / "demo", "--minutes"]
    assert jumok(*arguments, "0.003").code == 0
    changed = jumok(*arguments, "0.004")
    assert changed.code == 2
    assert "stop.minutes: 0.003 → 0.004" in changed.err
    for advised in ("--continue-with-changes", "--fresh"):
        assert advised in changed.err
        assert jumok(*arguments, "0.004", advised).code == 0


@pytest.mark.parametrize("minutes", ["inf", "nan", "0", "-1"])
@pytest.mark.parametrize("what", ["translator", "classifier", "lm"])
def test_a_length_that_cannot_be_is_refused_before_anything_is_made(
    jumok: Jumok, tmp_path: Path, what: str, minutes: str
) -> None:
    ended = jumok("demo", what, "--directory", tmp_path / "demo", f"--minutes={minutes}")
    assert (ended.code, ended.out) == (2, "")
    assert f"stop.minutes={float(minutes)} cannot be used" in ended.err
    assert not (tmp_path / "demo").exists()


@pytest.mark.usefixtures("small")
def test_all_demos_pass_on_what_to_do_with_an_older_training(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    class Enough(Exception):
        pass

    def train(training: DemoTraining, *_data: object, **_arguments: object) -> None:
        asked.append(training.fresh)
        raise Enough

    monkeypatch.setattr(corpus.demo_pairs, "__defaults__", (0, 200))
    monkeypatch.setattr(DemoTraining, "train", train)
    for what in ("translator", "classifier", "lm"):
        with pytest.raises(Enough):
            jumok("demo", what, "--directory", tmp_path / what, "--fresh")
    assert asked == [True] * 3


def test_pieces_no_font_can_draw_are_numbered_and_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    letters = set(map(ord, "abc</s>▁"))
    monkeypatch.setattr(picture, "_letters", lambda _file: letters)
    drawn: list[object] = []
    monkeypatch.setattr(picture, "_draw", lambda *arguments: drawn.append(arguments))
    weights = np.full((2, 2), 0.5, np.float32)
    legend = picture.draw_attention(weights, ["▁a", "</s>"], ["▁가", "</s>"], tmp_path / "a.png")
    assert drawn == [(weights, ["▁a", "</s>"], ["1", "2"], tmp_path / "a.png")]
    assert legend == ["No installed font has the letters of the output, so its tokens are numbered: 1 ▁가  2 </s>"]


def test_a_picture_is_drawn_without_a_word_when_the_letters_are_there(tmp_path: Path) -> None:
    weights = np.full((2, 3), 1 / 3, np.float32)
    assert picture.draw_attention(weights, ["▁a", "b", "</s>"], ["▁c", "</s>"], tmp_path / "a.png") == []
    assert (tmp_path / "a.png").stat().st_size > 1000
