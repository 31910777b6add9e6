"""Data diversification: the first stage translates both ways, and the second learns from what it has translated."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jumok.bundle import load_bundle
from jumok.data.corpus import Corpus
from jumok.engines.translator.text import Result
from jumok.errors import CheckpointError, ConfigError
from jumok.recipes import training, two_way_translator
from jumok.recipes.language_model import train_language_model
from jumok.recipes.training import plan
from jumok.recipes.translator import TranslatorRecipe, train_translator
from jumok.recipes.two_way_translator import MINUTES_FOR_A_MILLION, TwoWayTranslatorRecipe
from jumok.training.events import Event
from jumok.training.records import read_run
from jumok.training.settings import Settings
from jumok.training.trainer import StoppedEarly, Trainer

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
LENGTHS = ("stop.minutes", "stop.steps")
TAB = "\t"
NAMES = {
    "bird": "새",
    "dog": "개",
    "house": "집",
    "fish": "생선",
    "cow": "소",
    "hen": "닭",
    "tree": "나무",
    "fox": "여우",
}
NAMES |= {"ant": "개미", "bee": "벌"}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    lines = [f"the {one} sees the {two}\t{NAMES[one]} {NAMES[two]} 봐요\n" for one in NAMES for two in NAMES]
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


class FakeTranslator:
    """Answers in a way of its own. The answer to the text `cut` was cut."""

    def __init__(self, answer: Callable[[str], str], cut: str = "") -> None:
        self.answer, self.cut = answer, cut

    def translate_batch(self, texts: Sequence[str]) -> list[Result]:
        return [Result(self.answer(text), finished=text != self.cut) for text in texts]


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

    class FakeBundle:
        weights_digest = "digest"

    translator = FakeTranslator(lambda text: answers.get(text, "cut off" if text == cut else text), cut)
    monkeypatch.setattr(two_way_translator, "load", lambda *_, **__: translator)
    monkeypatch.setattr(two_way_translator, "load_bundle", lambda _: FakeBundle)
    monkeypatch.setattr(two_way_translator, "PAIRS_AT_A_TIME", 7)
    done: list[Any] = []
    store = pairs.parent / "translations"
    found = two_way_translator.diversified(corpus, Path("model"), store, "auto", done.append)
    expected = [(known[0][0], "eins", known[0][2]), ("one", known[0][1], known[0][2]), ("three", *known[2][1:])]
    assert texts_of(found) == known + expected
    assert [event["done"] for event in done] == [*range(0, len(known), 7), len(known)]
    assert done[-1]["new"] == len(expected)
    assert found.facts == corpus.facts
    done.clear()
    assert texts_of(two_way_translator.diversified(corpus, Path("model"), store, "auto", done.append)) == texts_of(
        found
    )
    assert len(done) == 1, "they are kept"


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


def test_the_second_stage_learns_from_translations_too_and_is_an_ordinary_translator(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backwards = FakeTranslator(lambda text: text[::-1])
    monkeypatch.setattr(two_way_translator, "load", lambda *_, **__: backwards)
    titles: list[str] = []

    def on_event(event: Event) -> None:
        if event["event"] == "stage":
            titles.append(event["title"])

    run = train(pairs, "run", on_event=on_event)
    assert titles == [TwoWayTranslatorRecipe.title, "translator"]
    assert (run / "store" / "translations" / "source.lengths").stat().st_size == 4 * 2 * 95
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
    monkeypatch.setattr(two_way_translator, "LEAST_PAIRS", 1)
    monkeypatch.setattr(two_way_translator, "MINUTES_FOR_A_MILLION", 0.0)
    run = train(pairs, "run", **request)
    assert not (run / "first_stage").exists()
    assert (train(pairs, "other", **request) / "first_stage").exists(), "a new one has one"


@pytest.mark.parametrize(
    ("preset", "settings", "minutes", "expected"),
    [
        ("tiny", {}, MINUTES_FOR_A_MILLION + 1, True),
        ("auto", {}, MINUTES_FOR_A_MILLION + 1, True),
        ("tiny", {}, MINUTES_FOR_A_MILLION - 1, None),
        ("small", {}, MINUTES_FOR_A_MILLION + 1, None),
        ("tiny", {"augment.diversify": False}, MINUTES_FOR_A_MILLION + 1, False),
        ("tiny", {"augment.diversify": True}, 1, True),
    ],
)
def test_few_pairs_for_many_minutes_are_translated_first(
    pairs: Path,
    monkeypatch: pytest.MonkeyPatch,
    preset: str,
    settings: dict[str, Any],
    minutes: float,
    expected: bool | None,
) -> None:
    recipe = prepared(pairs, {})
    monkeypatch.setattr(two_way_translator, "LEAST_PAIRS", len(recipe.corpus.train))
    minutes *= recipe.corpus.facts["tokens"] / 1e6
    asked = Settings.from_dict({}).changed({"preset": preset, "stop.minutes": minutes} | settings)
    first = recipe.first_stage(asked)
    assert (first is not None) == bool(expected)
    if first is not None:
        assert first[1].preset == ("tiny" if "augment.diversify" not in settings else preset)
    chosen = {choice.name: choice.value for choice in recipe.choices(asked)}
    assert chosen.get("augment.diversify", asked.augment.diversify) == expected


def test_steps_epochs_few_pairs_and_one_language_choose_no_first_stage(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = prepared(pairs, {})
    minutes, steps = (Settings.from_dict({}).changed({"preset": "tiny", name: 100_000}) for name in LENGTHS)
    assert recipe.first_stage(minutes) is None, "too few pairs"
    monkeypatch.setattr(two_way_translator, "LEAST_PAIRS", 50)
    assert recipe.first_stage(minutes) is not None
    assert recipe.first_stage(steps) is None, "they count in both stages, which nobody would expect"
    same = pairs.parent / "same.tsv"
    lines = pairs.read_text(encoding="utf-8").splitlines()
    same.write_text("".join(f"{line.partition(TAB)[0]}{TAB}{line.partition(TAB)[0]}!\n" for line in lines))
    assert prepared(same, {}).first_stage(minutes) is None, "which direction is meant cannot be seen"


def test_files_and_findings_are_told_before_the_first_stage_and_minutes_are_shared(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = []
    seconds: list[float | None] = []

    class Noted(Trainer):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            seconds.append(self.options.seconds)

    monkeypatch.setattr(training, "Trainer", Noted)
    request: dict[str, Any] = {"steps": None, "minutes": 0.06}
    train(pairs, "run", on_event=events.append, **request)
    assert seconds == pytest.approx([0.06 * 60 / 3, 0.06 * 60])
    names = [event["event"] for event in events]
    assert names.count("file") == 1
    assert names.index("file") < names.index("stage")
    new = [event["new"] for event in events if event["event"] == "translating" and "new" in event]
    assert len(new) == 1


def test_a_first_stage_that_was_chosen_is_part_of_the_run_from_then_on(
    pairs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = {name: value for name, value in SETTINGS.items() if name != "augment.diversify"}
    request: dict[str, Any] = {"settings": plain, "steps": None, "minutes": 0.06}
    with monkeypatch.context() as patch:
        patch.setattr(two_way_translator, "LEAST_PAIRS", 1)
        patch.setattr(two_way_translator, "MINUTES_FOR_A_MILLION", 0.0)
        with pytest.raises(StoppedEarly):
            stop_in_the_second_stage(pairs, **request)
    done: list[Event] = []
    for changes in ({}, {"settings": plain | {"optimizer.lr": 0.001}, "continue_with_changes": True}):
        run = train(pairs, "run", on_event=done.append, **(request | changes))
        record = read_run(run)
        assert record is not None
        assert record["settings"]["augment"]["diversify"] is True
        assert [event["event"] for event in done].count("stage") == 2
        done.clear()


def stop_in_the_second_stage(pairs: Path, **request: Any) -> None:
    stage, steps = 0, 0

    def on_event(event: Event) -> None:
        nonlocal stage
        if event["event"] == "stage":
            stage = event["number"]

    def stop_requested() -> bool:
        nonlocal steps
        steps += stage == 2
        return steps == 3

    train(pairs, "run", on_event=on_event, stop_requested=stop_requested, **request)


def test_a_training_that_starts_again_and_is_stopped_in_its_first_stage_does_not_bring_the_old_model_back(
    pairs: Path,
) -> None:
    run = train(pairs, "run")
    with pytest.raises(StoppedEarly):
        train(pairs, "run", fresh=True, settings=SETTINGS | {"seed": 2}, stop_requested=lambda: True)
    assert not (run / "model").exists()
    assert not (run / "run.json").exists()
    with pytest.raises(ConfigError, match="schedule"):
        train(pairs, "other", settings=SETTINGS | {"schedule.name": "none"})
    train(pairs, "run", settings=SETTINGS | {"seed": 2})
    assert load_bundle(run / "model").card["seed"] == 2


def test_another_vocabulary_is_noticed_where_the_first_stage_has_learned_one(pairs: Path) -> None:
    with pytest.raises(StoppedEarly):
        train(pairs, "run", stop_requested=lambda: True)
    pairs.write_text(pairs.read_text(encoding="utf-8").replace("sees", "observes"), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"does not fit these changes:\n  vocabulary: "):
        train(pairs, "run", continue_with_changes=True)


def test_what_the_card_says_of_sources_is_of_the_corpus_alone(pairs: Path) -> None:
    recipe = prepared(pairs)
    before = recipe.card()
    train_ = recipe.corpus.train
    twice = train_.renamed(two_way_translator.EXCHANGED)
    recipe.corpus = replace(recipe.corpus, train=train_.followed_by(twice))
    assert recipe.card() == before
    assert recipe._source_sample() == prepared(pairs)._source_sample()
