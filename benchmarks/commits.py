"""Speed of two checkouts on this machine, alternating: has a change made training or translation slower?

    git worktree add ../before COMMIT
    python benchmarks/commits.py ../before . --rounds 5          # prints a table

Both train `tiny` on the built-in corpus on the CPU and translate with that model and PyTorch, each time in a process of
its own. Tokens a second are those of the log, without validation and checkpoints; seconds are those of whole commands.
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

WARM_UP, LINES = 10, 300
SETTINGS = ("batch.tokens=1024", "log.every=5", "validate.every=1000000", "validate.sentences=1", "model.dropout=0.1")
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


def measure(checkout: Path, corpus: Path, steps: int) -> dict[str, float]:
    """All figures of one checkout, once."""
    run = corpus / "run"
    shutil.rmtree(run, ignore_errors=True)
    settings = [part for setting in SETTINGS for part in ("--set", setting)]
    length = ["--preset", "tiny", "--steps", str(WARM_UP + steps)]
    files = [str(corpus / f"train.{language}") for language in ("en", "ko")]
    seconds = jumok(checkout, "train", "translator", *files, "-o", str(run), *length, *settings, "--quiet")
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    entries = [entry for entry in log if entry["event"] == "train" and entry["step"] >= WARM_UP]
    first, last = entries[0], entries[-1]
    rate = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    lines = (corpus / "test.en").read_text(encoding="utf-8").splitlines()[:LINES]
    translate = ("translate", "-m", str(run), "--engine", "torch", "--quiet")
    many, one = (jumok(checkout, *translate, stdin="\n".join(some) + "\n") for some in (lines, lines[:1]))
    return {"rate": rate, "train": seconds, "translate": many, "start": one}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60, help="updates measured in each round")
    arguments = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {"before": [], "after": []}
    with tempfile.TemporaryDirectory() as directory:
        write_demo_corpus(Path(directory))
        for _, name in rounds_of(list(found), arguments.rounds):
            found[name].append(measure(getattr(arguments, name), Path(directory), arguments.steps))
            print(name, found[name][-1], file=sys.stderr, flush=True)
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
