"""The attention that a training records at its validations."""

import base64
from pathlib import Path
from typing import Any

import numpy as np
import torch
from small_models import make_translator

from jumok import lens
from jumok.lens.replay import record_attention, recorded_attention, recorded_steps
from jumok.tokenizer import Tokenizer
from jumok.training.run_directory import RunDirectory


def test_what_is_recorded_is_the_attention_and_disturbs_nothing(tokenizer: Tokenizer, tmp_path: Path) -> None:
    translator: Any = make_translator(tokenizer)
    translator.engine.model.train()
    source, target = tokenizer.encode(["cat dog .", "개 고양이 ."])
    before = torch.random.get_rng_state()
    with torch.inference_mode():
        data = record_attention(translator.engine, [(source, target), ([5] * 100, target)])
    assert torch.equal(torch.random.get_rng_state(), before)
    assert translator.engine.model.training
    with RunDirectory.open(tmp_path / "run", "translator") as run:
        run.save_attention(7, data)
    log = [{"event": "valid", "step": step} for step in (3, 7)]
    assert recorded_steps(tmp_path / "run", log) == [7]
    [sentence] = recorded_attention(tmp_path / "run", 7, tokenizer)  # the long one was not recorded
    assert sentence["source"] == tokenizer.pieces([*source, 3])
    translator.engine.model.eval()
    traced = lens.trace(translator, "cat dog .", target_ids=target)
    for name, array in sentence["arrays"].items():
        found = np.frombuffer(base64.b64decode(array["data"]), "<f2").reshape(array["shape"])
        np.testing.assert_allclose(found, traced[f"{name}.weights"].values, atol=1e-3)
    assert set(sentence["arrays"]) == {name.removesuffix(".weights") for name in traced.find("*.weights")}


def test_a_long_training_keeps_a_bounded_number(tmp_path: Path) -> None:
    with RunDirectory.open(tmp_path / "run", "translator") as run:
        for step in range(1, 200):
            run.save_attention(step, b"x")
        kept = sorted(path.name for path in (run.path / "attention").iterdir())
    assert len(kept) <= 64
    assert kept[0] == "step-00000001.safetensors"
    assert kept[-1] == "step-00000199.safetensors"
