"""`jumok train classifier` on film reviews against TF-IDF with logistic regression, through the real commands.

    python benchmarks/classifier.py --data DIRECTORY --corpora imdb nsmc --minutes 25 --seeds 1 2
    python benchmarks/classifier.py --data DIRECTORY --corpora imdb --tune --set model.encoder_layers=2

The directory holds imdb/ and nsmc/, each with train.tsv.gz and test.tsv.gz. The training sees train.tsv.gz only and
holds out its own validation texts; the test file is used once, at the end. With --tune it is not used at all: the score
is that of the validation. scikit-learn's line comes from the same run, on the same files. With --out DIRECTORY the runs
and their results are kept there, and what is there already is not measured again.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import MEASURED, describe_machine
from sections import sections_of

PAGE = Path(__file__).with_suffix(".md")


def jumok(*arguments: str) -> str:
    """Runs a command of Jumok and returns what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "jumok", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def train(data: Path, run: Path, minutes: float, seed: int, settings: list[str]) -> dict[str, Any]:
    """Trains, and says how it went."""
    started = time.perf_counter()
    command = ["train", "classifier", str(data / "train.tsv.gz"), "-o", str(run), "--minutes", str(minutes)]
    command += ["--seed", str(seed), "--quiet", *(f"--set={setting}" for setting in settings)]
    jumok(*command)
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    best = max((entry for entry in log if entry["event"] == "valid"), key=lambda entry: entry["score"])
    minutes = (time.perf_counter() - started) / 60
    return {"minutes": minutes, "valid": best["accuracy"], "epochs": log[-1]["epoch"], "ece": best["ece"]}


def read(path: Path) -> tuple[list[str], list[str]]:
    """Labels and texts."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t", 1) for line in file]
    return [row[0] for row in rows], [row[1] for row in rows]


def scikit_learn(data: Path) -> dict[str, float]:
    """TF-IDF of words and pairs of words, logistic regression; characters too, if they do better on held-out texts."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union

    labels, texts = read(data / "train.tsv.gz")
    started = time.perf_counter()
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    letters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, min_df=3)
    candidates = [make_pipeline(words, LogisticRegression(C=10, max_iter=1000))]
    candidates.append(make_pipeline(make_union(words, letters), LogisticRegression(C=4, max_iter=1000)))
    edge = len(texts) * 9 // 10
    scores = []
    for candidate in candidates:
        candidate.fit(texts[:edge], labels[:edge])
        scores.append(candidate.score(texts[edge:], labels[edge:]))
    best = candidates[scores.index(max(scores))].fit(texts, labels)
    seconds = time.perf_counter() - started
    wanted, unseen = read(data / "test.tsv.gz")
    return {"accuracy": float(best.score(unseen, wanted)), "seconds": seconds}


def measure(data: Path, arguments: argparse.Namespace) -> dict[str, Any]:
    """All seeds on one corpus."""
    results = []
    for seed in arguments.seeds:
        with tempfile.TemporaryDirectory() as temporary:
            run = (arguments.out or Path(temporary)) / f"{data.name}-{seed}"
            known = run.with_suffix(".json")
            if not known.exists():
                known.write_text(json.dumps(measure_one(data, run, seed, arguments)), encoding="utf-8")
            results.append(json.loads(known.read_text(encoding="utf-8")))
        print(data.name, seed, results[-1], flush=True)
    return {"corpus": data.name, "results": results}


def measure_one(data: Path, run: Path, seed: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """One training, and its test unless the settings are still being tuned."""
    result = train(data, run, arguments.minutes, seed, arguments.set) | {"measured": MEASURED}
    if not arguments.tune:
        result["test"] = json.loads(jumok("evaluate", "-m", str(run), str(data / "test.tsv.gz"), "--json"))
    return result


def row(found: dict[str, Any], baseline: dict[str, float]) -> str:
    """A line of the table."""
    tests = [result["test"] for result in found["results"]]
    accuracies = [100 * test["accuracy"] for test in tests]
    spread = f" ({', '.join(f'{accuracy:.2f}' for accuracy in accuracies)})" if len(accuracies) > 1 else ""
    speed = statistics.median(test["texts_per_second"] for test in tests)
    minutes = statistics.median(result["minutes"] for result in found["results"])
    error = statistics.median(test["ece"] for test in tests)
    return (
        f"| {found['corpus']} | {minutes:.0f} min | **{statistics.mean(accuracies):.2f} %**{spread} "
        f"| {100 * baseline['accuracy']:.2f} % in {baseline['seconds']:.0f} s | {error:.1%} | {speed:,.0f} "
        f"| {'; '.join(sorted({result['measured'] for result in found['results']}))} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpora", nargs="+", default=["imdb", "nsmc"])
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    lines = []
    for corpus in arguments.corpora:
        found = measure(arguments.data / corpus, arguments)
        if not arguments.tune:
            lines.append(row(found, scikit_learn(arguments.data / corpus)))
    if arguments.tune:
        return
    seeds = " ".join(map(str, arguments.seeds))
    text = f"""# Film reviews: positive or negative

`python benchmarks/classifier.py --data DIRECTORY --corpora {" ".join(arguments.corpora)}
--minutes {arguments.minutes:g} --seeds {seeds}` writes this page: accuracy on test.tsv.gz, mean (each seed) after
{arguments.minutes:g} minutes of `jumok train classifier`; scikit-learn's TF-IDF with logistic regression is measured in
the same run, on the same files.
{describe_machine()}

| corpus | trained | Jumok | scikit-learn | calibration error | texts/s | measured |
|---|---|---|---|---|---|---|
{chr(10).join(lines)}
"""
    PAGE.write_text(text + sections_of(PAGE), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
