"""Quality on Multi30k en→de after so many minutes of `jumok train`, through the real commands.

    python benchmarks/multi30k.py --data DIRECTORY --minutes 20            # adds a row to benchmarks/multi30k.md
    python benchmarks/multi30k.py --data DIRECTORY --minutes 20 --raw      # raw text, sacreBLEU's own tokenisation
    python benchmarks/multi30k.py --data DIRECTORY --steps 3000 --vocabulary 2000

The directory holds {train,val,test_2016_flickr}[.lc.norm.tok].{en,de}.gz. The training gets the training and validation
files; the test file is used once, at the end. With an existing --out the same training is resumed.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from machine import MEASURED, describe_machine

PAGE = Path(__file__).with_suffix(".md")
COLUMNS = (
    *("files", "length asked for", "vocabulary", "steps", "trained", "tokens/s"),
    *("valid BLEU", "test BLEU, beam 5", "greedy", "chrF", "measured"),
)
HEAD = f"""# Multi30k en→de

`--preset tiny`, everything else chosen by `jumok train`; `benchmarks/multi30k.py` contains the commands. BLEU on
test_2016_flickr by sacreBLEU, with beam 5 and greedy search. The lower-cased, tokenised files (lc.norm.tok) are
scored with `tokenize=none`, raw files with 13a.

| {" | ".join(COLUMNS)} |
|{"---|" * len(COLUMNS)}
"""


def jumok(*arguments: str) -> str:
    """Runs a command of Jumok and returns what it printed."""
    return subprocess.run(
        [sys.executable, "-m", "jumok", *arguments], check=True, stdout=subprocess.PIPE, text=True
    ).stdout


def files(data: Path, part: str, raw: bool) -> list[str]:
    """Source and target of a part of the corpus."""
    middle = "" if raw else ".lc.norm.tok"
    return [str(data / f"{part}{middle}.{language}.gz") for language in ("en", "de")]


def train(arguments: argparse.Namespace, run: Path) -> dict[str, Any]:
    """Trains, and says how it went."""
    command = ["train", "translator", *files(arguments.data, "train", arguments.raw)]
    command += ["--valid", *files(arguments.data, "val", arguments.raw), "-o", str(run), "--preset", "tiny", "--quiet"]
    command += ["--minutes", str(arguments.minutes)] if arguments.minutes else ["--steps", str(arguments.steps)]
    if arguments.vocabulary:
        command += ["--set", f"tokenizer.size={arguments.vocabulary}"]
    for setting in arguments.set:
        command += ["--set", setting]
    jumok(*command)
    log = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    last = log[-1]
    best = max(entry["bleu"] for entry in log if entry["event"] == "valid")
    return {"steps": last["step"], "seconds": last["seconds"], "tokens": last["tokens"], "valid": best}


def evaluate(arguments: argparse.Namespace, run: Path, beam: int) -> dict[str, Any]:
    """Scores on the test file."""
    tokenize = "13a" if arguments.raw else "none"
    test = files(arguments.data, "test_2016_flickr", arguments.raw)
    output = jumok("evaluate", "-m", str(run), *test, "--beam", str(beam), "--tokenize", tokenize, "--json")
    scores: dict[str, Any] = json.loads(output)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    length = parser.add_mutually_exclusive_group(required=True)
    length.add_argument("--minutes", type=float)
    length.add_argument("--steps", type=int)
    parser.add_argument("--vocabulary", type=int)
    parser.add_argument("--raw", action="store_true")
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--out", type=Path, help="the run directory; a temporary one if not given")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        run = arguments.out or Path(temporary, "run")
        trained = train(arguments, run)
        beam, greedy = evaluate(arguments, run, 5), evaluate(arguments, run, 1)
        facts = json.loads((run / "store" / "prepared.json").read_text(encoding="utf-8"))
    asked = f"{arguments.minutes:g} minutes" if arguments.minutes else f"{arguments.steps:,} steps"
    row = [
        "raw" if arguments.raw else "lc.norm.tok",
        " ".join([asked, *arguments.set]),
        f"{facts['tokenizer']['size']:,}",
        f"{trained['steps']:,}",
        f"{trained['seconds'] / 60:.1f} min",
        f"{trained['tokens'] / trained['seconds']:,.0f}",
        f"{trained['valid']:.1f}",
        f"**{beam['bleu']:.1f}**",
        f"{greedy['bleu']:.1f}",
        f"{beam['chrf']:.1f}",
        MEASURED,
    ]
    text = PAGE.read_text(encoding="utf-8") if PAGE.exists() else HEAD + "\n" + describe_machine() + "\n"
    lines = text.split("\n")
    end = lines.index("", next(place for place, line in enumerate(lines) if line.startswith("|---")))
    lines.insert(end, f"| {' | '.join(row)} |")
    PAGE.write_text("\n".join(lines), encoding="utf-8")
    print(" | ".join(row))


if __name__ == "__main__":
    main()
