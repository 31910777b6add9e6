"""Trainings of other tasks that were stopped. (Painter, pictures and recurrent translators: in their own files.)"""

from pathlib import Path
from typing import Any

import pytest

from jumok.recipes.training import train
from jumok.training.trainer import StoppedEarly

STEPS = 9
SETTINGS: dict[str, Any] = {
    "model.d_model": 16,
    "model.heads": 2,
    "model.d_ff": 16,
    "model.dropout": 0.1,
    "batch.tokens": 128,
    "batch.accumulate": 2,
    "validate.every": 4,
    "validate.sentences": 4,
    "checkpoint.every": 3,
}
OF_TASK: dict[str, dict[str, Any]] = {
    "classifier": {"model.encoder_layers": 1, "model.ngrams": 64},
    "language_model": {"model.decoder_layers": 1, "tokenizer.sampling": 0.1},
}
PRECISIONS = {"classifier": ("float32",), "language_model": ("float32", "bfloat16")}


@pytest.mark.usefixtures("quick_trainings")
@pytest.mark.parametrize(("task", "precision"), [(task, name) for task in OF_TASK for name in PRECISIONS[task]])
def test_a_training_that_was_stopped_ends_with_the_same_bits(tmp_path: Path, task: str, precision: str) -> None:
    lines = [f"{('good', 'bad')[n % 2]}\tthis is a {('fine', 'poor')[n % 2]} text {n}\n" for n in range(60)]
    labelled = task == "classifier"
    data = tmp_path / ("a.tsv" if labelled else "a.txt")
    data.write_text("".join(lines if labelled else (line.partition("\t")[2] for line in lines)), encoding="utf-8")

    def trained(out: str, *, stop_at: int = 0) -> None:
        steps = iter(range(1, STEPS + 1))
        settings = {**SETTINGS, **OF_TASK[task], "precision": precision}
        request: dict[str, Any] = {"steps": STEPS, "settings": settings, "progress": False}
        train(task, data, out=tmp_path / out, stop_requested=lambda: next(steps, None) == stop_at, **request)

    trained("whole")
    for step in (1, 5):
        with pytest.raises(StoppedEarly):
            trained("stopped", stop_at=step)
    trained("stopped")
    last = f"checkpoints/step-{STEPS:08d}"
    for name in (f"{last}/model", f"{last}/optimizer", "model/weights"):
        one, other = ((tmp_path / out / f"{name}.safetensors").read_bytes() for out in ("whole", "stopped"))
        assert one == other, name
