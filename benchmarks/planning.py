"""Memory and time to plan an epoch of a large corpus: which examples form a batch, in which order.

    python benchmarks/planning.py            # 10 and 50 million pairs; rewrites benchmarks/planning.md

Lengths are synthetic (25 tokens a side on average), written as a store's files of lengths; the ids are not needed to
plan. Each corpus is planned in a process of its own: the number of batches, the first batch of the first section, and
the first batch of the next one. Memory is the peak of the process minus what it had before; pages of mapped files,
which the system can drop at any time, are part of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from machine import describe_machine, peak_memory

from jumok.data.sections import SECTION_EXAMPLES, CorpusPlan
from jumok.data.store import SHARD_EXAMPLES, _Column

TOKENS, LENGTH = 4_096, 25


def write_lengths(directory: Path, pairs: int) -> None:
    """Files of lengths of both columns, a shard at a time."""
    draw = np.random.default_rng(0)
    for number, start in enumerate(range(0, pairs, SHARD_EXAMPLES)):
        source = 3 + draw.poisson(LENGTH - 3, min(SHARD_EXAMPLES, pairs - start)).astype(np.int32)
        source.tofile(directory / f"source.{number}")
        np.maximum(2, source + draw.integers(-4, 5, len(source), np.int32)).tofile(directory / f"target.{number}")


def measure(directory: Path, pairs: int) -> dict[str, float]:
    """In a process of its own: plan the corpus, and say what it took."""
    from jumok.data.store import TokenStore

    before, began = peak_memory(), time.process_time()
    empty = np.empty(0, np.int32)
    shards = [
        {
            name: _Column(empty, np.memmap(directory / f"{name}.{number}", np.int32, "r"))
            for name in ("source", "target")
        }
        for number in range(len(list(directory.glob("source.*"))))
    ]
    store = TokenStore(shards)
    opened = peak_memory() - before
    plan = CorpusPlan(
        lambda some: (store.lengths("source", some) + 1, store.lengths("target", some) + 1),
        len(store),
        tokens=TOKENS,
        seed=1,
    )
    epoch = plan.epoch(0)
    batches, sized = len(epoch), time.process_time() - began
    first, planned = epoch[0], time.process_time() - began
    assert len(first)
    if len(plan.sections) > 1:
        assert len(epoch[max(plan.sizes(0))])  # of another section
    return {
        "pairs": pairs,
        "sections": len(plan.sections),
        "batches": batches,
        "opened": opened,
        "peak": peak_memory() - before,
        "sized": sized,
        "planned": planned - sized if len(plan.sections) > 1 else planned,
    }


def table(results: list[dict[str, Any]]) -> str:
    """The results as a Markdown page."""
    pairs = " ".join(str(result["pairs"]) for result in results)
    lines = [
        "# Planning the epochs of a large corpus",
        "",
        f"Pairs of {LENGTH} tokens a side on average, batches of {TOKENS:,} tokens, sections of {SECTION_EXAMPLES:,} "
        "pairs.",
        f"`python benchmarks/planning.py --pairs {pairs}` writes this page; its docstring says what is measured.",
        describe_machine(),
        "",
        "| pairs | sections | batches | memory after opening | peak while planning | bytes a pair of a section "
        "| CPU time to count all batches | to plan a section |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for result in results:
        each = result["peak"] * 2**20 / min(result["pairs"], SECTION_EXAMPLES)
        lines.append(
            f"| {result['pairs']:,} | {result['sections']} | {result['batches']:,} | {result['opened']:,.0f} MB "
            f"| {result['peak']:,.0f} MB | {each:.0f} | {result['sized']:.1f} s | {result['planned']:.1f} s |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", nargs="+", type=int, default=[10_000_000, 50_000_000])
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.pairs[0])))
        return
    results = []
    for pairs in arguments.pairs:
        with tempfile.TemporaryDirectory() as directory:
            write_lengths(Path(directory), pairs)
            command = [sys.executable, __file__, "--measure", directory, "--pairs", str(pairs)]
            results.append(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    page = table(results)
    print(page)
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
