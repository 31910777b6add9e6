"""Data diversification: the first stage translates both ways, and the second learns from what it has translated."""

from pathlib import Path
from typing import Any

import pytest

from jumok.bundle import load_bundle
from jumok.data.corpus import Corpus
from jumok.errors import ConfigError
from jumok.recipes import two_way_translator
from jumok.recipes.language_model import train_language_model
from jumok.recipes.training import plan
from jumok.recipes.translator import DIVERSIFIED_EPOCHS, TranslatorRecipe, train_translator
from jumok.system import usable_cores
from jumok.training.auto import TOKENS_PER_CORE
from jumok.training.events import Event
from jumok.training.records import read_run
from jumok.training.settings import Settings
from jumok.training.trainer import StoppedEarly

SETTINGS: dict[str, Any] = {
    "preset": "tiny",
    "model.d_model": 16,
    "model.heads": 2,
    "model.d_ff": 16,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "batch.tokens": 128,
    "validate.sentences": 4,
    "validate.every": 5,
    "init.embeddings": "random",
    "augment.diversify": True,
}
STEPS = 6
NAMES = ("bird", "dog", "house", "fish", "cow", "hen", "tree", "fox", "ant", "bee")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    lines = [f"the {one} sees the {two}\t{two} {one} nuna\n" for one in NAMES for two in NAMES]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def train(pairs: Path, out: str, **request: Any) -> Path:
    run = pairs.parent / out
    train_translator(pairs, out=run, **{"settings": SETTINGS, "steps": STEPS, "progress": False, **request})
    return run


def prepared(pairs: Path, settings: dict[str, Any] = SETTINGS) -> TranslatorRecipe:
    recipe = TranslatorRecipe([pairs])
    recipe.prepare(pairs.parent / "store", Settings.from_dict({}).changed(settings), expected=None, encoder=None)
    return recipe


def texts_of(corpus: Corpus) -> list[tuple[str, str, int]]:
    rows = range(len(corpus.train))
    sources, targets = (
        corpus.tokenizer.decode([corpus.train.example(side, row) for row in rows]) for side in ("source", "target")
    )
    return list(zip(sources, targets, (corpus.train.example("line", row)[0] for row in rows), strict=True))


def test_the_first_stage_learns_and_is_validated_in_both_directions(pairs: Path) -> None:
    recipe = prepared(pairs)
    first = recipe.first_stage(Settings.from_dict({}).changed(SETTINGS | {"stop.minutes": 6.0}))
    assert first is not None
    stage, settings = first
    once, twice = texts_of(recipe.corpus), texts_of(stage.corpus)
    assert twice == once + [(target, source, line) for source, target, line in once]
    inputs = [example.inputs for example in recipe.corpus.valid]
    assert [example.inputs for example in stage.corpus.valid] == inputs + [texts[::-1] for texts in inputs]
    assert (settings.stop.minutes, settings.augment.diversify) == (2.0, False)
    assert stage.card()["languages"] is None, "each language is source and target"
    assert stage.corpus.facts["examples"] == len(twice)


def test_new_pairs_are_translations_of_either_side_but_no_copies_and_nothing_that_is_there_already(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = prepared(pairs)
    corpus, known = recipe.corpus, texts_of(recipe.corpus)
    answers = {known[0][0]: "eins", known[0][1]: "one", known[1][0]: known[1][1], known[1][1]: known[1][1]}
    answers |= {known[2][0]: "", known[2][1]: "three"}
    cut = known[3][0]

    class Result:
        def __init__(self, text: str) -> None:
            self.text, self.finished = answers.get(text, "cut off" if text == cut else text), text != cut

    class FakeTranslator:
        def translate_batch(self, texts: list[str]) -> list[Result]:
            return [Result(text) for text in texts]

    class FakeBundle:
        weights_digest = "digest"

    monkeypatch.setattr(two_way_translator, "load", lambda *_, **__: FakeTranslator())
    monkeypatch.setattr(two_way_translator, "load_bundle", lambda _: FakeBundle)
    monkeypatch.setattr(two_way_translator, "PAIRS_AT_A_TIME", 7)
    done: list[Any] = []
    store = pairs.parent / "translations"
    found = two_way_translator.diversified(corpus, Path("model"), store, done.append)
    expected = [(known[0][0], "eins", known[0][2]), ("one", known[0][1], known[0][2]), ("three", *known[2][1:])]
    assert texts_of(found) == known + expected
    assert [event["done"] for event in done] == list(range(0, len(known), 7))
    assert found.facts == corpus.facts
    done.clear()
    assert texts_of(two_way_translator.diversified(corpus, Path("model"), store, done.append)) == texts_of(found)
    assert not done, "they are kept"


def test_a_plan_counts_with_as_many_pairs_as_there_can_be(pairs: Path) -> None:
    few = SETTINGS | {"batch.tokens": 16}
    usual, more = (plan("translator", pairs, steps=9, settings=few | {"augment.diversify": on}) for on in (False, True))
    assert more.work.steps_per_epoch == pytest.approx(3 * usual.work.steps_per_epoch, rel=0.1)
    assert more.work.validation_steps == pytest.approx(usual.work.validation_steps, rel=0.1)
    assert "augment.diversify = true" in more.to_toml()


def test_a_training_stopped_in_either_stage_or_between_them_ends_with_the_same_weights(pairs: Path) -> None:
    moment, now, steps = "", "", 0

    def on_event(event: Event) -> None:
        nonlocal now
        if event["event"] == "stage":
            now = f"stage {event['number']}"
        if event["event"] == "translating" and moment == "translating":
            raise StoppedEarly

    def stop_requested() -> bool:
        nonlocal steps
        steps += now == moment
        return steps == 3

    for each in ("stage 1", "translating", "stage 2"):
        moment, steps = each, 0
        with pytest.raises(StoppedEarly):
            train(pairs, "stopped", on_event=on_event, stop_requested=stop_requested)
    stopped, whole = (load_bundle(train(pairs, out) / "model") for out in ("stopped", "whole"))
    assert stopped.weights_digest == whole.weights_digest


def test_the_second_stage_has_learned_from_translations_and_is_an_ordinary_translator(pairs: Path) -> None:
    titles: list[str] = []

    def on_event(event: Event) -> None:
        if event["event"] == "stage":
            titles.append(event["title"])

    run = train(pairs, "run", on_event=on_event)
    assert titles == ["translator of both directions", "translator"]
    assert len((run / "store" / "translations" / "source.lengths").read_bytes()) > 4 * 50
    record = read_run(run)
    assert record is not None
    assert (record["settings"]["augment"]["diversify"], record["data"]["examples"]) == (True, 95)
    assert load_bundle(run / "first_stage" / "model").card["languages"] is None
    with pytest.raises(ConfigError, match=r"augment\.diversify has no effect on a language model"):
        train_language_model(pairs, out=run.parent / "lm", settings={"augment.diversify": True})


def test_a_run_without_a_first_stage_goes_on_without_one(pairs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = {name: value for name, value in SETTINGS.items() if name != "augment.diversify"}
    request: dict[str, Any] = {"settings": plain, "steps": None, "minutes": 0.02}
    steps = iter(range(100))
    with pytest.raises(StoppedEarly):
        train(pairs, "run", stop_requested=lambda: next(steps) == 1, **request)
    assert not (pairs.parent / "run" / "first_stage").exists(), "too few pairs"
    monkeypatch.setattr("jumok.recipes.translator.LEAST_PAIRS", 1)
    monkeypatch.setattr("jumok.recipes.translator.DIVERSIFIED_EPOCHS", 0.0)
    run = train(pairs, "run", **request)
    assert not (run / "first_stage").exists()
    assert (train(pairs, "other", **request) / "first_stage").exists(), "a new one has one"


@pytest.mark.parametrize(
    ("preset", "settings", "epochs", "expected"),
    [
        ("tiny", {}, DIVERSIFIED_EPOCHS + 1, True),
        ("auto", {}, DIVERSIFIED_EPOCHS + 1, True),
        ("tiny", {}, DIVERSIFIED_EPOCHS - 1, None),
        ("small", {}, DIVERSIFIED_EPOCHS + 1, None),
        ("tiny", {"augment.diversify": False}, DIVERSIFIED_EPOCHS + 1, False),
        ("tiny", {"augment.diversify": True}, 1, True),
    ],
)
def test_few_pairs_for_many_minutes_are_translated_first(
    pairs: Path, monkeypatch: pytest.MonkeyPatch, preset: str, settings: dict[str, Any], epochs: float, expected: bool
) -> None:
    monkeypatch.setattr("jumok.recipes.translator.LEAST_PAIRS", 50)
    recipe = prepared(pairs, {})
    seconds = epochs * recipe.corpus.facts["tokens"] / (TOKENS_PER_CORE["tiny"] * usable_cores())
    asked = Settings.from_dict({}).changed({"preset": preset, "stop.minutes": seconds / 60} | settings)
    assert (recipe.first_stage(asked) is not None) == bool(expected)
    chosen = {choice.name: choice.value for choice in recipe.choices(asked)}
    assert chosen.get("augment.diversify", asked.augment.diversify) == expected
    longer = asked.changed({"stop.minutes": None, "stop.epochs": 1000.0, "augment.diversify": None})
    assert recipe.first_stage(longer) is None, "steps and epochs count in both stages, which nobody would expect"
