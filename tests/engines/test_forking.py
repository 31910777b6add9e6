"""Loaded models in other processes: forked, spawned, pickled."""

import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from jumok.engines import ctranslate2_models, torch_models
from jumok.engines.classifier.torch import TorchClassifier
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.loading import load
from jumok.engines.torch_models import TorchEngine, computing
from jumok.engines.translator.text import TextTranslator
from jumok.engines.translator.torch import TorchTranslator
from jumok.errors import ArgumentError, ConfigError
from jumok.training import environment

TASKS = ("translator", "classifier", "language_model")


def test_models_work_in_forked_and_spawned_processes(models: Path) -> None:
    script = Path(__file__).with_name("forked.py")
    source = Path(__file__).parents[2] / "src"
    ended = subprocess.run(
        [sys.executable, str(script), str(models)],
        env={**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "2", "OMP_WAIT_POLICY": "passive"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = ended.stdout.splitlines()
    assert ended.returncode == 0, ended.stderr
    assert len(lines) == 11
    assert [line for line in lines if not line.endswith("ok")] == []


def test_all_methods_that_compute_in_pytorch_can_be_called_after_a_fork() -> None:
    for engine in (TorchTranslator, TorchClassifier, TorchLanguageModel):
        own = {name: member for name, member in vars(engine).items() if inspect.isfunction(member) and name[0] != "_"}
        assert own
        assert all(hasattr(member, "__wrapped__") for member in own.values()), own


def test_threads_are_used_during_a_call_only() -> None:
    class Counting(TorchEngine):
        @computing
        def threads_used(self) -> int:
            return torch.get_num_threads()

    before = torch.get_num_threads()
    model = torch.nn.Linear(1, 1)
    assert Counting(model, threads=before + 2).threads_used() == before + 2
    assert Counting(model).threads_used() == torch.get_num_threads() == before


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_pickled_model_is_its_path_and_options(models: Path, task: str, engine: str) -> None:
    model = load(models / task / "model", engine, threads=1)
    pickled = pickle.dumps(model)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)
    assert type(again.engine) is type(model.engine)
    assert repr(again) == repr(model)


def test_threads_are_as_many_as_asked_for_or_as_there_are_cores(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ctranslate2_models, torch_models, environment):
        monkeypatch.setattr(module, "usable_cores", lambda: 1)  # as in a container with a quota of one core
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for task in TASKS:
            path = models / task / "model"
            found = [load(path, "ctranslate2", threads=threads).engine._model.workers for threads in (None, 3)]
            found += [load(path, "torch", threads=threads).engine.threads for threads in (None, 3)]
            assert found == [1, 3, 1, 3]
        environment.limit_threads()
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    with pytest.raises(ConfigError, match="threads=0 must be a whole number, at least 1"):
        load(path, threads=0)


def test_a_model_without_a_path_cannot_be_pickled(translator: TextTranslator) -> None:
    with pytest.raises(ArgumentError, match=r"cannot be pickled: it was not made by `jumok\.load`"):
        pickle.dumps(translator)


def test_a_model_shows_what_it_is(models: Path) -> None:
    shown = repr(load(models / "translator" / "model", "torch"))
    assert shown == f"<TextTranslator en→ko, 0.1 million parameters, BLEU 31.2, PyTorch, {models}/translator/model>"
    assert "2 classes" in repr(load(models / "classifier" / "model"))
    assert "CTranslate2" in repr(load(models / "language_model" / "model"))
