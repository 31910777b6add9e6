"""A translator learns, through the whole way from two files to a bundle."""

import io
import json
import random
import shutil
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.modules.module import register_module_forward_hook

from jumok.bundle import load_bundle
from jumok.engines.loading import load
from jumok.errors import ChangedDataError, CheckpointError, ConfigError, JumokError
from jumok.model.config import preset as preset_config
from jumok.model.stacks import Decoder, Encoder
from jumok.recipes.language_model import LanguageModelRecipe
from jumok.recipes.training import plan, train
from jumok.recipes.translator import TranslatorRecipe, train_translator
from jumok.training.settings import Settings
from jumok.training.trainer import StoppedEarly

LETTERS = "abcdefghij"
SMALL: dict[str, Any] = {
    "preset": "tiny",
    "model.d_model": 32,
    "model.heads": 2,
    "model.d_ff": 64,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.0,
    "model.norm": "pre",
    "loss.smoothing": 0.0,
    "batch.tokens": 256,
    "optimizer.lr": 0.004,
    "init.embeddings": "random",
    "validate.sentences": 5,
    "validate.every": 10_000,
    "checkpoint.average": 1,
}


def sequences(count: int, seed: int, letters: str = LETTERS, longest: int = 8) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choice(letters) for _ in range(draw.randint(1, longest))) for _ in range(count)]


def write_task(directory: Path, count: int, answer: Callable[[str], str], **kind: Any) -> tuple[Path, Path]:
    source, target = directory / "a.src", directory / "a.tgt"
    lines = sequences(count, seed=0, **kind)
    source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    target.write_text("".join(f"{answer(line)}\n" for line in lines), encoding="utf-8")
    return source, target


# To copy is the easier of the two.
@pytest.mark.parametrize(
    ("answer", "steps"),
    [
        pytest.param(str, 500, id="copy", marks=pytest.mark.slow),
        pytest.param(lambda line: line[::-1], 600, id="reverse"),
    ],
)
def test_it_learns_random_sequences_perfectly(tmp_path: Path, answer: Callable[[str], str], steps: int) -> None:
    short = {"letters": "abcdefgh", "longest": 5}  # learned in half the steps; not a tenth of all are in the corpus
    corpus = write_task(tmp_path, 6000, answer, **short)
    changes = {"model.d_model": 48, "model.d_ff": 128, "optimizer.lr": 0.006}
    train_translator(*corpus, out=tmp_path / "run", steps=steps, settings=SMALL | changes)
    known = set(sequences(6000, seed=0, **short))
    unseen = [line for line in sequences(2000, seed=1, **short) if line not in known][:200]
    assert len(unseen) == 200
    assert load(tmp_path / "run").translate(unseen, beam=1) == [answer(line) for line in unseen]


def test_the_same_call_again_finds_it_done_and_other_settings_are_shown(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    events: list[Any] = []
    first = train_translator(*corpus, out=tmp_path / "run", steps=12, settings=SMALL)
    again = train_translator(*corpus, out=tmp_path / "run", steps=12, settings=SMALL, on_event=events.append)
    assert again == first
    assert events[-2:] == [{"event": "already_done", "step": 12}, {"event": "finished"}]
    with pytest.raises(CheckpointError, match=r"optimizer\.lr.*0\.004.*0\.001"):
        train_translator(*corpus, out=tmp_path / "run", steps=12, settings={**SMALL, "optimizer.lr": 0.001})


def test_more_steps_go_on_and_fresh_starts_again(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    train_translator(*corpus, out=tmp_path / "run", steps=10, settings=SMALL)
    events: list[Any] = []
    longer = train_translator(
        *corpus, out=tmp_path / "run", steps=14, settings=SMALL, continue_with_changes=True, on_event=events.append
    )
    assert longer.steps == 14
    assert any(event["event"] == "resumed" and event["step"] == 10 for event in events)
    events.clear()
    train_translator(*corpus, out=tmp_path / "run", steps=5, settings=SMALL, fresh=True, on_event=events.append)
    assert not any(event["event"] == "resumed" for event in events)


def test_fresh_with_data_or_settings_that_cannot_be_used_keeps_the_model_that_is_there(tmp_path: Path) -> None:
    source, target = write_task(tmp_path, 200, str)
    train_translator(source, target, out=tmp_path / "run", steps=3, settings=SMALL)
    before = content_of(tmp_path / "run")
    shorter = tmp_path / "shorter.tgt"
    shorter.write_text("a b c\n", encoding="utf-8")
    half = tmp_path / "half.tgt"
    half.write_text("a b\n\n" * 100, encoding="utf-8")
    mistakes: list[tuple[dict[str, Any], str]] = [
        ({"target": half}, "100 of 200 pairs cannot be used, more than a third"),
        ({"target": tmp_path / "b.tgt"}, "no such file"),
        ({"target": target, "valid": [tmp_path / "v.tsv"]}, "no such file"),
        ({"target": shorter}, "has 200 lines but"),
        ({"target": target, "settings": {**SMALL, "schedule.warmup": 4}}, "warmup=4 is longer"),
    ]
    for mistake, said in mistakes:
        request = {"settings": SMALL, **mistake}
        with pytest.raises(JumokError, match=said):
            train_translator(source, **request, out=tmp_path / "run", steps=3, fresh=True)
        assert content_of(tmp_path / "run") == before


def test_one_validation_file_needs_no_list_and_languages_come_in_twos(tmp_path: Path) -> None:
    source, target = write_task(tmp_path, 200, str)
    (tmp_path / "v.tsv").write_text("a b\ta b\nb a c\tb a c\n", encoding="utf-8")
    planned = plan("translator", source, target, valid=str(tmp_path / "v.tsv"), steps=3, settings=SMALL)
    assert planned.facts["valid_examples"] == 2
    for languages in ("en", ("en",), ("en", "ko", "de")):
        with pytest.raises(ConfigError, match=r'languages is .*`languages=\("en", "ko"\)`'):
            plan("translator", source, target, languages=languages, steps=3, settings=SMALL)


def content_of(run: Path) -> dict[str, bytes]:
    """Every file of a run directory but its lock."""
    return {str(path.relative_to(run)): path.read_bytes() for path in run.rglob("*") if path.is_file()} | {".lock": b""}


def times_of(run: Path) -> dict[str, tuple[int, int]]:
    """Of every file but the lock: which file it is, and when it was written. The same content written again differs."""
    paths = [path for path in run.rglob("*") if path.is_file() and path.name != ".lock"]
    return {str(path.relative_to(run)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in paths}


def test_changed_files_are_noticed_before_anything_is_written(tmp_path: Path) -> None:
    source, target = write_task(tmp_path, 200, str)
    train_translator(source, target, out=tmp_path / "run", steps=3, settings=SMALL)
    before, times = content_of(tmp_path / "run"), times_of(tmp_path / "run")
    assert {"run.json", "log.jsonl", "store/prepared.json", "model/weights.safetensors"} <= before.keys()
    assert any(name.startswith("checkpoints/step-") for name in before)
    with open(target, "a", encoding="utf-8") as file:
        file.write("a a a\n")
    size = target.stat().st_size
    said = r"run: was trained on other data: a\.src, a\.tgt \(1\d\d pairs, since \d{4}-\d\d-\d\d \d\d:\d\d\)\.\n"
    said += rf"Changed since: a\.tgt \({size - 6:,} bytes then, {size:,} now\)"
    with pytest.raises(ChangedDataError, match=said):
        train_translator(source, target, out=tmp_path / "run", steps=3, settings=SMALL)
    assert content_of(tmp_path / "run") == before
    assert times_of(tmp_path / "run") == times


def test_other_files_in_an_existing_run_are_told_what_it_was_trained_on(tmp_path: Path) -> None:
    source, target = write_task(tmp_path, 200, str)
    valid = tmp_path / "v.tsv"
    valid.write_text("a b\ta b\n", encoding="utf-8")
    train_translator(source, target, out=tmp_path / "run", valid=[valid], steps=3, settings=SMALL)
    others = [shutil.copy(source, tmp_path / "b.src"), shutil.copy(source, tmp_path / "b.tgt")]
    with open(others[0], "a", encoding="utf-8") as file:
        file.write("a")
    said = r"on other data: a\.src, a\.tgt \(200 pairs, since .*\), validated on v\.tsv\.\nNow given: b\.src, b\.tgt\."
    with pytest.raises(ChangedDataError, match=said):
        train_translator(*others, out=tmp_path / "run", steps=3, settings=SMALL)
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    del record["data"]  # as in a run of an earlier version
    (tmp_path / "run" / "run.json").write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(ChangedDataError, match=r"was trained on other data: a\.src, a\.tgt\.\nNow given: b\.src"):
        train_translator(*others, out=tmp_path / "run", steps=3, settings=SMALL)


def give_input(monkeypatch: pytest.MonkeyPatch, lines: Sequence[str]) -> None:
    rows = "".join(f"{line}\t{line}\n" for line in lines)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(rows.encode())))


def test_another_standard_input_is_noticed_before_the_copy_of_the_first_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = sequences(100, seed=0), sequences(100, seed=1)
    request: dict[str, Any] = {"out": tmp_path / "run", "steps": 3, "settings": SMALL}
    give_input(monkeypatch, first)
    train_translator("-", **request)
    before, times = content_of(tmp_path / "run"), times_of(tmp_path / "run")
    assert "".join(f"{line}\t{line}\n" for line in first).encode() in before.values()
    give_input(monkeypatch, second)
    with pytest.raises(ChangedDataError, match=r"data: standard input \(95 pairs, .*\)\.\nChanged since: standard"):
        train_translator("-", **request)
    assert content_of(tmp_path / "run") == before
    assert times_of(tmp_path / "run") == times  # the new input was copied, and its copy removed
    give_input(monkeypatch, first)
    assert train_translator("-", **request).steps == 3
    assert content_of(tmp_path / "run") == before
    give_input(monkeypatch, second)  # read once, though it was not what was expected
    assert train_translator("-", **request | {"steps": 4}, continue_with_changes=True).steps == 4
    [kept] = (tmp_path / "run" / "store").glob("input-*")
    assert kept.read_text(encoding="utf-8") == "".join(f"{line}\t{line}\n" for line in second)


def test_changed_files_are_learned_from_with_the_vocabulary_the_model_knows(tmp_path: Path) -> None:
    source, target = write_task(tmp_path, 200, str)
    train_translator(source, target, out=tmp_path / "run", steps=3, settings=SMALL)
    vocabulary = (tmp_path / "run" / "model" / "tokenizer.model").read_bytes()
    for path in (source, target):
        with open(path, "a", encoding="utf-8") as file:
            file.write("다른 글자\n" * 30)
    events: list[Any] = []
    longer = {"out": tmp_path / "run", "steps": 6, "settings": SMALL}
    train_translator(source, target, **longer, continue_with_changes=True, on_event=events.append)
    assert (tmp_path / "run" / "model" / "tokenizer.model").read_bytes() == vocabulary
    assert (tmp_path / "run" / "store" / "tokenizer.model").read_bytes() == vocabulary
    assert [event["step"] for event in events if event["event"] == "resumed"] == [3]
    events.clear()
    again = train_translator(source, target, **longer, on_event=events.append)
    assert again.steps == 6
    assert events[-2:] == [{"event": "already_done", "step": 6}, {"event": "finished"}]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"seed": 5}, "seed: 1 → 5"),
        ({"tokenizer.size": 400}, "tokenizer.size: null → 400"),
        ({"model.d_ff": 48}, "model.d_ff: 64 → 48"),
    ],
)
def test_what_was_learned_must_fit_the_changes(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    corpus = write_task(tmp_path, 200, str)
    train_translator(*corpus, out=tmp_path / "run", steps=3, settings=SMALL)
    with pytest.raises(CheckpointError, match=said):
        train_translator(
            *corpus, out=tmp_path / "run", steps=6, settings={**SMALL, **change}, continue_with_changes=True
        )


def test_other_batches_are_gone_on_with(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    train_translator(*corpus, out=tmp_path / "run", steps=3, settings=SMALL)
    changed = {**SMALL, "batch.tokens": 100, "model.dropout": 0.3, "optimizer.beta1": 0.8}
    ended = train_translator(*corpus, out=tmp_path / "run", steps=6, settings=changed, continue_with_changes=True)
    assert ended.steps == 6


def test_a_training_that_lost_its_patience_is_finished(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    settings = {**SMALL, "stop.patience": 1, "validate.every": 1, "validate.sentences": 1, "optimizer.lr": 1e-9}
    ended = train_translator(*corpus, out=tmp_path / "run", steps=50, settings=settings)
    assert ended.steps < 50
    events: list[Any] = []
    assert train_translator(*corpus, out=tmp_path / "run", steps=50, settings=settings, on_event=events.append) == ended
    assert {"event": "already_done", "step": ended.steps} in events


def test_one_file_holds_both_sides_of_the_validation(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    (tmp_path / "valid.tsv").write_text("a b\ta b\nb c\tb c\n", encoding="utf-8")
    events: list[Any] = []
    valid = [tmp_path / "valid.tsv"]
    train_translator(*corpus, valid=valid, out=tmp_path / "run", steps=2, settings=SMALL, on_event=events.append)
    assert next(event for event in events if event["event"] == "corpus")["valid_examples"] == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"preset": "tinny"}, "tiny"),
        ({"model.heads": 3}, "heads=3"),
        ({"model.hedas": 3}, "heads"),
        ({"stop.minutes": 1.0, "stop.steps": 5}, "both given"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    corpus = write_task(tmp_path, 50, str)
    with pytest.raises(ConfigError, match=message):
        train_translator(*corpus, out=tmp_path / "run", settings=settings)
    assert not (tmp_path / "run").exists()


@pytest.fixture
def simulated_clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A clock that only the work of a model moves on: a machine always as fast, whatever else keeps this one busy."""
    seconds = 0.0

    def read() -> float:
        nonlocal seconds
        seconds += 1e-6
        return seconds

    def work(module: nn.Module, *_: object) -> None:
        nonlocal seconds
        if isinstance(module, Encoder | Decoder):
            seconds += 0.06 if torch.is_grad_enabled() else 0.01

    monkeypatch.setattr(time, "perf_counter", read)
    hook = register_module_forward_hook(work)
    yield
    hook.remove()


@pytest.mark.usefixtures("simulated_clock")
def test_minutes_are_kept_with_validations_averaging_and_export(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jumok.training.auto.LEAST_SECONDS", 1.0)
    corpus = write_task(tmp_path, 400, str)
    events: list[Any] = []
    settings = {**SMALL, "stop.minutes": 0.25, "validate.every": None, "validate.sentences": 20}
    began = time.perf_counter()
    train_translator(*corpus, out=tmp_path / "run", settings=settings, on_event=events.append)
    assert 0.75 * 15 < time.perf_counter() - began < 1.25 * 15  # seconds
    [plan] = [event for event in events if event["event"] == "plan"]
    assert {choice["name"] for choice in plan["choices"]} >= {"schedule.name", "schedule.warmup"}
    assert all(choice["why"] for choice in plan["choices"])
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert record["settings"]["stop"] == {"steps": None, "epochs": None, "minutes": 0.25, "patience": None}
    done = next(event for event in events if event["event"] == "done")
    assert record["length"][-1][1] == done["step"]
    again = train_translator(*corpus, out=tmp_path / "run", settings=settings, on_event=events.append)
    assert again.steps == done["step"]
    assert {"event": "already_done", "step": done["step"]} in events


def test_two_trainings_with_the_same_seed_end_in_the_same_bits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the second has a machine on which everything takes longer."""
    corpus = write_task(tmp_path, 200, str)
    settings = {name: value for name, value in SMALL.items() if name not in ("validate.every", "checkpoint.every")}
    settings["model.dropout"] = 0.1
    train_translator(*corpus, out=tmp_path / "first", epochs=2, settings=settings)
    real = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 50 * real())
    train_translator(*corpus, out=tmp_path / "second", epochs=2, settings=settings)
    first, second = (load_bundle(tmp_path / run / "model") for run in ("first", "second"))
    assert first.weights_digest == second.weights_digest
    assert first.card["step"] == second.card["step"]
    runs = [json.loads((tmp_path / run / "run.json").read_text(encoding="utf-8")) for run in ("first", "second")]
    for run in runs:  # the minute in which each began
        assert run["data"].pop("since")
    assert runs[0] == runs[1]


def test_a_plan_says_what_training_would_do_and_leaves_nothing(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    before = sorted(path.name for path in tmp_path.iterdir())
    planned = plan("translator", *corpus, epochs=3, settings=SMALL)
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    train_translator(*corpus, out=tmp_path / "run", epochs=3, settings=SMALL)
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    assert planned.settings.to_dict() == record["settings"]
    config = tomllib.loads(planned.to_toml())
    assert config["stop"]["steps"] == planned.steps == record["settings"]["stop"]["steps"]


def test_tiny_has_few_wide_layers_rotations_fitted_vectors_and_learns_by_muon_unless_something_else_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_task(tmp_path, 60, str)

    def found(preset: str, **settings: Any) -> tuple[object, ...]:
        model = plan("translator", *corpus, steps=3, preset=preset, settings=settings).settings
        config = preset_config(preset, vocabulary=300, **model.model)
        sizes = (config.to_dict()[name] for name in ("encoder_layers", "decoder_layers", "d_model"))
        return model.optimizer.name, *sizes, model.init.embeddings, config.to_dict().get("rotary")

    assert found("tiny") == ("muon", 2, 2, 192, "cooccurrence", True)
    asked = {"optimizer.name": "adam", "model.encoder_layers": 4, "model.decoder_layers": 3, "model.d_model": 128}
    asked |= {"init.embeddings": "random", "model.rotary": False}
    assert found("tiny", **asked) == ("adam", 4, 3, 128, "random", False)
    assert found("tiny", **{"model.heads": 64})[-1] is False  # queries and keys would be 3 wide
    assert found("tiny", **{"model.encoder_layers": 1, "model.decoder_layers": 1})[-1] is False
    assert found("base") == (None, 6, 6, 512, "random", False)
    assert found("rnn") == (None, 2, 2, 192, "random", None)
    monkeypatch.setattr("jumok.recipes.recipe.MOST_FITTED", 10)
    assert found("tiny") == ("muon", 2, 2, 192, "random", True)


def test_a_tiny_translator_compares_some_tokens_of_a_large_vocabulary_and_half_of_its_matrices_learn_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = write_task(tmp_path, 60, str)

    def found(preset: str = "tiny", **settings: Any) -> tuple[int | None, int | None]:
        chosen = plan("translator", *corpus, steps=3, preset=preset, settings=settings).settings
        return chosen.optimizer.every, chosen.loss.candidates

    assert found() == (2, None)  # the vocabulary is small
    monkeypatch.setattr("jumok.recipes.translator.CANDIDATES", 100)
    assert found() == (2, 100)
    assert found(**{"optimizer.name": "adam", "loss.candidates": 50}) == (None, 50)
    assert found("small") == (None, None)


@pytest.mark.parametrize(
    ("task", "settings", "named"),
    [
        ("classifier", {"loss.candidates": 100}, "loss.candidates"),
        ("translator", {"optimizer.every": 2, "optimizer.name": "adam"}, "optimizer.every"),
        ("translator", {"optimizer.every": 2}, "optimizer.every"),  # who asks for Muon's way asks for Muon
    ],
)
def test_a_setting_that_would_have_no_effect_is_refused(
    task: str, settings: dict[str, Any], named: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=named):
        plan(task, *write_task(tmp_path, 60, str), steps=3, settings=settings)


@pytest.mark.parametrize("task", ["translator", "language_model"])
def test_candidates_are_compared_while_training_alone(task: str, tmp_path: Path) -> None:
    passages = tmp_path / "passages.txt"
    passages.write_text("\n\n".join(sequences(60, seed=0)), encoding="utf-8")
    is_translator = task == "translator"
    recipe = TranslatorRecipe(write_task(tmp_path, 60, str)) if is_translator else LanguageModelRecipe([passages])
    small = {name: value for name, value in SMALL.items() if name != "model.encoder_layers" or is_translator}
    settings = Settings.from_dict({}).changed(small | {"loss.candidates": 20})
    recipe.prepare(tmp_path / "store", settings, expected=None, encoder=None)
    model, batch = recipe.model(settings), next(recipe.epochs(settings).batches(0, [0]))
    exact, estimated = (recipe.loss(model, settings.changed({"loss.candidates": size})) for size in (None, 20))
    model.train()
    assert len({exact(batch).item() for _ in range(5)}) == 1  # there is no dropout
    assert len({estimated(batch).item() for _ in range(5)}) > 1
    model.eval()
    assert torch.equal(estimated(batch), exact(batch))


def test_half_of_the_candidates_are_the_most_frequent_tokens_of_the_targets(tmp_path: Path) -> None:
    greek = str.maketrans(LETTERS, "αβγδεζηθικ")
    recipe = TranslatorRecipe(write_task(tmp_path, 300, lambda line: line.translate(greek)))
    settings = Settings.from_dict({}).changed(SMALL | {"loss.candidates": 20})
    recipe.prepare(tmp_path / "store", settings, expected=None, encoder=None)
    train = recipe.corpus.train
    counts = Counter(int(token) for number in range(len(train)) for token in train.example("target", number))
    sampler = recipe.candidate_sampler(settings)
    assert sampler is not None
    found = sampler.frequent.tolist()
    assert len(found) == 10
    assert [counts[token] for token in found] == sorted(counts.values(), reverse=True)[:10]
    whole = settings.changed({"loss.candidates": recipe.corpus.tokenizer.size})
    assert recipe.candidate_sampler(whole) is None


@pytest.mark.parametrize("drawn", [{"loss.candidates": 20}, {"augment.token_dropout": 0.2}], ids=str)
def test_a_stopped_training_that_draws_candidates_or_drops_tokens_ends_with_the_same_bits(
    drawn: dict[str, Any], tmp_path: Path
) -> None:
    corpus, settings = write_task(tmp_path, 60, str), SMALL | drawn
    train_translator(*corpus, out=tmp_path / "one", steps=5, settings=settings)
    answers = iter([False, False, True])
    with pytest.raises(StoppedEarly):
        train_translator(
            *corpus, out=tmp_path / "two", steps=5, settings=settings, stop_requested=lambda: next(answers)
        )
    train_translator(*corpus, out=tmp_path / "two", steps=5, settings=settings)
    one, two = (load_bundle(tmp_path / run / "model").weights_digest for run in ("one", "two"))
    assert one == two


def test_a_tiny_language_model_has_few_wide_layers_rotations_and_learns_by_muon_too(tmp_path: Path) -> None:
    text = tmp_path / "passages.txt"
    text.write_text("\n\n".join(sequences(60, seed=0)), encoding="utf-8")
    plans = {size: plan("language_model", text, steps=3, preset=size) for size in ("tiny", "small")}
    assert {size: found.settings.optimizer.name for size, found in plans.items()} == {"tiny": "muon", "small": None}
    assert plans["tiny"].settings.model["d_model"] == 192
    assert plans["tiny"].settings.model["rotary"]
    assert not {"d_model", "rotary"} & plans["small"].settings.model.keys()


def test_a_run_of_an_earlier_version_keeps_its_sizes_and_its_optimizer_when_settings_change(tmp_path: Path) -> None:
    """It recorded neither: `tiny` had the sizes of the table, and learned by Adam."""
    corpus = write_task(tmp_path, 60, str)
    run, asked = tmp_path / "run", {"batch.tokens": 200}
    sizes = {"encoder_layers": 4, "decoder_layers": 4, "d_model": 128, "d_ff": 256, "rotary": False}
    before = {**asked, **{f"model.{name}": size for name, size in sizes.items()}, "optimizer.name": "adam"}
    train_translator(*corpus, out=run, steps=2, preset="tiny", settings=before)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for settings in (record["asked"], record["settings"]):
        del settings["optimizer"]["name"]
        settings["model"] = {name: value for name, value in settings["model"].items() if name not in sizes}
        del settings["init"]  # which was not there either
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    ended = train_translator(*corpus, out=run, steps=4, preset="tiny", settings=asked, continue_with_changes=True)
    assert ended.steps == 4
    config = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))
    assert {name: config[name] for name in sizes} == sizes
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    assert record["settings"]["optimizer"]["name"] == "adam"


def test_a_run_of_an_earlier_version_keeps_its_loss_and_its_way_of_muon_when_settings_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, run = write_task(tmp_path, 60, str), tmp_path / "run"
    monkeypatch.setattr("jumok.recipes.translator.CANDIDATES", 100)
    old = {"optimizer.name": "muon", "optimizer.every": 1, "loss.candidates": 1_000}
    train_translator(*corpus, out=run, steps=2, preset="tiny", settings=old)
    record = json.loads((run / "run.json").read_text(encoding="utf-8"))
    for settings in (record["asked"], record["settings"]):  # there were no such settings
        del settings["optimizer"]["every"], settings["loss"]["candidates"]
    (run / "run.json").write_text(json.dumps(record), encoding="utf-8")
    muon = {"optimizer.name": "muon"}
    train_translator(*corpus, out=run, steps=3, preset="tiny", settings=muon, continue_with_changes=True)
    now = json.loads((run / "run.json").read_text(encoding="utf-8"))["settings"]
    vocabulary = json.loads((run / "model" / "config.json").read_text(encoding="utf-8"))["vocabulary"]
    assert (now["optimizer"]["every"], now["loss"]["candidates"]) == (1, vocabulary)


def test_a_translator_may_begin_with_vectors_of_tokens_that_occur_together(tmp_path: Path) -> None:
    latin, greek = "abcdefghijklmnopqrstuvwx", "αβγδεζηθικλμνξοπρστυφχψω"
    greek_of = str.maketrans(latin, greek)
    corpus = write_task(tmp_path, 300, lambda line: line.translate(greek_of), letters=latin, longest=3)
    recipe = TranslatorRecipe(corpus)
    asked = {"model.d_model": 64, "init.embeddings": "cooccurrence"}
    settings = plan("translator", *corpus, steps=3, preset="tiny", settings=asked).settings
    recipe.prepare(tmp_path / "store", settings, expected=None, encoder=None)
    recipe.fit(settings)
    vectors = recipe.model(settings).embed.tokens.weight
    assert torch.equal(vectors, recipe.model(settings).embed.tokens.weight)
    tokens = recipe.corpus.tokenizer
    ids = [[tokens.encode([letter])[0][-1] for letter in letters] for letters in (latin, greek)]
    likeness = (vectors[ids[0]] @ vectors[ids[1]].T).argmax(1)
    assert (likeness == torch.arange(len(latin))).float().mean() >= 0.9  # by chance one in 24


@pytest.mark.parametrize(
    ("first", "given", "expected"),
    [("Abc d", {}, 0.05), ("abc d", {}, None), ("ABC D", {}, None), ("가나 다", {}, None), ("Abc d", 0.2, 0.2)],
)
def test_case_variants_are_chosen_where_sources_have_both_cases(
    tmp_path: Path, first: str, given: Any, expected: float | None
) -> None:
    for side in ("a", "b"):
        (tmp_path / side).write_text("".join(f"{first} {n}\n" for n in range(60)), encoding="utf-8")
    settings = {**SMALL, **({"augment.case": given} if given else {})}
    planned = plan("translator", tmp_path / "a", tmp_path / "b", steps=3, settings=settings)
    assert planned.settings.augment.case == expected
    assert ("augment.case" in planned.to_toml()) == (expected is not None)


@pytest.mark.parametrize(
    ("preset", "epochs", "settings", "expected"),
    [
        ("tiny", 49.9, {}, None),
        ("tiny", 50, {}, 0.1),
        ("tiny", 60, {"model.dropout": 0.3}, None),  # who sets one decides about both
        ("tiny", 60, {"augment.token_dropout": 0.0}, 0.0),
        ("tiny", 10, {"augment.token_dropout": 0.2}, 0.2),
        ("small", 60, {}, None),
    ],
)
def test_tiny_translators_drop_tokens_where_pairs_are_seen_many_times(
    preset: str, epochs: float, settings: dict[str, Any], expected: float | None, tmp_path: Path
) -> None:
    corpus, settings = write_task(tmp_path, 600, str), settings | {"batch.tokens": 50}  # so that epochs have many steps
    planned = plan("translator", *corpus, epochs=epochs, preset=preset, settings=settings)
    assert planned.settings.augment.token_dropout == expected


def test_case_variants_of_what_is_not_translated_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"augment\.case has no effect on a language model"):
        train("language_model", tmp_path / "a.txt", out=tmp_path / "run", settings={"augment.case": 0.1})
    assert not (tmp_path / "run").exists()


def test_an_unknown_argument_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r'"minuts".*Did you mean "minutes"'):
        train("translator", tmp_path / "a", tmp_path / "b", out=tmp_path / "run", minuts=3)


def test_an_export_that_is_missing_is_made_by_the_same_call(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    train_translator(*corpus, out=tmp_path / "run", steps=5, settings=SMALL)
    export = tmp_path / "run" / "model" / "ctranslate2"
    assert export.is_dir()
    shutil.rmtree(export)
    events: list[Any] = []
    train_translator(*corpus, out=tmp_path / "run", steps=5, settings=SMALL, on_event=events.append)
    assert [event["event"] for event in events if event["event"] in ("already_done", "train", "finished")] == [
        "already_done",
        "finished",
    ]
    assert "certificate" in events[-1]
    assert export.is_dir()


def test_a_better_average_is_not_replaced_when_the_training_goes_on(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    train_translator(*corpus, out=tmp_path / "run", steps=4, settings=SMALL)
    log = tmp_path / "run" / "log.jsonl"
    *before, done = log.read_text(encoding="utf-8").splitlines()
    done = json.dumps({**json.loads(done), "best_score": 1000.0})  # as if an average had been that good
    log.write_text("\n".join([*before, done, ""]), encoding="utf-8")
    model = (tmp_path / "run" / "model" / "MANIFEST.json").read_bytes()
    longer = {"out": tmp_path / "run", "settings": SMALL, "continue_with_changes": True}
    for steps in (6, 8):
        assert train_translator(*corpus, steps=steps, **longer).score == 1000.0
    assert (tmp_path / "run" / "model" / "MANIFEST.json").read_bytes() == model


def test_a_schedule_that_cannot_be_leaves_no_trace(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    with pytest.raises(ConfigError, match="warmup"):
        train_translator(*corpus, out=tmp_path / "run", steps=5, settings={**SMALL, "schedule.warmup": 50})
    assert train_translator(*corpus, out=tmp_path / "run", steps=5, settings=SMALL).steps == 5


def test_a_setting_that_is_new_in_this_version_is_no_change(tmp_path: Path) -> None:
    corpus = write_task(tmp_path, 200, str)
    train_translator(*corpus, out=tmp_path / "run", steps=5, settings=SMALL)
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    del record["asked"]["loss"]["smoothing"], record["asked"]["log"]
    settings = {name: value for name, value in SMALL.items() if name != "loss.smoothing"}
    (tmp_path / "run" / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert train_translator(*corpus, out=tmp_path / "run", steps=5, settings=settings).steps == 5


def test_the_card_knows_languages_and_usual_lengths(tmp_path: Path) -> None:
    source, target = write_task(tmp_path, 200, str)
    corpus = source.rename(tmp_path / "a.en"), target.rename(tmp_path / "a.ko")
    train_translator(*corpus, out=tmp_path / "run", steps=2, settings=SMALL)
    card = load_bundle(tmp_path / "run" / "model").card
    assert card["languages"] == ["en", "ko"]
    assert 8 <= card["usual_tokens"] <= 20
