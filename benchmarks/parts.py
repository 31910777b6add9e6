"""Two choices of the model, measured: the fused kernel for attention or plain products, and whose dropout.

python benchmarks/parts.py            # rewrites benchmarks/parts.md
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import torch
from machine import describe_machine
from torch import nn
from turns import in_turns

from jumok.model.config import preset
from jumok.model.dropout import Dropout
from jumok.model.translator import Translator
from jumok.system import keep_freed_memory

TOKENS, ROUNDS, VOCABULARY = 4096, 9, 8000


def milliseconds(contenders: dict[str, Callable[[], None]]) -> dict[str, float]:
    return {name: 1e3 * seconds for name, seconds in in_turns(contenders, ROUNDS).items()}


def attention(length: int) -> dict[str, float]:
    """Forward and backward of `tiny` but for its loss, over 4,096 tokens in sentences of this length."""
    model = Translator(preset("tiny", vocabulary=VOCABULARY)).train()
    source, target = torch.randint(4, VOCABULARY, (2, TOKENS // length, length))
    source[::2, -1] = 0  # every other source is a token shorter

    def run(short: int) -> None:
        with patch("jumok.model.attention.SHORT", short):
            model.states(source, target).sum().backward()

    return milliseconds({"plain": lambda: run(length), "fused": lambda: run(0)})


def dropout(width: int) -> dict[str, float]:
    """Forward and backward of one dropout over 4,096 vectors."""
    x = torch.randn(TOKENS, width, requires_grad=True)
    ours, theirs = Dropout(0.3), nn.Dropout(0.3)
    gradient = torch.randn(TOKENS, width)
    return milliseconds({"ours": lambda: ours(x).backward(gradient), "theirs": lambda: theirs(x).backward(gradient)})


def main() -> None:
    keep_freed_memory()
    lines = [
        "# Attention and dropout",
        "",
        f"`python benchmarks/parts.py` writes this page: forward and backward pass, {TOKENS:,} tokens,",
        f"medians of {ROUNDS} alternating rounds.",
        describe_machine(),
        "",
        "| `tiny` without its loss, sentences of | plain attention | fused attention | speed of plain to fused |",
        "|---|---|---|---|",
    ]
    for length in (10, 18, 28, 50, 100, 200):  # real lengths are seldom powers of two
        times = attention(length)
        row = f"| {length} tokens | {times['plain']:.0f} ms | {times['fused']:.0f} ms "
        lines.append(row + f"| {times['fused'] / times['plain']:.2f}× |")
    lines += ["", "| dropout, width | Jumok's | PyTorch's | speed-up |", "|---|---|---|---|"]
    for width in (128, 512):
        times = dropout(width)
        row = f"| {width} | {times['ours']:.2f} ms | {times['theirs']:.2f} ms "
        lines.append(row + f"| {times['theirs'] / times['ours']:.1f}× |")
    page = "\n".join(lines) + "\n"
    print(page)
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
