"""Marian through `pymarian`, whose wheel holds the whole of it: `marian train`.

It is given pieces. It has one worker a core, which is what its CPU threads are, and the batch is divided among them.
It does not translate here: with the weights of a Jumok model its trainer has the loss that is to be expected, but its
decoder and its scorer on the CPU have not, and as long as this is not understood their speed means nothing.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from contender import FEWEST_STEPS, Clock, Job, peak_memory, read_lines, run

LONGEST = 512  # pieces
LINE = re.compile(r"Up\. (\d+) .* Cost [\d.]+ \* ([\d,]+)")


def command(job: Job, directory: Path, text: Path, updates: int) -> list[str]:
    size = job["model"]
    vocabulary = directory / "vocabulary.yml"
    pieces = ["</s>", "<unk>", *(piece for piece in read_lines(text / "vocabulary.txt")[4:])]
    vocabulary.write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}), encoding="utf-8")
    around = ["--transformer-preprocess", "n", "--transformer-postprocess", "da", "--transformer-postprocess-top", "n"]
    threads = job["threads"]
    return [
        *[sys.executable, "-m", "pymarian", "train", "--type", "transformer"],
        *["--model", str(directory / "model.npz"), "--train-sets", str(text / "train.src"), str(text / "train.tgt")],
        *["--vocabs", str(vocabulary), str(vocabulary), "--tied-embeddings-all"],
        *["--dim-emb", str(size["d_model"]), "--transformer-dim-ffn", str(size["d_ff"])],
        *["--enc-depth", str(size["encoder_layers"]), "--dec-depth", str(size["decoder_layers"])],
        *["--transformer-heads", str(size["heads"]), "--transformer-ffn-activation", size["activation"]],
        *["--transformer-dropout", str(size["dropout"]), "--label-smoothing", "0.1", "--clip-norm", "1"],
        *["--optimizer", "adam", "--optimizer-params", "0.9", "0.98", "1e-09", "--learn-rate", "0.0001"],
        *["--cpu-threads", str(threads), "--sync-sgd", "--max-length", str(LONGEST), "--shuffle-in-ram"],
        *["--mini-batch-words", str(job["batch_tokens"] // threads), "--maxi-batch", "1000"],
        *["--disp-freq", "1", "--save-freq", "1000000", "--seed", "1", "--after", f"{updates}u"],
        *(around if size["norm"] == "pre" else []),
    ]


def train(job: Job, _: Clock) -> dict[str, Any]:
    """Marian tells after each update how many target tokens it had."""
    directory = Path(job["work"], "train")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    times, tokens, memory = [], [], 0.0
    process = subprocess.Popen(
        command(job, directory, Path(job["text"]), job["warm_up"] + job["steps"]), stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for line in process.stderr:
        print(line, end="")
        if found := LINE.search(line):
            times.append(time.perf_counter())
            tokens.append(int(found[2].replace(",", "")))
            memory = peak_memory(process.pid)
            done = len(times) - job["warm_up"]
            if done >= FEWEST_STEPS and times[-1] - times[job["warm_up"] - 1] >= job["seconds"]:
                process.terminate()
                break
    process.wait()
    first = job["warm_up"] - 1
    if len(times) < first + 1 + FEWEST_STEPS:
        raise SystemExit(f"Marian ended with {process.returncode} after {len(times)} updates.")
    rate = sum(tokens[first + 1 :]) / (times[-1] - times[first])
    return {"rate": rate, "steps": len(times) - first - 1, "memory": memory}


if __name__ == "__main__":
    run(train=train)
