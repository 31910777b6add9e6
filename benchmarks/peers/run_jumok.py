"""Jumok: the real `jumok train translator`, and the translator that `jumok translate` uses."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from contender import Clock, Job, Translate, run


def train(job: Job, _: Clock) -> dict[str, Any]:
    """Its log has the tokens learned from and the seconds spent training, without validation and checkpoints."""
    from training_speed import watch_memory

    directory = Path(job["work"], "train")
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(job["store"], directory / "store")  # of the same files, so that they are not prepared each time
    settings = {
        "tokenizer.size": job["model"]["vocabulary"],
        "batch.tokens": job["batch_tokens"],
        "model.dropout": job["model"]["dropout"],  # for so few steps it would choose none
        "log.every": 1,
        "validate.every": 1_000_000,
        "validate.sentences": 1,
        "checkpoint.every": 1_000_000,
    }
    command = [sys.executable, "-m", "jumok", "train", "translator", *job["data"], "-o", str(directory)]
    command += ["--preset", job["preset"], "--steps", str(job["warm_up"] + job["steps"])]
    memory = watch_memory([*command, *(part for name in settings for part in ("--set", f"{name}={settings[name]}"))])
    log = [json.loads(line) for line in (directory / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    steps = [entry for entry in log if entry["event"] == "train"]
    first, last = steps[job["warm_up"] - 1], steps[-1]
    rate = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    return {"rate": rate, "steps": last["step"] - first["step"], "memory": memory}


def load(job: Job, beam: int) -> Translate:
    from jumok.engines.loading import load
    from jumok.engines.options import DecodingOptions

    translator = load(Path(job["bundle"]), "ctranslate2", task="translator")
    options = DecodingOptions(beam=beam)
    return lambda lines: [result.text for result in translator.translate_batch(lines, options)]


if __name__ == "__main__":
    run(train=train, load=load)
