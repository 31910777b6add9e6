"""Marian through `pymarian`, whose wheel holds the whole of it: `marian train`.

It is given pieces. It has one worker a core, which is what its CPU threads are, and the batch is divided among them.
Batches cannot be given to it: it makes its own of the same corpus, of as many target tokens as the others' have on
average.
It does not translate here: what it writes on this CPU is wrong (benchmarks/recipes/marian.py has the figures), and so
its speed means nothing.
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

from contender import Clock, Job, peak_memory, read_lines, run

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
        *["--mini-batch-words", str(job["target_tokens"] // job["steps"]), "--maxi-batch", "1000"],
        *["--disp-freq", "1", "--save-freq", "1000000", "--seed", "1", "--after", f"{updates}u"],
        *(around if size["norm"] == "pre" else []),
    ]


def train(job: Job, _: Clock) -> dict[str, Any]:
    """Marian tells after each update how many target tokens it had."""
    directory = Path(job["work"], "train")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    times, tokens, memory = [], [], 0.0
    updates = job["warm_up"] + job["steps"]
    process = subprocess.Popen(command(job, directory, Path(job["text"]), updates), stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        print(line, end="")
        if found := LINE.search(line):
            times.append(time.perf_counter())
            tokens.append(int(found[2].replace(",", "")))
            memory = peak_memory(process.pid)
    process.wait()
    if len(times) < updates:
        raise SystemExit(f"Marian ended with {process.returncode} after {len(times)} updates.")
    first = job["warm_up"] - 1
    seconds, learned = times[-1] - times[first], sum(tokens[first + 1 :])
    return {"rate": learned / seconds, "steps": job["steps"], "tokens": learned, "seconds": seconds, "memory": memory}


if __name__ == "__main__":
    run(train=train)
