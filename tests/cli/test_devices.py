"""Every command on a card. The card is a pretend one (tests/pretend_card.py), as strict as a real one about where
tensors are; whatever runs on it assumes nothing about the device."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import CLASSIFIER, LM, SMALL, Jumok, write_corpus, write_reviews

import pretend_card
from jumok import lens
from jumok.engines.loading import load
from jumok.training.trainer import Trainer
from pretend_card import Card

CARD = pretend_card.install()  # at collection: no test of this process has trained anything yet
TASKS = {"translator": SMALL, "classifier": CLASSIFIER, "lm": LM}
ON_CARD = ("--device", "card", "--precision", "float32")
WITHOUT_DROPOUT = "--set=model.dropout=0"


@pytest.fixture
def card(without_shape_checks: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    """A machine with a card."""
    CARD.present, CARD.memory = True, None
    CARD.waits.clear()
    monkeypatch.setattr(torch, "tensor", pretend_card.tensor)
    yield CARD
    CARD.present = False


def train_arguments(directory: Path, task: str, out: str, *more: str) -> list[str]:
    if task == "classifier":
        write_reviews(directory)
        files = ["train.tsv"]
    else:
        write_corpus(directory)
        files = ["a.en"] if task == "lm" else ["a.en", "a.ko"]
    sizes = [*TASKS[task], "--set=validate.sentences=4", "--set=checkpoint.average=1"]
    paths = [str(directory / name) for name in files]
    return ["train", task, *paths, "-o", str(directory / out), *sizes, *more, "--quiet"]


def losses(run: Path) -> list[float]:
    lines = (run / "log.jsonl").read_text().splitlines()
    return [entry["loss"] for entry in map(json.loads, lines) if entry["event"] == "train"]


@pytest.mark.parametrize("task", TASKS)
def test_training_on_a_card_has_the_losses_of_the_cpu(tmp_path: Path, jumok: Jumok, card: Card, task: str) -> None:
    for out, more in (("cpu", ("--device", "cpu")), ("card", ON_CARD)):
        arguments = train_arguments(tmp_path, task, out, "--steps=12", "--set=log.every=4", WITHOUT_DROPOUT, *more)
        assert jumok(*arguments).code == 0
    assert losses(tmp_path / "card") == pytest.approx(losses(tmp_path / "cpu"), rel=1e-6)
    assert len(losses(tmp_path / "card")) == 3


def test_a_training_on_a_card_waits_for_it_only_to_log_validate_and_save(
    tmp_path: Path, jumok: Jumok, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside: list[str] = []  # where the host waited during the steps themselves
    step = Trainer._step

    def counted(self: Trainer, *arguments: Any) -> Any:
        before = len(card.waits)
        result = step(self, *arguments)
        inside.extend(card.waits[before:])
        return result

    monkeypatch.setattr(Trainer, "_step", counted)
    arguments = train_arguments(tmp_path, "translator", "run", "--steps=9", "--set=log.every=4", *ON_CARD)
    assert jumok(*arguments, "--set=batch.accumulate=2").code == 0
    assert inside == []
    reads = Counter(wait for wait in card.waits if wait.startswith("training/updates.py"))
    assert reads == {"training/updates.py:read aten::_to_copy": 3}  # after steps 4, 8 and 9


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_training_on_a_card_that_was_stopped_ends_with_the_same_bits(
    tmp_path: Path, jumok: Jumok, card: Card, precision: str
) -> None:
    more = ("--device=card", f"--precision={precision}", "--set=validate.every=4", "--set=checkpoint.every=4")
    whole = train_arguments(tmp_path, "translator", "whole", "--steps=8", *more)
    parts = train_arguments(tmp_path, "translator", "parts", "--steps=8", *more)
    assert jumok(*whole).code == 0
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 5)  # between two validations
        assert jumok(*parts).code != 0
    card.generator.manual_seed(99)  # as another process would find it
    assert jumok(*parts).code == 0
    ends = [tmp_path / name / "checkpoints" / "step-00000008" for name in ("whole", "parts")]
    for file in ("model.safetensors", "optimizer.safetensors"):
        assert (ends[0] / file).read_bytes() == (ends[1] / file).read_bytes()


def stop_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Somebody asks the training to stop after so many steps."""
    step = Trainer._step

    def stopping(self: Trainer, *arguments: Any) -> tuple[bool, bool]:
        stop, save = step(self, *arguments)
        return stop or self.progress.step == steps, save

    patch.setattr(Trainer, "_step", stopping)


def test_dropout_draws_from_the_generator_of_the_card(tmp_path: Path, jumok: Jumok, card: Card) -> None:
    runs = []
    for seed in (1, 2):  # of the generator of the host, which must not matter
        torch.manual_seed(seed)
        card.generator.manual_seed(seed)
        out = f"run{seed}"
        arguments = train_arguments(tmp_path, "translator", out, "--steps=4", *ON_CARD, "--set=log.every=1")
        assert jumok(*arguments).code == 0
        runs.append(losses(tmp_path / out))
    assert runs[0] == runs[1]


def test_a_batch_that_does_not_fit_onto_the_card_is_split(tmp_path: Path, jumok: Jumok, card: Card) -> None:
    arguments = train_arguments(tmp_path, "translator", "whole", "--steps=4", *ON_CARD, WITHOUT_DROPOUT)
    assert jumok(*arguments).code == 0
    card.memory = 100_000
    split = train_arguments(tmp_path, "translator", "split", "--steps=4", *ON_CARD, WITHOUT_DROPOUT)
    ended = jumok(*split[:-1], "--json")
    card.memory = None
    assert ended.code == 0
    assert '"memory"' in ended.out
    assert losses(tmp_path / "split") == pytest.approx(losses(tmp_path / "whole"), rel=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        ("--beam", "3", "--n-best", "2", "--json"),
        ("--temperature", "0.8", "--top-k", "5", "--seed", "3"),
        ("--temperature", "0.8", "--top-p", "0.9"),
        ("--alignment", "--json"),
        ("--no-repeat-ngram", "2"),
    ],
)
def test_translation_on_a_card_is_that_of_the_cpu(trained: Path, jumok: Jumok, card: Card, options: Any) -> None:
    text = "The small cat sees the dog.\nThe red bird likes the big fish.\n"
    found = [
        jumok("translate", "-m", trained / "run", "--engine=torch", "--device", device, *options, stdin=text)
        for device in ("cpu", "card")
    ]
    assert [each.code for each in found] == [0, 0]
    assert rounded(found[0].out) == rounded(found[1].out)


def rounded(text: str) -> list[Any]:
    """Lines of text or JSON, numbers to five digits."""
    if not text.startswith(("{", "[")):
        return text.splitlines()
    return [json.loads(line, parse_float=lambda number: round(float(number), 4)) for line in text.splitlines()]


def test_scores_and_vectors_on_a_card_are_those_of_the_cpu(trained: Path, card: Card) -> None:
    on_cpu, on_card = (load(trained / "run", "torch", task="translator", device=name) for name in ("cpu", "card"))
    sources, targets = ["The small cat sees the dog."], ["작은 고양이 개 봐요."]
    assert on_card.score(sources, targets)[0] == pytest.approx(on_cpu.score(sources, targets)[0], abs=1e-5)
    assert on_card.vectors(sources) == pytest.approx(on_cpu.vectors(sources), abs=1e-5)


def test_classes_and_explanations_on_a_card_are_those_of_the_cpu(
    trained_classifier: Path, jumok: Jumok, card: Card
) -> None:
    for options in (["--json"], ["--explain", "3", "--json"]):
        asked = ["classify", "-m", trained_classifier / "run", "--engine=torch", *options]
        found = [jumok(*asked, f"--device={name}", stdin="A fine film.\n") for name in ("cpu", "card")]
        assert found[0].code == found[1].code == 0
        assert rounded(found[0].out) == rounded(found[1].out)


def test_a_trace_on_a_card_is_that_of_the_cpu(trained: Path, card: Card) -> None:
    traces = [
        lens.trace(load(trained / "run", "torch", task="translator", device=name), "The small cat sees the dog.")
        for name in ("cpu", "card")
    ]
    for name in ("encoder.0.self.weights", "decoder.0.cross.weights", "logits"):
        assert traces[1][name] == pytest.approx(traces[0][name], abs=1e-4), name


def test_auto_takes_the_card_and_says_so(tmp_path: Path, jumok: Jumok, card: Card) -> None:
    arguments = train_arguments(tmp_path, "translator", "run", "--steps=2", "--set=model.dropout=0")
    ended = jumok(*arguments[:-1], "--json")
    assert ended.code == 0
    plan = next(json.loads(line) for line in ended.out.splitlines() if '"plan"' in line)
    chosen = {choice["name"]: choice["value"] for choice in plan["choices"]}
    assert (chosen["device"], chosen["precision"]) == ("card", "bfloat16")


def test_a_change_of_the_device_is_reported_at_resume(tmp_path: Path, jumok: Jumok, card: Card) -> None:
    first = train_arguments(tmp_path, "translator", "run", "--steps=4", "--device=cpu")
    assert jumok(*first).code == 0
    further = train_arguments(tmp_path, "translator", "run", "--steps=6", *ON_CARD, "--continue-with-changes")
    ended = jumok(*further[:-1], "--json")
    assert ended.code == 0, ended.err
    resumed = next(json.loads(line) for line in ended.out.splitlines() if '"resumed"' in line)
    assert resumed["changed"]["device"] == ["cpu", "card"]


@pytest.mark.parametrize("name", ["cuda", "cuda:3", "card:1", "toaster"])
def test_a_device_that_is_not_there_is_an_error_that_names_those_that_are(
    tmp_path: Path, jumok: Jumok, card: Card, name: str
) -> None:
    ended = jumok(*train_arguments(tmp_path, "translator", "run", "--steps=2", f"--device={name}"))
    assert ended.code == 2
    assert name in ended.err
    assert "cpu, card:0" in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["cuda:first", "toaster"])
def test_a_wrong_name_of_a_device_is_an_error_when_a_model_is_used(trained: Path, jumok: Jumok, name: str) -> None:
    ended = jumok("translate", "-m", trained / "run", "--device", name, stdin="The cat.\n")
    assert ended.code == 2
    assert f'device="{name}" is not the name of a device' in ended.err
