"""The batches of Jumok's first epoch as text, so that its peers learn from the very same ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jumok.data.corpus import Corpus
from jumok.data.epochs import TranslationEpochs

SEED = 1


def write_batches(corpus: Corpus, directory: Path, tokens: int, warm_up: int, steps: int) -> dict[str, Any]:
    """Writes what benchmarks/peers/run_NAME.py trains with; the part of a job that says so."""
    plan = TranslationEpochs(corpus, tokens=tokens, seed=SEED).plan.epoch(0)
    batches = [plan[number].tolist() for number in range(warm_up + steps + 1)]  # the clock stops where the last begins
    write_subwords(corpus, batches, directory)
    measured = [line for batch in batches[warm_up:-1] for line in batch]
    return {
        "text": str(directory),
        "batches": str(directory / "batches.json"),
        "batch_lines": sum(map(len, batches)),
        "batch_tokens": tokens,
        "target_tokens": int((corpus.train.lengths("target")[measured] + 1).sum()),
        "seed": SEED,
        "warm_up": warm_up,
        "steps": steps,
    }


def write_subwords(corpus: Corpus, batches: list[list[int]], directory: Path) -> None:
    """The examples as lines of subwords, all of them and those of the batches one after the other; the vocabulary in
    the order of its ids; and the lines of each batch."""
    directory.mkdir(parents=True, exist_ok=True)
    tokenizer = corpus.tokenizer
    count = len(corpus.train.lengths("source"))
    for column, side in (("source", "src"), ("target", "tgt")):
        lines = [" ".join(tokenizer.pieces(corpus.train.example(column, place))) for place in range(count)]
        chosen = {
            "train": lines,
            "valid": lines[:10],
            "batches": [lines[place] for batch in batches for place in batch],
        }
        for name, some in chosen.items():
            (directory / f"{name}.{side}").write_text("\n".join(some) + "\n", encoding="utf-8")
    (directory / "batches.json").write_text(json.dumps(batches), encoding="utf-8")
    pieces = tokenizer.pieces(range(tokenizer.size))
    (directory / "vocabulary.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
