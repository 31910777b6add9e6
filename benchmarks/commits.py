"""Speed of two checkouts on this machine, alternating: has a change made training or translation slower?

    git worktree add ../before COMMIT
    python benchmarks/commits.py ../before .          # prints a page; about six minutes on two cores

Both train `tiny` on the built-in corpus on the CPU, and translate with PyTorch and a model that was trained before, the
same for both, each time in a process of its own. Tokens a second are those of the log, without validation and
checkpoints; seconds are those of whole commands.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe_machine
from turns import rounds_of

from jumok.demo.pairs import write_demo_corpus
from jumok.errors import counted

WARM_UP, LINES, PAIRS = 10, 200, 5_000
LEARNING_STEPS = 250  # until outputs are about as long as they should be
BATCH = 1024
SETTINGS = (f"batch.tokens={BATCH}", "log.every=5", "validate.every=1000000", "validate.sentences=1")
SETTINGS += ("model.dropout=0.1",)
FIGURES = {
    "rate": "training, tokens/s",
    "train": "`jumok train`, the whole command, s",
    "translate": f"`jumok translate --engine torch` of {LINES} lines, beam 5, s",
    "start": "`jumok translate --engine torch` of 1 line, s",
}


def jumok(checkout: Path, *arguments: str, stdin: str = "") -> float:
    """Seconds of a command of that checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    started = time.perf_counter()
    command = [sys.executable, "-m", "jumok", *arguments]
    subprocess.run(command, env=environment, input=stdin, text=True, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def commit_of(checkout: Path) -> str:
    """Its hash and subject."""
    command = ["git", "-C", str(checkout), "log", "-1", "--format=%h (%s)"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def train(checkout: Path, corpus: Path, run: Path, steps: int) -> float:
    """Seconds of a training. It validates and certifies with two sentences: a model that has learned little writes long
    sentences, which would take most of the time."""
    for language in ("en", "ko"):
        lines = (corpus / f"valid.{language}").read_text(encoding="utf-8").splitlines()[:2]
        (corpus / f"few.{language}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files, valid = ([str(corpus / f"{name}.{language}") for language in ("en", "ko")] for name in ("train", "few"))
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    length = ["--preset", "tiny", "--steps", str(steps), "--valid", *valid]
    return jumok(checkout, "train", "translator", *files, "-o", str(run), *length, *settings, "--quiet")


def measure(checkout: Path, corpus: Path, model: Path, steps: int) -> dict[str, float]:
    """All figures of one checkout, once."""
    run = corpus / "run"
    shutil.rmtree(run, ignore_errors=True)
    seconds = train(checkout, corpus, run, WARM_UP + steps)
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    entries = [entry for entry in log if entry["event"] == "train" and entry["step"] >= WARM_UP]
    first, last = entries[0], entries[-1]
    rate = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    lines = (corpus / "test.en").read_text(encoding="utf-8").splitlines()[:LINES]
    translate = ("translate", "-m", str(model), "--engine", "torch", "--quiet")
    many, one = (jumok(checkout, *translate, stdin="\n".join(some) + "\n") for some in (lines, lines[:1]))
    return {"rate": rate, "train": seconds, "translate": many, "start": one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=50, help="updates measured in each round")
    arguments = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
    with tempfile.TemporaryDirectory() as directory:
        corpus, model = Path(directory), Path(directory, "model")
        write_demo_corpus(corpus, count=PAIRS)
        train(arguments.before, corpus, model, LEARNING_STEPS)
        for _, name in rounds_of(list(found), arguments.rounds):
            found[name].append(measure(getattr(arguments, name), corpus, model, arguments.steps))
            print(name, found[name][-1], file=sys.stderr, flush=True)
    print("# Speed of two commits\n")
    rounds = counted(arguments.rounds, "round")
    how = f"{rounds} in turns; training: {arguments.steps} updates of {BATCH:,} tokens of `tiny`."
    print(f"{commit_of(arguments.before)} and {commit_of(arguments.after)}, {how}")
    print("`python benchmarks/commits.py BEFORE AFTER` prints this page; its docstring says what is measured.")
    print(describe_machine())
    print("\n| | before | after | after / before: median (all rounds) |\n|---|---|---|---|")
    for key, what in FIGURES.items():
        before, after = ([round_[key] for round_ in found[name]] for name in ("before", "after"))
        ratios = [new / old for old, new in zip(before, after, strict=True)]
        shown = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        medians = f"{statistics.median(before):,.2f} | {statistics.median(after):,.2f}"
        print(f"| {what} | {medians} | **{statistics.median(ratios):.2f}** ({shown}) |")


if __name__ == "__main__":
    main()
