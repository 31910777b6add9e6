"""Jumok: the real `jumok train translator`, whose batches the others get, and the translator of `jumok translate`."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from contender import Clock, Job, Translate, run

SAME_FIELDS = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "dropout", "rotary")  # of all contenders' models


def train(job: Job, clock: Clock) -> None:
    from jumok.cli import main
    from jumok.training.trainer import Trainer

    step = Trainer._step

    def timed(self: Any, window: list[Any], together: int) -> Any:
        clock.step(sum(batch.tokens for _, batch in window))
        return step(self, window, together)

    Trainer._step = timed  # type: ignore[method-assign]
    directory = Path(job["work"], "train")
    shutil.rmtree(directory, ignore_errors=True)
    shutil.copytree(job["store"], directory / "store")  # of the same files, so that they are not prepared each time
    settings = {
        "tokenizer.size": job["model"]["vocabulary"],
        "batch.tokens": job["batch_tokens"],
        # The model of the others, not what it would choose for so few steps.
        **{f"model.{name}": job["model"][name] for name in SAME_FIELDS},
        "augment.case": 0.0,  # the others do not have it
        "optimizer.name": "adam",
        "loss.candidates": job["model"]["vocabulary"],  # all
        "precision": "float32",
        "validate.every": 1_000_000,
        "validate.sentences": 1,
        "checkpoint.every": 1_000_000,
    }
    sys.argv = [
        "jumok",
        "train",
        "translator",
        *job["data"],
        "-o",
        str(directory),
        "--preset",
        job["preset"],
        "--quiet",
    ]
    sys.argv += ["--seed", str(job["seed"]), "--steps", str(job["warm_up"] + job["steps"] + 1)]
    sys.argv += [f"--set={name}={value}" for name, value in settings.items()]
    main()


def load(job: Job, beam: int) -> Translate:
    from jumok.engines.loading import load

    translator = load(Path(job["bundle"]), "ctranslate2", task="translator")
    return lambda lines: translator.translate(lines, beam=beam)


if __name__ == "__main__":
    run(train=train, load=load)
