"""Quality on Multi30k after so many minutes of `jumok train`, through the real commands. Rewrites multi30k.md.

    python benchmarks/multi30k.py --data DIRECTORY --minutes 20 --target de fr --files lc.norm.tok raw --seed 1 2
    python benchmarks/multi30k.py --data DIRECTORY --minutes 60 --target de fr --files lc.norm.tok raw
    python benchmarks/multi30k.py --data DIRECTORY --steps 3000 --set tokenizer.size=2000

The directory holds {train,val,test_2016_flickr}[.lc.norm.tok].{en,de,fr}.gz. The training gets the training and
validation files; the test file is used once, at the end. Every training is a row of the page's first table, and its
results are kept in multi30k.json: the same command goes on with what is missing, --fresh trains again and replaces the
rows. A training that was interrupted begins anew.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from machine import MEASURED, processor
from sections import sections_of

PAGE = Path(__file__).with_suffix(".md")
COLUMNS = (
    *("files", "target", "length asked for", "seed", "vocabulary", "steps", "took", "tokens/s"),
    *("valid BLEU", "test BLEU, beam 5", "greedy", "chrF", "processor", "measured"),
)
HEAD = f"""# Multi30k from English

`python benchmarks/multi30k.py --data DIRECTORY` with the length, files, target and seed of a row adds that row;
`--preset tiny`, everything else chosen by `jumok train`. BLEU on test_2016_flickr by sacreBLEU, with beam 5 and greedy
search. The lower-cased, tokenised files (lc.norm.tok) are scored with `tokenize=none`, raw files with 13a. "Took" is
the whole command of training, from the files to the exported model. 2 cores, 24 GB, Linux, Python
{platform.python_version()}, PyTorch {version("torch")}; the family of processors was not recorded before 2026-11-19.

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
"""
Result = dict[str, Any]


def jumok(*arguments: str) -> str:
    """Runs a command of Jumok and returns what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "jumok", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def files(data: Path, part: str, asked: Result) -> list[str]:
    """Source and target of a part of the corpus."""
    middle = "" if asked["files"] == "raw" else ".lc.norm.tok"
    return [str(data / f"{part}{middle}.{language}.gz") for language in ("en", asked["target"])]


def train(data: Path, asked: Result, run: Path) -> Result:
    """Trains, and says how it went."""
    command = ["train", "translator", *files(data, "train", asked), "--valid", *files(data, "val", asked)]
    command += ["-o", str(run), "--preset", "tiny", "--quiet", "--seed", str(asked["seed"])]
    command += ["--minutes", str(asked["minutes"])] if asked["minutes"] else ["--steps", str(asked["steps"])]
    started = time.perf_counter()
    jumok(*command, *(f"--set={setting}" for setting in asked["set"]))
    took = time.perf_counter() - started
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    prepared = json.loads((run / "store" / "prepared.json").read_text(encoding="utf-8"))
    last = log[-1]
    return {
        "took": took,
        "vocabulary": prepared["tokenizer"]["size"],
        "steps": last["step"],
        "rate": last["tokens"] / last["seconds"],
        "valid": max(entry["bleu"] for entry in log if entry["event"] == "valid"),
    }


def evaluate(data: Path, asked: Result, run: Path, beam: int) -> Result:
    """Scores on the test file."""
    tokenize = "13a" if asked["files"] == "raw" else "none"
    test = files(data, "test_2016_flickr", asked)
    scores: Result = json.loads(
        jumok("evaluate", "-m", str(run), *test, "--beam", str(beam), "--tokenize", tokenize, "--json")
    )
    return {"bleu": scores["bleu"], "chrf": scores["chrf"]}


def measure(data: Path, asked: Result, run: Path) -> Result:
    if run.exists():
        raise SystemExit(f"{run} is there already. Remove it: a resumed training would not be measured as a whole.")
    trained = train(data, asked, run)
    scores = {beam: evaluate(data, asked, run, beam) for beam in (5, 1)}
    return {
        "asked": asked,
        "trained": trained,
        "beam": scores[5],
        "greedy": scores[1],
        "processor": processor(),
        "measured": MEASURED,
    }


def row(result: Result) -> str:
    asked, trained = result["asked"], result["trained"]
    length = f"{asked['minutes']:g} minutes" if asked["minutes"] else f"{asked['steps']:,} steps"
    cells = [
        asked["files"],
        asked["target"],
        " ".join([length, *asked["set"]]),
        str(asked["seed"]),
        f"{trained['vocabulary']:,}",
        f"{trained['steps']:,}",
        f"{trained['took'] / 60:.1f} min",
        f"{trained['rate']:,.0f}",
        f"{trained['valid']:.1f}",
        f"**{result['beam']['bleu']:.1f}**",
        f"{result['greedy']['bleu']:.1f}",
        f"{result['beam']['chrf']:.1f}",
        result["processor"],
        result["measured"],
    ]
    return f"| {' | '.join(cells)} |\n"


def page(results: list[Result], sections: str) -> str:
    """The table of all results, and what was written by hand."""
    asked = ("target", "files", "minutes", "seed")
    order = sorted(results, key=lambda result: [*(str(result["asked"][name]) for name in asked), result["processor"]])
    return f"{HEAD}{''.join(map(row, order))}{sections}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--minutes", type=float)
    length.add_argument("--steps", type=int)
    parser.add_argument("--target", nargs="+", choices=("de", "fr"), default=["de"])
    parser.add_argument("--files", nargs="+", choices=("lc.norm.tok", "raw"), default=["lc.norm.tok"])
    parser.add_argument("--seed", nargs="+", type=int, default=[1])
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path, help="where the trainings are kept; nowhere if not given")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to rewrite; its results are beside it")
    parser.add_argument("--fresh", action="store_true", help="train again what is there already")
    arguments = parser.parse_args()
    kept = arguments.page.with_suffix(".json")
    results: list[Result] = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else []
    for seed, target, name in itertools.product(arguments.seed, arguments.target, arguments.files):
        asked = {"files": name, "target": target, "seed": seed, "set": arguments.set}
        asked |= {"minutes": arguments.minutes, "steps": arguments.steps}
        same = {"asked": asked, "processor": processor()}  # another kind makes another number of steps
        known = [result for result in results if same.items() <= result.items()]
        if known and not arguments.fresh:
            print(f"There already ({known[0]['measured']}): {row(known[0])}", end="")
            continue
        with tempfile.TemporaryDirectory() as temporary:
            run = (
                arguments.out or Path(temporary)
            ) / f"{name}-{target}-{arguments.minutes or arguments.steps:g}-{seed}"
            found = measure(arguments.data, asked, run)
        results = [result for result in results if result not in known] + [found]
        kept.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        arguments.page.write_text(page(results, sections_of(arguments.page)), encoding="utf-8")
        print(row(found), end="", flush=True)


if __name__ == "__main__":
    main()
