"""jumok demo, on a small part of its corpus; and its picture."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from commands import CLASSIFIER, LM, SMALL, Jumok
from PIL import Image

from jumok.cli import (
    demo_before_attention,
    demo_classifier,
    demo_language_model,
    demo_painter,
    demo_translator,
    demo_vision,
)
from jumok.cli.demo_training import DemoTraining
from jumok.cli.training import train_with_display
from jumok.demo import pairs as corpus
from jumok.demo.reviews import demo_reviews
from jumok.training.settings import parse_assignments

PAINTER = [*(setting for setting in SMALL if "tokens" not in setting), "--set=model.codes=16"]
VISION = [setting for setting in CLASSIFIER if "tokens" not in setting]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A demo of seconds."""
    monkeypatch.setattr(corpus, "TEST_SIZE", 12)
    monkeypatch.setattr(demo_vision, "TRAIN", 160)
    monkeypatch.setattr(demo_vision, "TEST", 24)
    monkeypatch.setattr(demo_painter, "PICTURES", 60)
    monkeypatch.setattr(demo_painter, "TEST_PICTURES", 12)
    monkeypatch.setattr(corpus, "VALID_SIZE", 5)
    for function, count in ((corpus.write_demo_corpus, 200), (corpus.demo_pairs, 200), (demo_reviews, 1100)):
        monkeypatch.setattr(function, "__defaults__", (0, count))
    for demo, options in (
        (demo_translator, SMALL),
        (demo_classifier, CLASSIFIER),
        (demo_language_model, LM),
        (demo_vision, VISION),
        (demo_painter, PAINTER),
    ):
        settings = parse_assignments(setting.removeprefix("--set=") for setting in options)
        monkeypatch.setattr(demo, "SETTINGS", {"preset": "tiny", **settings})
    shared = {
        name: value for name, value in demo_translator.SETTINGS.items() if name not in ("model.heads", "model.d_ff")
    }
    monkeypatch.setattr(demo_before_attention, "SETTINGS", shared)


@pytest.mark.usefixtures("small")
def test_the_tour_leaves_what_it_promises(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("demo", "--directory", tmp_path / "demo", "--minutes", "0.003")
    assert ended.code == 0, ended.err
    for said in ("I am a student.", "because it was too tired.", "exactly right: ", "BLEU", "jumok translate -m"):
        assert said in ended.out
    assert ended.out.count("✓") + ended.out.count("✗") == 3 + 8
    assert (tmp_path / "demo" / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo" / "run" / "model" / "weights.safetensors").exists()
    assert f"Saved {tmp_path / 'demo' / 'explorer.html'}" in ended.out
    assert "because it was too tired." in (tmp_path / "demo" / "explorer.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("small")
def test_the_demo_of_a_classifier_shows_a_test_and_tricky_reviews(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("demo", "classifier", "--directory", tmp_path / "demo", "--minutes", "0.003")
    assert ended.code == 0, ended.err
    assert re.search(r"correct: \d+\.\d% of 1,000 reviews\n", ended.out)
    assert len(re.findall(r"^   (?:positive|negative) \d+%  The ", ended.out, re.MULTILINE)) == 3
    assert f"jumok classify -m {tmp_path / 'demo' / 'run'} --explain 3" in ended.out
    assert jumok("classify", "-m", tmp_path / "demo" / "run", stdin="Good.\n").code == 0


@pytest.mark.usefixtures("small")
def test_the_demo_of_vision_shows_a_test_and_pictures(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("demo", "vision", "--directory", tmp_path / "demo", "--minutes", "0.003")
    assert ended.code == 0, ended.err
    assert re.search(r"correct: \d+\.\d% of 24 pictures\n", ended.out)
    [command] = re.findall(r"jumok (classify -m .*)\n", ended.out)
    assert jumok(*command.split()).out.count("\t") == 2


@pytest.mark.usefixtures("small")
def test_the_demo_of_a_painter_shows_a_test_and_a_sheet(jumok: Jumok, tmp_path: Path) -> None:
    directory = tmp_path / "demo"
    ended = jumok("demo", "painter", "--directory", directory, "--minutes", "0.003")
    assert ended.code == 0, ended.err
    assert re.search(r"drawn right: \d+\.\d% of 12 captions\n", ended.out)
    assert re.search(r"\d+\.\d% at a place\n.* in a relation\n.* several\n.* English\n.* Korean\n", ended.out)
    assert ended.out.count("✓") + ended.out.count("✗") == 8
    with Image.open(directory / "painted.png") as sheet:
        assert sheet.size == (4 + 8 * (3 * 32 + 4), 4 + 2 * (3 * 32 + 4))
    assert len((directory / "captions.tsv").read_text(encoding="utf-8").splitlines()) == 60
    [command, _] = re.findall(r"jumok (paint -m .*)\n", ended.out)
    words = [str(tmp_path / word) if word == "picture.png" else word for word in shlex.split(command)]
    assert "4 pictures of 32 × 32 pixels" in jumok(*words).out


@pytest.mark.usefixtures("small")
def test_the_demo_of_a_language_model_writes_five_sentences(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("demo", "lm", "--directory", tmp_path / "demo", "--minutes", "0.003")
    assert ended.code == 0, ended.err
    _, _, written = ended.out.partition("3. Generated sentences\n")
    sentences, _, advice = written.partition("\n4. Try it\n")
    assert sentences.count("\n   ") + 1 >= 5
    assert f"jumok generate -m {tmp_path / 'demo' / 'run'} --prompt" in advice
    assert jumok("generate", "-m", tmp_path / "demo" / "run", "--prompt", "나는").code == 0


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("what", "steps", "result", "least"),
    [
        ("translator", 2500, r"exactly right: ([\d.]+)%", 80.0),
        ("classifier", 500, r"correct: ([\d.]+)%", 90.0),
        ("lm", 800, r"bits/byte ([\d.]+)", 0.0),
        ("vision", 1000, r"correct: ([\d.]+)%", 97.0),
        ("painter", 2600, r"drawn right: ([\d.]+)%", 90.0),
    ],
)
def test_a_whole_demo_learns_what_it_shows(
    what: str, steps: int, result: str, least: float, jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In fewer steps than two cores take in the minutes of the demo: a busy machine takes longer and learns as much."""

    def train_for_steps(*arguments: Any, settings: dict[str, Any], **options: Any) -> Any:
        settings = {**settings, "stop.minutes": None, "stop.steps": steps}
        return train_with_display(*arguments, settings=settings, **options)

    monkeypatch.setattr("jumok.cli.demo_training.train_with_display", train_for_steps)
    ended = jumok("demo", what, "--directory", tmp_path / "demo")
    assert ended.code == 0, ended.err
    found = [float(each) for each in re.findall(result, ended.out)]
    assert found[-1] >= least
    if what == "lm":
        assert found[-1] < 0.8 * found[0]


@pytest.mark.usefixtures("small", "without_shape_checks")
def test_the_demo_of_what_came_before_compares_three_networks(jumok: Jumok, tmp_path: Path) -> None:
    ended = jumok("demo", "before-attention", "--directory", tmp_path / "demo", "--minutes", "0.003")
    assert ended.code == 0, ended.err
    [heading] = re.findall(r"words +rnn +rnn-attention +tiny\n", ended.out)
    assert re.search(r"7–9( +\d+\.\d%){3}\n", ended.out.split(heading)[1])
    assert (tmp_path / "demo" / "attention.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "demo" / "rnn" / "run" / "model" / "weights.safetensors").exists()


@pytest.mark.usefixtures("small")
def test_a_changed_length_is_refused_and_what_the_error_advises_works(
    jumok: Jumok, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for what_is_shown in ("_test", "draw_attention"):
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

    monkeypatch.setattr(DemoTraining, "train", train)
    for what in ("translator", "classifier", "lm", "before-attention"):
        with pytest.raises(Enough):
            jumok("demo", what, "--directory", tmp_path / what, "--fresh")
    assert asked == [True] * 4
