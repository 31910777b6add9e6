"""Every command on a card. The card is a pretend one (tests/pretend_card.py), as strict as a real one about where
tensors are; whatever runs on it assumes nothing about the device. It refuses float64, as MPS does."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest
import torch
from commands import CLASSIFIER, DRAWN, LM, SMALL, Jumok, write_corpus, write_reviews
from PIL import Image

import pretend_card
from jumok import lens
from jumok.cli.app import command as jumok_command
from jumok.cli.app import run
from jumok.demo.pairs import demo_pairs
from jumok.engines.loading import load
from jumok.recipes import image_tokens
from jumok.training.trainer import Trainer
from pretend_card import Card

pytestmark = pytest.mark.xdist_group("devices")
CARD = pretend_card.install()  # at collection: no test of this process has trained anything yet
RECURRENT = [setting for setting in SMALL if "heads" not in setting and "d_ff" not in setting]
PAINTER = [*(each for each in SMALL if "batch.tokens" not in each), "--set=model.codes=8"]
VISION = [*(each for each in CLASSIFIER if "batch.tokens" not in each), "--set=batch.tokens=16", "--set=model.patch=4"]
# The command after `train`, its data, and the options of the smallest model.
TASKS: dict[str, tuple[str, list[str], list[str]]] = {
    "translator": ("translator", ["a.en", "a.ko"], [*SMALL, *DRAWN, "--set=batch.accumulate=2"]),
    "recurrent": ("translator", ["a.en", "a.ko"], [*RECURRENT, "--preset=rnn-attention"]),
    "classifier": ("classifier", ["train.tsv"], CLASSIFIER),
    "vision": ("classifier", ["pictures"], VISION),
    "lm": ("lm", ["a.en"], LM),
    "painter": ("painter", ["captions.tsv", "painted"], PAINTER),
}
ON_CARD = ("--device", "card", "--precision", "float32")
WITHOUT_DROPOUT = "--set=model.dropout=0"
TEXT = "The small cat sees the dog."


@pytest.fixture
def card(without_shape_checks: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Card]:
    """A machine with a card."""
    CARD.present, CARD.memory, CARD.has_bfloat16 = True, None, True
    CARD.waits.clear()
    monkeypatch.setattr(torch, "tensor", pretend_card.tensor)
    yield CARD
    CARD.present = False


@pytest.fixture
def without_export(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings that do not export their models for CTranslate2 at the end."""
    monkeypatch.setattr("jumok.recipes.recipe.Recipe.export", lambda *_: {})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What models of all tasks are trained on."""
    directory = tmp_path_factory.mktemp("data")
    write_corpus(directory)
    write_reviews(directory)
    random = np.random.default_rng(0)
    lines = []
    for number in range(24):
        name, colour = ("red", (220, 0, 0)) if number % 2 else ("blue", (0, 0, 220))
        pixels = (random.random((8, 8, 3)) * 30 + 0.8 * np.array(colour)).astype(np.uint8)
        for file in (directory / "pictures" / name / f"{number}.png", directory / "painted" / f"{number}.png"):
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(pixels).save(file)
        lines.append(f"{number}.png\ta {name} square\n")
    (directory / "captions.tsv").write_text("".join(lines), encoding="utf-8")
    return directory


def train_arguments(data: Path, task: str, out: Path, *more: str) -> list[str]:
    command, files, sizes = TASKS[task]
    few = ["--set=validate.sentences=1", "--set=checkpoint.average=1"]
    paths = [str(data / name) for name in files]
    return ["train", command, *paths, "-o", str(out), *sizes, *few, *more, "--quiet"]


def losses(run: Path) -> list[float]:
    lines = (run / "log.jsonl").read_text().splitlines()
    return [entry["loss"] for entry in map(json.loads, lines) if entry["event"] == "train"]


@dataclass(frozen=True)
class Trained:
    """The same training on the CPU and on the card."""

    cpu: Path
    card: Path
    waits: list[str]  # where the host waited for the card between the first and the last step
    waits_in_steps: list[str]


@pytest.fixture(scope="module")
def trainings() -> dict[str, Trained]:
    """By task; filled by `trained_both`."""
    return {}


@pytest.fixture
def trained_both(
    data: Path, card: Card, without_export: None, monkeypatch: pytest.MonkeyPatch, trainings: dict[str, Trained]
) -> Callable[[str], Trained]:
    """Trains a model of a task on the CPU and on the card, once; nobody changes the runs."""
    inside: list[str] = []
    step = Trainer._step

    def counted(self: Trainer, *arguments: Any) -> Any:
        before = len(card.waits)
        result = step(self, *arguments)
        inside.extend(card.waits[before:])
        assert torch.are_deterministic_algorithms_enabled() == (self.precision.device.type == "card")
        return result

    def train(task: str) -> Trained:
        if task not in trainings:
            monkeypatch.setattr(Trainer, "_step", counted)
            monkeypatch.setattr(image_tokens, "REVIVED_EVERY", 2)  # so that codes of a painter move
            monkeypatch.setattr(image_tokens, "REVIVAL_PATCHES", 1)
            runs = {where: data / f"{task}-{where}" for where in ("cpu", "card")}
            for (where, out), more in zip(runs.items(), (("--device", "cpu"), ON_CARD), strict=True):
                more = (*more, "--steps=5", "--set=log.every=2", WITHOUT_DROPOUT)
                assert run(train_arguments(data, task, out, *more)) == 0, where
            trainings[task] = Trained(runs["cpu"], runs["card"], list(card.waits), inside)
            card.waits.clear()
        return trainings[task]

    return train


@pytest.mark.parametrize("task", TASKS)
def test_training_on_a_card_has_the_losses_of_the_cpu(trained_both: Callable[[str], Trained], task: str) -> None:
    found = trained_both(task)
    assert losses(found.card) == pytest.approx(losses(found.cpu), rel=1e-5)
    assert len(losses(found.card)) == 3
    assert not torch.are_deterministic_algorithms_enabled()  # any more


@pytest.mark.parametrize("task", TASKS)
def test_a_training_on_a_card_waits_for_it_only_to_log_validate_and_save(
    trained_both: Callable[[str], Trained], task: str
) -> None:
    found = trained_both(task)
    # A painter's codes that nothing uses are moved by the host: twice here, 50 steps apart in a real training.
    copies = ["_to_copy", "_to_copy", "copy_"] * 2 if task == "painter" else []
    assert found.waits_in_steps == [f"recipes/image_tokens.py:after_update aten::{name}" for name in copies]
    reads = Counter(wait for wait in found.waits if wait.startswith("training/updates.py"))
    stages = 2 if task == "painter" else 1
    assert reads == {"training/updates.py:read aten::_to_copy": 3 * stages}  # after steps 2, 4 and 5


# Each command that runs a model: its arguments, {task} standing for a run ({quick} for one whose outputs are short),
# and its input. The output on the card must
# be that on the CPU. A picture or page is written to {out}.
USES: dict[str, list[tuple[list[str], str]]] = {
    "translate": [
        (["-m", "{quick}", "--engine=torch", "--beam", "3", "--n-best", "2", "--json"], TEXT),
        (["-m", "{quick}", "--engine=torch", "--temperature", "0.8", "--top-k", "5", "--seed", "3"], TEXT),
        (["-m", "{quick}", "--engine=torch", "--temperature", "0.8", "--top-p", "0.9"], TEXT),
        (["-m", "{quick}", "--engine=torch", "--alignment", "--json"], TEXT),
        (["-m", "{quick}", "--engine=torch", "--no-repeat-ngram", "2"], TEXT),
        (["-m", "{recurrent}", "--json"], TEXT),
    ],
    "classify": [
        (["-m", "{classifier}", "--engine=torch", "--json"], "A fine film.\nNot bad at all.\n"),
        (["-m", "{classifier}", "--engine=torch", "--explain", "3", "--json"], "A fine film.\n"),
        (["-m", "{vision}", "{data}/painted/1.png", "{data}/painted/2.png", "--json"], ""),
    ],
    "generate": [
        (["-m", "{lm}", "--prompt", "The", "--max-tokens", "6"], ""),
        (["-m", "{lm}", "--prompt", "The", "--max-tokens", "6", "--temperature", "0"], ""),
    ],
    "paint": [(["-m", "{painter}", "a red square", "--n", "2", "-o", "{out}.png"], "")],
    "embed": [
        (["-m", "{translator}"], TEXT),
        (["-m", "{recurrent}"], TEXT),
        (["-m", "{classifier}"], "A fine film.\n"),
    ],
    "score": [(["-m", "{translator}", "{data}/two.en", "{data}/two.ko", "--json"], "")],
    "evaluate": [
        (["-m", "{translator}", "{data}/two.en", "{data}/two.ko", "--beam", "1", "--json"], ""),
        (["-m", "{classifier}", "{data}/two.tsv", "--json"], ""),
        (["-m", "{vision}", "{data}/pictures", "--json"], ""),
        (["-m", "{lm}", "{data}/two.en", "--json"], ""),
        (["-m", "{painter}", "{data}/captions.tsv", "{data}/painted", "--json"], ""),
    ],
    "look": [
        (["-m", "{quick}", TEXT, "--save", "{out}.html"], ""),
        (["-m", "{classifier}", "A fine film.", "--save", "{out}.html"], ""),
        (["-m", "{lm}", "The cat", "--save", "{out}.html"], ""),
        (["-m", "{translator}", "--rank-heads", "{data}/two.pairs.tsv", "--json"], ""),
        (["-m", "{vision}", "{data}/painted/1.png", "--save", "{out}.html"], ""),
        (["-m", "{painter}", "a red square", "--save", "{out}.html"], ""),
    ],
    "plot attention": [(["-m", "{recurrent}", TEXT, "-o", "{out}.png"], "")],
    "plot beta": [(["-m", "{quick}", TEXT, "--query", "0", "-o", "{out}.png"], "")],
    "plot alignment": [(["-m", "{translator}", "The.", "-o", "{out}.png"], "")],
    "plot confusion": [(["-m", "{classifier}", "{data}/two.tsv", "-o", "{out}.png"], "")],
    "plot patches": [(["-m", "{vision}", "{data}/painted/1.png", "-o", "{out}.png"], "")],
}
# Commands that compute nothing with a model on a card: `export` compares with CTranslate2 on the CPU.
ON_THE_CPU = {"check", "export", "info", "plot positions", "plot masks", "plot schedule", "plot training"}


def leaf_commands(group: click.Group, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        found = group.get_command(context, name)
        if isinstance(found, click.Group):
            yield from leaf_commands(found, f"{prefix}{name} ")
        elif found is not None:
            yield f"{prefix}{name}", found


def test_every_command_that_runs_a_model_is_tried_on_a_card() -> None:
    commands = dict(leaf_commands(jumok_command))
    trainings = {name for name in commands if name.startswith("train ")}
    assert trainings == {f"train {command}" for command, _, _ in TASKS.values()}
    assert commands.keys() - trainings - {"demo"} == USES.keys() | ON_THE_CPU
    with_device = {name for name, each in commands.items() if any(option.name == "device" for option in each.params)}
    assert with_device == trainings | USES.keys() | {"demo"}


def write_two_examples(data: Path) -> None:
    for name in ("a.en", "a.ko", "train.tsv"):
        lines = (data / name).read_text("utf-8").splitlines()[:2]
        (data / name.replace("a.", "two.").replace("train", "two")).write_text("\n".join(lines) + "\n", "utf-8")
    pairs = zip(*((data / f"two.{side}").read_text("utf-8").splitlines() for side in ("en", "ko")), strict=True)
    (data / "two.pairs.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in pairs), "utf-8")


@pytest.mark.parametrize(
    ("name", "arguments", "text"),
    [(name, *case) for name, cases in USES.items() for case in cases],
    ids=[f"{name.replace(' ', '-')}-{number}" for name, cases in USES.items() for number in range(len(cases))],
)
def test_a_command_on_a_card_says_what_it_says_on_the_cpu(
    trained: Path,
    trained_both: Callable[[str], Trained],
    data: Path,
    tmp_path: Path,
    jumok: Jumok,
    card: Card,
    name: str,
    arguments: list[str],
    text: str,
) -> None:
    [model] = [part[1:-1] for part in arguments if part.startswith("{") and part.endswith("}")]
    write_two_examples(data)
    where = trained / "run" if model == "quick" else trained_both(model).cpu
    places = {model: where, "data": data, "out": tmp_path / "out"}
    given = [part.format_map(places) if "{" in part else part for part in arguments]
    card.waits.clear()
    found = [jumok(*name.split(), *given, f"--device={where}", stdin=text) for where in ("cpu", "card")]
    assert [each.code for each in found] == [0, 0], found[1].err
    assert rounded(found[0].out) == rounded(found[1].out)
    assert card.waits  # for what it computed


def test_an_export_on_a_machine_with_a_card_is_certified_on_the_cpu(
    trained_both: Callable[[str], Trained], jumok: Jumok, card: Card
) -> None:
    for task in ("translator", "classifier", "lm"):
        ended = jumok("export", "-m", trained_both(task).card)
        assert ended.code == 0, ended.err
    assert card.waits == []


def test_a_demo_trains_and_shows_its_model_on_the_chosen_device(
    tmp_path: Path, jumok: Jumok, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(demo_pairs, "__defaults__", (0, 200))
    monkeypatch.setattr(
        "jumok.cli.demo_training.train_with_display",
        lambda *_, settings, **__: asked.append((settings["device"], settings["precision"])) or (0, True),
    )
    monkeypatch.setattr("jumok.cli.demo_language_model.load", lambda *_, device, **__: asked.append(device) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        jumok("demo", "lm", "--directory", tmp_path / "demo", "--device=card", "--precision=bfloat16")
    assert asked == [("card", "bfloat16"), "card"]
    ended = jumok("demo", "lm", "--directory", tmp_path / "other", "--device=cuda")
    assert (ended.code, (tmp_path / "other").exists()) == (2, False)


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "float16"])
def test_a_training_on_a_card_that_was_stopped_ends_with_the_same_bits(
    data: Path,
    tmp_path: Path,
    jumok: Jumok,
    card: Card,
    without_export: None,
    monkeypatch: pytest.MonkeyPatch,
    precision: str,
) -> None:
    monkeypatch.setattr("jumok.training.precision.FIRST_SCALE", 2.0**12)  # one that overflows only once or twice
    more = ("--steps=4", "--device=card", f"--precision={precision}", "--set=checkpoint.every=2")
    whole, parts = (train_arguments(data, "translator", tmp_path / name, *more) for name in ("whole", "parts"))
    assert jumok(*whole).code == 0
    with pytest.MonkeyPatch.context() as patch:
        stop_after(patch, 3)  # between two checkpoints
        assert jumok(*parts).code != 0
    card.generator.manual_seed(99)  # as another process would find it
    assert jumok(*parts).code == 0
    ends = [tmp_path / name / "checkpoints" / "step-00000004" for name in ("whole", "parts")]
    for file in ("model.safetensors", "optimizer.safetensors"):
        assert (ends[0] / file).read_bytes() == (ends[1] / file).read_bytes()
        assert (ends[0] / file).read_bytes() != (ends[0].with_name("step-00000002") / file).read_bytes()


def stop_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Somebody asks the training to stop after so many steps."""
    step = Trainer._step

    def stopping(self: Trainer, *arguments: Any) -> tuple[bool, bool]:
        stop, save = step(self, *arguments)
        return stop or self.progress.step == steps, save

    patch.setattr(Trainer, "_step", stopping)


def test_dropout_draws_from_the_generator_of_the_card_which_is_seeded_for_every_batch(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card, without_export: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    left: list[Any] = []  # states of the generator after each step
    step = Trainer._step

    def disturbed(self: Trainer, *arguments: Any) -> Any:
        torch.default_generator.manual_seed(len(left))  # whatever was drawn before must not matter
        card.generator.manual_seed(len(left))
        result = step(self, *arguments)
        left.append(card.generator.get_state())
        return result

    monkeypatch.setattr(Trainer, "_step", disturbed)
    runs = []
    for name, more in (("one", []), ("again", []), ("without", [WITHOUT_DROPOUT])):
        arguments = train_arguments(data, "lm", tmp_path / name, "--steps=2", *ON_CARD, "--set=log.every=1", *more)
        assert jumok(*arguments).code == 0
        runs.append(losses(tmp_path / name))
    assert runs[0] == runs[1]
    assert torch.equal(left[0], left[2])
    assert not torch.equal(left[0], left[4])  # something was drawn


def test_a_batch_that_does_not_fit_onto_the_card_is_split(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card, without_export: None
) -> None:
    # Every part draws candidates of its own; here all compare the whole vocabulary.
    more = ("--steps=5", "--set=log.every=2", *ON_CARD, WITHOUT_DROPOUT, "--set=loss.candidates=10000")
    whole, split = (train_arguments(data, "translator", tmp_path / name, *more)[:-1] for name in ("whole", "split"))
    assert '"memory"' not in jumok(*whole, "--json").out
    card.memory = 200_000
    ended = jumok(*split, "--json")
    card.memory = None
    assert ended.code == 0, ended.err
    assert '"memory"' in ended.out
    assert losses(tmp_path / "split") == pytest.approx(losses(tmp_path / "whole"), rel=1e-4)


def test_a_card_that_is_too_small_for_a_model_is_an_error_that_says_what_is_there(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card, trained_both: Callable[[str], Trained]
) -> None:
    model = trained_both("lm").cpu
    card.memory = 20_000
    ended = jumok(*train_arguments(data, "lm", tmp_path / "run", "--steps=5", *ON_CARD))
    assert ended.code == 2
    assert "does not fit into the memory of card:0 (free: 0.00 of 0.00 GB). No preset would fit; or train with" in (
        ended.err.replace("\n", " ")
    )
    assert "--device cpu" in ended.err
    ended = jumok("generate", "-m", model, "--prompt", "The", "--device=card")
    assert (ended.code, "does not fit into the memory of card" in ended.err) == (2, True)


def test_a_batch_that_does_not_fit_onto_the_card_when_a_model_is_used_is_an_error(
    jumok: Jumok, card: Card, trained_both: Callable[[str], Trained]
) -> None:
    model = trained_both("translator").cpu
    card.memory = 60_000
    ended = jumok("translate", "-m", model, "--device=card", "--beam=64", stdin=f"{TEXT}\n" * 20)
    assert ended.code == 2
    assert "This batch does not fit into the memory of card" in ended.err
    assert "--beam" in ended.err


def test_a_precision_that_a_card_cannot_compute_in_is_an_error(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card
) -> None:
    card.has_bfloat16 = False
    ended = jumok(*train_arguments(data, "lm", tmp_path / "run", "--device=card", "--precision=bfloat16"))
    assert (ended.code, 'precision="bfloat16" is not supported by card:0' in ended.err) == (2, True)
    ended = jumok(*train_arguments(data, "lm", tmp_path / "run", "--device=card", "--precision=float8"))
    assert (ended.code, "float8" in ended.err) == (2, True)
    assert not (tmp_path / "run").exists()


def test_a_device_that_cannot_be_compiled_for_is_an_error_that_says_so(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_x: Any) -> None:
        raise RuntimeError("no compiler\nin many lines")

    monkeypatch.setattr(torch, "compile", lambda _: fail)
    ended = jumok(*train_arguments(data, "lm", tmp_path / "run", "--steps=2", *ON_CARD, "--set=compile=true"))
    assert ended.code == 2
    assert "compile=true: PyTorch cannot compile for card:0 here (no compiler)." in ended.err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_compiled_layers_have_the_losses_of_plain_ones(
    data: Path, tmp_path: Path, jumok: Jumok, trained_both: Callable[[str], Trained]
) -> None:
    more = ("--steps=5", "--set=log.every=2", "--device=cpu", WITHOUT_DROPOUT, "--set=compile=true")
    assert jumok(*train_arguments(data, "translator", tmp_path / "run", *more)).code == 0
    assert losses(tmp_path / "run") == pytest.approx(losses(trained_both("translator").cpu), rel=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_a_training_needs_no_compiler(
    task: str, data: Path, tmp_path: Path, jumok: Jumok, monkeypatch: pytest.MonkeyPatch, without_export: None
) -> None:
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)  # to import it takes over a second
    assert jumok(*train_arguments(data, task, tmp_path / "run", "--steps=1", "--device=cpu")).code == 0


def test_an_export_and_a_model_need_no_compiler(
    data: Path, tmp_path: Path, jumok: Jumok, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch._dynamo", None)
    assert jumok(*train_arguments(data, "lm", tmp_path / "run", "--steps=1", "--device=cpu")).code == 0
    assert load(tmp_path / "run", "torch").generate("The", max_tokens=2) is not None


def test_a_training_in_bfloat16_learns_as_one_in_float32(
    data: Path, tmp_path: Path, jumok: Jumok, without_export: None
) -> None:
    ends = []
    for precision in ("float32", "bfloat16"):
        more = ("--steps=30", "--set=log.every=10", "--device=cpu", f"--precision={precision}")
        assert jumok(*train_arguments(data, "translator", tmp_path / precision, *more)).code == 0
        ends.append(losses(tmp_path / precision))
    assert ends[0][-1] < 0.75 * ends[0][0]
    assert ends[1] == pytest.approx(ends[0], rel=0.05)
    assert ends[1] != ends[0]


def rounded(text: str) -> list[Any]:
    """Lines of text or JSON, numbers to four digits, without speeds."""
    if not text.startswith(("{", "[")):
        return [line for line in text.splitlines() if not line.startswith("speed")]
    found = [json.loads(line, parse_float=lambda number: round(float(number), 4)) for line in text.splitlines()]
    return [{name: value for name, value in each.items() if not name.endswith("_per_second")} for each in found]


def test_a_trace_on_a_card_is_that_of_the_cpu(trained: Path, card: Card) -> None:
    traces = [
        lens.trace(load(trained / "run", "torch", task="translator", device=name), TEXT) for name in ("cpu", "card")
    ]
    for name in ("encoder.0.self.weights", "decoder.0.cross.weights", "logits"):
        assert traces[1][name] == pytest.approx(traces[0][name], abs=1e-4), name


# What the explorer and Python ask of a model besides: a name of a trained model, and a function of the loaded one.
ASKED: list[tuple[str, Callable[[Any], Any]]] = [
    ("quick", lambda model: traced(model, TEXT, beta=3.0)),
    ("quick", lambda model: traced(model, TEXT, hard=True, attention="decoder.0.cross")),
    ("quick", lambda model: traced(model, TEXT, heads={("encoder.0.self", 0): "uniform"})),
    ("quick", lambda model: traced(model, TEXT, heads={("decoder.0.cross", 1): "mean"}, means=means(model))),
    ("quick", lambda model: traced(model, TEXT, positions="shuffled")),
    ("quick", lambda model: traced(model, TEXT, positions="removed")),
    ("quick", lambda model: traced(model, TEXT, positions=7)),
    ("quick", lambda model: lens.trace(model, TEXT, force=[5, 6], beam=3)["logits"]),
    ("quick", lambda model: lens.trace(model, TEXT, target="개 고양이")["logits"]),
    ("quick", lambda model: model.translate(TEXT, prefix="큰", bias={"개": 2.0}, beam=2, max_ratio=0.1)),
    ("quick", lambda model: model.score([TEXT, "The dog."], ["개 고양이.", "개."])),
    ("recurrent", lambda model: model.score([TEXT, "The dog."], ["개 고양이.", "개."])),
    ("classifier", lambda model: lens.attribution(model, "A fine film.").totals),
    ("classifier", lambda model: lens.trace(model, "A fine film.")["encoder.0.self.weights"]),
    ("lm", lambda model: lens.trace(model, "The cat", continue_by=2, temperature=0.0)["surprise"]),
    ("lm", lambda model: model.score(["The cat sees the dog."])),
]


def traced(model: Any, text: str, **changes: Any) -> Any:
    with lens.changed(model, **changes):
        return lens.trace(model, text, beam=1)["logits"]


def means(model: Any) -> Any:
    with lens.mean_outputs(model) as found:
        model.translate(TEXT, beam=1)
    return found


@pytest.mark.parametrize(("name", "ask"), ASKED)
def test_whatever_python_asks_of_a_model_on_a_card_has_the_answer_of_the_cpu(
    trained: Path, trained_both: Callable[[str], Trained], card: Card, name: str, ask: Callable[[Any], Any]
) -> None:
    run = trained / "run" if name == "quick" else trained_both(name).cpu
    expected, found = (ask(load(run, "torch", device=device)) for device in ("cpu", "card"))
    assert card.waits
    if isinstance(expected, str):
        assert found == expected
    else:
        flat = [np.hstack([np.ravel(part) for part in each]) for each in (found, expected)]
        assert flat[0] == pytest.approx(flat[1], abs=1e-4)


def test_auto_takes_the_card_and_says_so(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card, without_export: None
) -> None:
    ended = jumok(*train_arguments(data, "lm", tmp_path / "run", "--steps=2")[:-1], "--json")
    assert ended.code == 0
    plan = next(json.loads(line) for line in ended.out.splitlines() if '"plan"' in line)
    chosen = {choice["name"]: choice["value"] for choice in plan["choices"]}
    assert (chosen["device"], chosen["precision"]) == ("card", "bfloat16")


def test_a_change_of_the_device_is_reported_at_resume(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card, without_export: None
) -> None:
    first = train_arguments(data, "lm", tmp_path / "run", "--steps=2", "--device=cpu")
    assert jumok(*first).code == 0
    further = train_arguments(data, "lm", tmp_path / "run", "--steps=3", *ON_CARD, "--continue-with-changes")
    ended = jumok(*further[:-1], "--json")
    assert ended.code == 0, ended.err
    resumed = next(json.loads(line) for line in ended.out.splitlines() if '"resumed"' in line)
    assert resumed["changed"]["device"] == ["cpu", "card"]


@pytest.mark.parametrize("name", ["cuda", "cuda:3", "card:1", "toaster"])
def test_a_device_that_is_not_there_is_an_error_that_names_those_that_are(
    data: Path, tmp_path: Path, jumok: Jumok, card: Card, name: str
) -> None:
    ended = jumok(*train_arguments(data, "translator", tmp_path / "run", "--steps=2", f"--device={name}"))
    assert ended.code == 2
    assert name in ended.err
    assert "cpu, card:0" in ended.err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["cuda:first", "toaster"])
def test_a_wrong_name_of_a_device_is_an_error_when_a_model_is_used(
    trained_both: Callable[[str], Trained], jumok: Jumok, name: str
) -> None:
    ended = jumok("translate", "-m", trained_both("translator").cpu, "--device", name, stdin="The cat.\n")
    assert ended.code == 2
    assert f'device="{name}" is not the name of a device' in ended.err
