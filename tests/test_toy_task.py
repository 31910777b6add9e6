"""A new task touches no file of `src/`: it is trained, loaded, evaluated and resumed through what all tasks use."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import jumok
import toy_task
from jumok.bundle import load_bundle
from jumok.cli.app import run
from jumok.errors import BundleError
from jumok.recipes.training import plan, train
from jumok.tasks import ENCODERS, TASKS
from jumok.training.trainer import StoppedEarly

SETTINGS = {
    "preset": "tiny",
    "model.d_model": 32,
    "model.heads": 4,
    "model.d_ff": 64,
    "model.dropout": 0.0,
    "batch.tokens": 256,
    "optimizer.lr": 0.01,
    "validate.every": 60,
}


pytestmark = pytest.mark.usefixtures("quick_trainings")


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    toy_task.register_sorter()
    yield
    del TASKS["sorter"], ENCODERS["digits"]


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    draw = random.Random(1)
    rows = [" ".join(str(draw.randrange(10)) for _ in range(draw.randrange(2, 6))) for _ in range(3000)]
    path = tmp_path / "lists.txt"
    path.write_text("\n".join([*rows, "no digits at all"]) + "\n", encoding="utf-8")
    return path


def test_it_learns_and_is_loaded_and_evaluated(lists: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events: list[Any] = []
    result = train("sorter", lists, out=tmp_path / "run", steps=400, settings=SETTINGS, on_event=events.append)
    assert result.score is not None
    assert result.score > 0.95
    corpus = next(event for event in events if event["event"] == "corpus")
    assert corpus["rejected"]["total"] == 1
    sorter = jumok.load(tmp_path / "run")
    assert sorter.task == "sorter"
    assert sorter.sort([[3, 1, 2], [9, 9, 0, 4]]) == [[1, 2, 3], [0, 4, 9, 9]]
    bundle = load_bundle(tmp_path / "run")
    assert (bundle.encoder_name, bundle.config["encoder_layers"]) == ("digits", 4)
    assert "decoder_layers" not in bundle.config
    capsys.readouterr()
    assert run(["evaluate", "-m", str(tmp_path / "run"), str(lists), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accuracy"] > 0.95
    assert run(["info", "-m", str(tmp_path / "run")]) == 0
    assert "sorter" in capsys.readouterr().out
    with pytest.raises(BundleError, match="is a sorter of digits, not a translator"):
        jumok.load(tmp_path / "run", task="translator")


def test_it_is_resumed_to_the_same_bits_and_planned(lists: Path, tmp_path: Path) -> None:
    def stop_after(steps: int) -> Any:
        made = iter(range(steps))
        return lambda: next(made, None) is None

    train("sorter", lists, out=tmp_path / "whole", steps=60, settings=SETTINGS)
    with pytest.raises(StoppedEarly):
        train("sorter", lists, out=tmp_path / "run", steps=60, settings=SETTINGS, stop_requested=stop_after(25))
    train("sorter", lists, out=tmp_path / "run", steps=60, settings=SETTINGS)
    digests = [load_bundle(tmp_path / name).weights_digest for name in ("whole", "run")]
    assert digests[0] == digests[1]
    planned = plan("sorter", lists, steps=60, settings=SETTINGS)
    assert planned.settings.to_dict() == json.loads((tmp_path / "run" / "run.json").read_text("utf-8"))["settings"]


def test_no_file_of_the_source_knows_it() -> None:
    source = Path(jumok.__file__).parent
    assert not [file for file in source.rglob("*.py") if "sorter" in file.read_text(encoding="utf-8").lower()]
