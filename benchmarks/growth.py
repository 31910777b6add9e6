"""How costs grow: a training step with sentence, batch, vocabulary and model; store and memory with the corpus.

    python benchmarks/growth.py            # rewrites growth.md and growth.png; 5 million pairs need 4 GB of disk

A step is forward, backward and update on one fixed batch, in a process of its own. The corpora are generated: words
drawn from 20,000 with Zipf's frequencies, 5 to 30 in a sentence. Each is prepared by the real `jumok train translator`,
which then makes two steps; the model so made translates files of growing length.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from machine import describe_machine, peak_memory
from training_speed import watch_memory

from jumok.model.config import preset
from jumok.model.translator import Translator
from jumok.system import keep_freed_memory
from jumok.training.objective import smoothed_cross_entropy

PAGE = Path(__file__).with_suffix(".md")
USUAL = {"model": "tiny", "vocabulary": 8000, "batch": 4096, "sentence": 16}
AXES: dict[str, list[Any]] = {
    "sentence": [8, 16, 32, 64, 128, 256, 512, 1024],  # tokens
    "batch": [512, 1024, 2048, 4096, 8192, 16384],  # tokens
    "vocabulary": [1000, 2000, 4000, 8000, 16000, 32000],
    "model": ["tiny", "small", "base"],
}
STEPS = 5
WORDS, SHORTEST, LONGEST = 20_000, 5, 30
LINES = (1_000, 4_000, 8_000)  # of the files that are translated; a model this new writes as much as it may


def measure_step(model: str, vocabulary: int, batch: int, sentence: int) -> dict[str, float]:
    """Seconds of one step (the median), and the megabytes of this process."""
    keep_freed_memory()
    translator = Translator(preset(model, vocabulary=vocabulary)).train()
    optimizer = torch.optim.Adam(translator.parameters(), lr=1e-4, fused=True)
    source, target, answers = torch.randint(4, vocabulary, (3, max(1, batch // sentence), sentence))
    times = []
    for _ in range(STEPS + 1):
        started = time.perf_counter()
        states = translator.states(source, target).flatten(0, 1)
        loss = smoothed_cross_entropy(states, translator.embed.tokens.weight, answers.flatten(), 0.1)
        optimizer.zero_grad()
        (loss / answers.numel()).backward()
        optimizer.step()
        times.append(time.perf_counter() - started)
    return {"seconds": statistics.median(times[1:]), "memory": peak_memory()}


def all_steps() -> dict[str, list[dict[str, Any]]]:
    """The costs along every axis, all else as usual."""
    found: dict[str, list[dict[str, Any]]] = {}
    for axis, values in AXES.items():
        found[axis] = []
        for value in values:
            sizes = USUAL | {axis: value}
            command = [sys.executable, __file__, "--step", json.dumps(sizes)]
            cost = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
            found[axis].append({axis: value, "tokens": sizes["batch"], **cost})
            print(axis, value, f"{1e3 * cost['seconds']:.0f} ms, {cost['memory']:.0f} MB", flush=True)
    return found


def write_sentences(path: Path, count: int, seed: int) -> None:
    """Made-up sentences of made-up words, frequent ones short."""
    draw = np.random.default_rng(seed)
    letters = np.array(list("aeiounrstlkmdpbg"))
    words = ["".join(draw.choice(letters, 2 + rank.bit_length() // 2)) for rank in range(WORDS)]
    weights = 1 / np.arange(1, WORDS + 1)
    weights /= weights.sum()
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, count, 10_000):
            lengths = draw.integers(SHORTEST, LONGEST + 1, min(10_000, count - start))
            drawn = iter(draw.choice(WORDS, int(lengths.sum()), p=weights).tolist())
            file.writelines(" ".join(words[next(drawn)] for _ in range(length)) + "\n" for length in lengths)


def prepare(directory: Path, pairs: int) -> dict[str, float]:
    """The real command until its first steps: pairs a second until the store is there, memory, and its size."""
    files = [directory / f"{pairs}.{side}" for side in ("a", "b")]
    for seed, file in enumerate(files):
        write_sentences(file, pairs, seed)
    run = directory / f"run-{pairs}"
    command = [sys.executable, "-m", "jumok", "train", "translator", *map(str, files), "-o", str(run), "--preset=tiny"]
    command += ["--steps=2", "--set=tokenizer.size=8000", "--set=batch.tokens=4096", "--set=validate.sentences=10"]
    started = time.time()
    memory = watch_memory([*command, "--quiet"])
    seconds = (run / "run.json").stat().st_mtime - started
    megabytes = {
        "text": sum(file.stat().st_size for file in files) / 1e6,
        "store": sum(file.stat().st_size for file in (run / "store").rglob("*") if file.is_file()) / 1e6,
    }
    for file in files:
        file.unlink()
    return {"pairs": pairs, "seconds": seconds, "memory": memory, **megabytes}


def translate(directory: Path, run: Path, lines: int) -> dict[str, float]:
    """The memory of the real command for a file of so many lines."""
    source = directory / "source.txt"
    write_sentences(source, lines, seed=lines)
    command = [sys.executable, "-m", "jumok", "translate", "-m", str(run), str(source), "--beam=1"]
    started = time.perf_counter()
    memory = watch_memory([*command, "-o", str(directory / "out.txt")])
    return {"lines": lines, "seconds": time.perf_counter() - started, "memory": memory}


def plot(steps: dict[str, list[dict[str, Any]]], corpora: list[dict[str, float]]) -> None:
    """Five small plots side by side."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, places = pyplot.subplots(1, 5, figsize=(19, 3.6), layout="constrained")
    for place, (axis, costs) in zip(places, steps.items(), strict=False):
        values = [str(cost[axis]) if axis == "model" else cost[axis] for cost in costs]
        draw = place.plot if axis == "model" else place.loglog
        draw(values, [1e6 * cost["seconds"] / cost["tokens"] for cost in costs], "o-", label="µs per token")
        draw(values, [cost["memory"] for cost in costs], "s--", label="peak memory, MB")
        place.set_yscale("log")
        place.set_title(f"a training step by {axis}")
        place.legend(fontsize=8)
    places[-1].loglog([row["pairs"] for row in corpora], [row["seconds"] for row in corpora], "o-", label="seconds")
    places[-1].loglog(
        [row["pairs"] for row in corpora], [row["memory"] for row in corpora], "s--", label="peak memory, MB"
    )
    places[-1].set_title("preparing a corpus by its pairs")
    places[-1].legend(fontsize=8)
    figure.savefig(PAGE.with_suffix(".png"), dpi=110)


def page(
    steps: dict[str, list[dict[str, Any]]], corpora: list[dict[str, float]], translations: list[dict[str, float]]
) -> str:
    """The results as a Markdown page."""
    usual = ", ".join(f"{name} {value}" for name, value in USUAL.items())
    lines = [
        "# Growth",
        "",
        "`python benchmarks/growth.py` writes this page; the docstring of that file says what is measured.",
        describe_machine(),
        "",
        "![costs of a step and of preparing a corpus](growth.png)",
        "",
        f"Cost of a training step. Each row changes one of these defaults: {usual}.",
        "",
        "| | | µs per token | peak memory |",
        "|---|---|---|---|",
    ]
    for axis, costs in steps.items():
        for cost in costs:
            micro = 1e6 * cost["seconds"] / cost["tokens"]
            lines.append(f"| {axis} | {cost[axis]} | {micro:,.0f} | {cost['memory']:,.0f} MB |")
    lines += [
        "",
        "| pairs | text | prepared in | pairs/s | peak memory, including two steps | store |",
        "|---|---|---|---|---|---|",
    ]
    for row in corpora:
        rate = row["pairs"] / row["seconds"]
        lines.append(
            f"| {row['pairs']:,} | {row['text']:,.0f} MB | {row['seconds']:,.0f} s | {rate:,.0f} "
            f"| {row['memory']:,.0f} MB | {row['store']:,.0f} MB |"
        )
    lines += ["", "| lines translated, greedy | seconds | peak memory |", "|---|---|---|"]
    lines += [f"| {row['lines']:,} | {row['seconds']:,.0f} | {row['memory']:,.0f} MB |" for row in translations]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, nargs="+", default=[50_000, 500_000, 5_000_000])
    parser.add_argument("--step", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(measure_step(**arguments.step)))
        return
    steps = all_steps()
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        corpora = []
        for pairs in arguments.pairs:
            corpora.append(prepare(directory, pairs))
            print(corpora[-1], flush=True)
        translations = [translate(directory, directory / f"run-{arguments.pairs[0]}", lines) for lines in LINES]
    plot(steps, corpora)
    text = page(steps, corpora, translations)
    PAGE.write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
