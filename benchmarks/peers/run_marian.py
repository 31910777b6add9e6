"""Marian through `pymarian`, whose wheel holds the whole of it: `marian train` and its translator.

It is given pieces. Training has one worker a core, which is what its CPU threads are, and the batch is divided among
them. Its decoder begins with a vector of zeros where Jumok's begins with the embedding of `<s>`, and the frequencies of
its positions are others: Jumok's weights are trained a little further before it translates with them, so that its
translations are of the same kind and length.
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

import numpy as np
from contender import (
    FEWEST_STEPS,
    Clock,
    Job,
    Translate,
    peak_memory,
    read_lines,
    run,
    split_weights,
    text_to_text,
    write_pieces,
)

SENTENCES, POSITIONS = 64, 512
UPDATES = 100  # after which the converted weights suit it
LINE = re.compile(r"Up\. (\d+) .* Cost [\d.]+ \* ([\d,]+)")


def command(job: Job, directory: Path, text: Path, updates: int, rate: float = 1e-4) -> list[str]:
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
        *["--optimizer", "adam", "--optimizer-params", "0.9", "0.98", "1e-09", "--learn-rate", str(rate)],
        *["--cpu-threads", str(threads), "--sync-sgd", "--max-length", str(POSITIONS), "--shuffle-in-ram"],
        *["--mini-batch-words", str(job.get("batch_tokens", 1024) // threads), "--maxi-batch", "1000"],
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


def convert(job: Job) -> None:
    """Trains a model of these sizes for one update, replaces its weights, and lets it learn how they are begun here."""
    text, directory = Path(job["work"], "text"), Path(job["work"], "model")
    write_pieces(job, text, 20_000)
    directory.mkdir(exist_ok=True)
    subprocess.run(command(job, directory, text, 1), check=True)
    arrays = dict(np.load(directory / "model.npz"))
    for path in directory.glob("model.npz*"):
        path.unlink()  # with the state of the optimizer
    weights = split_weights(job)
    # Positions are sines, then cosines, here, and in turns there: the model's own axis is put in that order.
    order = np.concatenate((np.arange(0, job["model"]["d_model"], 2), np.arange(1, job["model"]["d_model"], 2)))
    rows = weights.pop("embedding")[:, order]
    arrays["Wemb"] = rows[[3, 1, *range(4, len(rows))]]  # </s> and <unk> first, no <pad> and no <s>
    arrays["decoder_ff_logit_out_b"][:] = 0
    for name, value in weights.items():
        theirs = marian_name(name)
        if f"{theirs}_pre" in arrays:
            theirs += "_pre"
        arrays[theirs] = in_order(name, value, order).reshape(arrays[theirs].shape)
    np.savez(directory / "model.npz", **arrays)
    subprocess.run(command(job, directory, text, UPDATES, 5e-4), check=True)
    for path in directory.glob("model.npz.*"):
        path.unlink()


def marian_name(name: str) -> str:
    """`encoder.0.self.query.weight` → `encoder_l1_self_Wq`, and so on."""
    stack, *layer, part, kind = name.split(".")
    if not layer:
        return f"{stack}_top_ln_{'scale' if kind == 'weight' else 'bias'}"
    number, block = layer
    prefix = f"{stack}_l{int(number) + 1}_{ {'self': 'self', 'cross': 'context', 'ff': 'ffn'}[block] }"
    if part == "norm":
        return f"{prefix}_{'ffn' if block == 'ff' else 'Wo'}_ln_{'scale' if kind == 'weight' else 'bias'}"
    ending = {"query": "q", "key": "k", "value": "v", "output": "o", "in": "1", "out": "2"}[part]
    return f"{prefix}_{'W' if kind == 'weight' else 'b'}{ending}"


def in_order(name: str, value: Any, order: Any) -> Any:
    """Marian's matrices are [in, out]; what belongs to the model's own axis in its order."""
    *_, part, kind = name.split(".")
    if part in ("output", "out", "norm"):
        value = value[order]
    elif kind == "weight":
        value = value[:, order]
    return np.ascontiguousarray(value.T)


def load(job: Job, beam: int) -> Translate:
    from pymarian import Translator

    directory = Path(job["work"], "model")
    vocabulary = directory / "vocabulary.yml"
    translator = Translator(
        f"--models {directory}/model.npz --vocabs {vocabulary} {vocabulary} --beam-size {beam} --normalize 1 "
        f"--cpu-threads {job['threads']} --mini-batch {SENTENCES} --maxi-batch 100 --maxi-batch-sort src "
        f"--max-length {POSITIONS} --quiet-translation"
    )

    def translate(sentences: list[list[str]]) -> list[list[str]]:
        found = translator.translate([" ".join(sentence) for sentence in sentences])
        return [output.split(" ") for output in found]

    return text_to_text(job, translate)


if __name__ == "__main__":
    run(train=train, convert=convert, load=load)
