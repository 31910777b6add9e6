"""Bits per byte of `jumok train lm` on held-out text, against gzip, xz and a 5-gram model.

    python benchmarks/language_model.py --data DIRECTORY/imdb/train.tsv.gz --megabytes 10 --minutes 20

From a file of `label<TAB>text` lines, the texts: the last twentieth is held out. gzip and xz compress the held-out text
after the training text, in one stream, and only what the held-out text adds is counted; the 5-gram model counts the
same tokens as ours, with interpolated Kneser-Ney smoothing.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import math
import subprocess
import sys
import tempfile
import zlib
from collections import Counter
from pathlib import Path

from machine import describe_machine
from sections import sections_of

from jumok.data.examples import Rejections
from jumok.data.reading.passages import read_passages
from jumok.tokenizer import BOS, EOS, Tokenizer

PAGE = Path(__file__).with_suffix(".md")
ORDER, DISCOUNT = 5, 0.75


def split(path: Path, megabytes: float) -> tuple[str, str]:
    """Training and held-out text, a blank line between passages."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        texts = [line.rstrip("\n").partition("\t")[2] for line in file]
    size, chosen = 0, []
    for text in texts:
        if size > megabytes * 1e6:
            break
        chosen.append(text)
        size += len(text.encode()) + 2
    edge = len(chosen) * 19 // 20
    return "\n\n".join(chosen[:edge]) + "\n", "\n\n".join(chosen[edge:]) + "\n"


class KneserNey:
    """Interpolated Kneser-Ney: how often a token follows a context, and in how many contexts it stands."""

    def __init__(self, sequences: list[list[int]], vocabulary: int) -> None:
        self.vocabulary = vocabulary
        self.counts: list[Counter[tuple[int, ...]]] = [Counter() for _ in range(ORDER)]
        for tokens in sequences:
            for n in range(1, ORDER + 1):
                self.counts[n - 1].update(zip(*(tokens[i:] for i in range(n)), strict=False))
        for n in range(ORDER - 2, -1, -1):  # lower orders count contexts, not occurrences
            self.counts[n] = Counter(run[1:] for run in self.counts[n + 1])
        self.totals: list[Counter[tuple[int, ...]]] = []
        self.kinds: list[Counter[tuple[int, ...]]] = []
        for counts in self.counts:
            totals, kinds = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
            for run, count in counts.items():
                totals[run[:-1]] += count
                kinds[run[:-1]] += 1
            self.totals.append(totals)
            self.kinds.append(kinds)

    def probability(self, context: tuple[int, ...], token: int) -> float:
        result = 1 / self.vocabulary
        for n in range(1, ORDER + 1):
            before = context[len(context) - n + 1 :] if n > 1 else ()
            if len(before) != n - 1 or not (total := self.totals[n - 1][before]):
                continue
            seen = max(self.counts[n - 1][(*before, token)] - DISCOUNT, 0) / total
            result = seen + DISCOUNT * self.kinds[n - 1][before] / total * result
        return result


def five_gram(tokenizer: Tokenizer, train: list[str], held_out: list[str]) -> float:
    """Bits of the held-out passages."""
    model = KneserNey([[BOS, *ids, EOS] for ids in tokenizer.encode(train)], tokenizer.size)
    bits = 0.0
    for ids in tokenizer.encode(held_out):
        tokens = [BOS, *ids, EOS]
        for place in range(1, len(tokens)):
            bits -= math.log2(model.probability(tuple(tokens[max(0, place - ORDER + 1) : place]), tokens[place]))
    return bits


def compressed_bits(train: bytes, held_out: bytes) -> dict[str, float]:
    """What the held-out text adds to the compressed training text."""
    return {
        "gzip -9": 8.0 * (len(zlib.compress(train + held_out, 9)) - len(zlib.compress(train, 9))),
        "xz -9e": 8.0
        * (
            len(lzma.compress(train + held_out, preset=9 | lzma.PRESET_EXTREME))
            - len(lzma.compress(train, preset=9 | lzma.PRESET_EXTREME))
        ),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--set", action="append", default=[])
    arguments = parser.parse_args()
    train, held_out = split(arguments.data, arguments.megabytes)
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "train.txt").write_text(train, encoding="utf-8")
        (directory / "held-out.txt").write_text(held_out, encoding="utf-8")
        run = directory / "run"
        base = [sys.executable, "-m", "jumok"]
        settings = [f"--set={setting}" for setting in arguments.set]
        command = [*base, "train", "lm", str(directory / "train.txt"), "-o", str(run), "--quiet"]
        subprocess.run([*command, "--minutes", str(arguments.minutes), *settings], check=True)
        evaluate = [*base, "evaluate", "-m", str(run), str(directory / "held-out.txt"), "--json"]
        ours = json.loads(subprocess.run(evaluate, check=True, stdout=subprocess.PIPE, text=True).stdout)
        passages = {
            name: [example.inputs[0] for example in read_passages([directory / f"{name}.txt"], Rejections())]
            for name in ("train", "held-out")
        }
        tokenizer = Tokenizer.from_bytes((run / "model" / "tokenizer.model").read_bytes())
        bits = compressed_bits(train.encode(), held_out.encode())
        size = ours["bytes"]
        bits["5-gram, Kneser-Ney, our tokens"] = five_gram(tokenizer, passages["train"], passages["held-out"])
    rows = {name: value / size for name, value in bits.items()} | {"**Jumok**": ours["bits_per_byte"]}
    table = "\n".join(f"| {name} | {value:.3f} |" for name, value in sorted(rows.items(), key=lambda row: -row[1]))
    text = f"""# Language model

`python benchmarks/language_model.py --data FILE --megabytes {arguments.megabytes:g} --minutes {arguments.minutes:g}`
writes this page: bits per byte of held-out text ({size:,} bytes) after {len(train.encode()):,} bytes of training text
({arguments.data.parent.name}). Jumok's perplexity is {ours["perplexity"]:.1f} per token and
{ours["byte_perplexity"]:.3f} per byte. {describe_machine()}

| | bits/byte |
|---|---|
{table}
"""
    PAGE.write_text(text + sections_of(PAGE), encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
