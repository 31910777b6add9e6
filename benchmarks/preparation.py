"""Preparing a translator's corpus: checking, splitting, vocabulary and token store, from files to the first batch.

    python benchmarks/preparation.py                          # 1 million pairs; rewrites benchmarks/preparation.md
    python benchmarks/preparation.py --before OTHER/src       # also measures another checkout, in turns

The corpus is the built-in one, with a number in each sentence so that no pair comes twice. Every measurement is a
process of its own, run by this file with `--measure`, and ends when the store can be trained from. "again" opens the
store that is there already, as a resumed training does. Processor time counts all threads.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from machine import describe_machine, peak_memory
from turns import rounds_of

PAIRS, ROUNDS, SENTENCES = 1_000_000, 3, 40_000
FORMATS = ("two text files", "one .jsonl.gz file")


def write_corpus(directory: Path, pairs: int) -> dict[str, list[Path]]:
    """The same pairs as two text files and as one compressed file, by what the page calls them."""
    from jumok.demo.pairs import demo_pairs

    sentences = demo_pairs(count=min(pairs, SENTENCES)).train
    texts, lines = [directory / "a.en", directory / "a.ko"], directory / "a.jsonl.gz"
    with (
        open(texts[0], "w", encoding="utf-8") as sources,
        open(texts[1], "w", encoding="utf-8") as targets,
        gzip.open(lines, "wt", encoding="utf-8") as records,
    ):
        for number in range(pairs):
            english, korean = sentences[number % len(sentences)]
            source, target = f"{english} No. {number}", f"{korean} {number}번"
            sources.write(f"{source}\n")
            targets.write(f"{target}\n")
            records.write(json.dumps({"source": source, "target": target}, ensure_ascii=False) + "\n")
    return {FORMATS[0]: texts, FORMATS[1]: [lines]}


def prepare(files: list[Path], store: Path) -> None:
    """What a training does before it measures the machine, in this version or in the one before it."""
    try:
        from jumok.data.corpus import prepare_corpus
        from jumok.data.kinds import PAIRS as KIND
    except ImportError:  # the version before checked first and prepared then
        from jumok.data.check import check_pairs  # type: ignore[import-not-found, unused-ignore]
        from jumok.data.parallel import PAIRS as KIND  # type: ignore[import-not-found, no-redef, unused-ignore]
        from jumok.data.prepared import prepare_corpus  # type: ignore[import-not-found, no-redef, unused-ignore]

        if not store.exists():
            check_pairs(files)
    prepare_corpus(KIND, store, files)


def measure(files: list[Path], store: Path) -> dict[str, float]:
    started = time.perf_counter()
    prepare(files, store)
    seconds = time.perf_counter() - started
    times = os.times()
    return {"seconds": seconds, "processor": times.user + times.system, "megabytes": peak_memory()}


def run(source: str, files: list[Path], store: Path) -> dict[str, Any]:
    command = [sys.executable, __file__, "--measure", *map(str, files), str(store)]
    environment = {**os.environ, "PYTHONPATH": source}
    result: dict[str, Any] = json.loads(subprocess.check_output(command, env=environment, text=True))
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=PAIRS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--before", help="src/ of another checkout, measured in turns with this one")
    parser.add_argument("--note", default="", help="a sentence for the page")
    parser.add_argument("--measure", nargs="+", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[:-1], arguments.measure[-1])))
        return
    sources = {"now": str(Path(__file__).parent.parent / "src")}
    if arguments.before:
        sources = {"before": arguments.before, **sources}
    results: dict[str, list[dict[str, Any]]] = {
        f"{given}{again} | {name}": [] for given in FORMATS for again in ("", ", again") for name in sources
    }
    with tempfile.TemporaryDirectory() as folder:
        corpora = write_corpus(Path(folder), arguments.pairs)
        size = sum(file.stat().st_size for file in corpora[FORMATS[0]]) / 1e6
        for number, name in rounds_of(list(sources), arguments.rounds):
            for given, files in corpora.items():
                store = Path(folder, "store")
                shutil.rmtree(store, ignore_errors=True)
                for again in ("", ", again"):
                    row = f"{given}{again} | {name}"
                    results[row].append(run(sources[name], files, store))
                    print(number, row, results[row][-1], file=sys.stderr)
    lines = [
        "# Preparing a corpus",
        "",
        f"`python benchmarks/preparation.py --before OTHER/src` writes this page: {arguments.pairs:,} sentence pairs "
        f"({size:.0f} MB of text), from files to a",
        f'complete token store; medians of {arguments.rounds} alternating rounds. "Again" opens an existing store.',
        f"{describe_machine()} {arguments.note}".rstrip(),
        "",
        "| | | seconds | CPU seconds | peak memory, MB |",
        "|---|---|---|---|---|",
    ]
    for row, rounds in results.items():
        median = {key: statistics.median(each[key] for each in rounds) for key in rounds[0]}
        lines.append(f"| {row} | {median['seconds']:.1f} | {median['processor']:.1f} | {median['megabytes']:.0f} |")
    Path(__file__).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
