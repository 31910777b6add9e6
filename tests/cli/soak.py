"""Kills for an hour: `make soak`. Not a test, because nobody waits so long for one.

Every round trains with other settings, once in peace and once killed 40 times, each time going on from what was saved.
Both must end with the same log (every loss, every score), the same weights and moments in the last checkpoint, and the
same model, bit for bit.
"""

import argparse
import random
import tempfile
import time
from pathlib import Path

from commands import write_corpus
from kills import Training, assert_same, train

KILLS_A_ROUND = 40


def settings_of(round_: int) -> tuple[int, list[str]]:
    """How many steps, and settings in which most of what could go wrong differs from round to round."""
    draw = random.Random(round_)
    accumulate = draw.choice([1, 2, 3])
    chosen = {
        "seed": round_,
        "batch.tokens": draw.choice([24, 48, 96]),
        "batch.accumulate": accumulate,
        "tokenizer.sampling": draw.choice([0.0, 0.1]),
        "model.dropout": draw.choice([0.0, 0.1, 0.3]),
        "checkpoint.every": draw.choice([2, 3, 5]),
        "checkpoint.average": draw.choice([1, 3]),
        "validate.every": draw.choice([17, 40, 90]),
        "log.every": 1,
    }
    return 180, [f"--set={name}={value}" for name, value in chosen.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=2000)
    arguments = parser.parse_args()
    started, killed, round_ = time.monotonic(), 0, 0
    while killed < arguments.kills:
        round_ += 1
        steps, settings = settings_of(round_)
        with tempfile.TemporaryDirectory() as temporary:
            directory = Path(temporary)
            write_corpus(directory)
            killing = Training("killed", min(KILLS_A_ROUND, arguments.kills - killed), seed=round_)
            _, epochs = train(directory, settings, steps, Training("whole"), killing)
            killed += len(epochs)
            assert_same(directory / "killed", directory / "whole", steps)
        seconds = time.monotonic() - started
        print(
            f"round {round_}: {killed:,} kills and resumes in {seconds / 60:.1f} min, {seconds / killed:.1f} s each: "
            "losses, scores, weights, moments and model are those of a training left in peace",
            flush=True,
        )


if __name__ == "__main__":
    main()
