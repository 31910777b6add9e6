"""Two choices of the model, measured: the fused kernel for attention or plain products, and whose dropout.

python benchmarks/parts.py            # rewrites benchmarks/parts.md
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from machine import describe_machine
from torch import Tensor, nn

from jumok.model.attention import attention_weights
from jumok.model.dropout import Dropout
from jumok.training.memory import keep_freed_memory

TOKENS, ROUNDS = 4096, 9


def in_turns(contenders: dict[str, Callable[[], None]]) -> dict[str, float]:
    """Median milliseconds of each, taking turns."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(ROUNDS + 1):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            if number:  # the first warms up
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) * 1e3 for name, values in times.items()}


def attention(length: int, heads: int, width: int) -> dict[str, float]:
    """Forward and backward of one attention over 4,096 tokens in texts of about this length, padding masked.

    As in the model: queries, keys and values are parts of one projection, and the heads are put together again.
    """
    texts = TOKENS // length
    projected = torch.randn(texts, length, 3 * heads * width, requires_grad=True)
    gradient = torch.randn(texts, length, heads * width)
    real = torch.ones(texts, 1, 1, length, dtype=torch.bool)
    real[::2, ..., -1] = False  # every other text is a token shorter

    def run(attend: Callable[[Tensor, Tensor, Tensor], Tensor]) -> None:
        q, k, v = (part.unflatten(-1, (heads, width)).transpose(1, 2) for part in projected.chunk(3, -1))
        attend(q, k, v).transpose(1, 2).flatten(2).backward(gradient)

    def plain() -> None:
        run(lambda q, k, v: torch.matmul(attention_weights(q, k, real), v))

    def fused() -> None:
        run(lambda q, k, v: nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=real))

    return in_turns({"plain": plain, "fused": fused})


def dropout(width: int) -> dict[str, float]:
    """Forward and backward of one dropout over 4,096 vectors."""
    x = torch.randn(TOKENS, width, requires_grad=True)
    ours, theirs = Dropout(0.3), nn.Dropout(0.3)
    gradient = torch.randn(TOKENS, width)
    return in_turns({"ours": lambda: ours(x).backward(gradient), "theirs": lambda: theirs(x).backward(gradient)})


def main() -> None:
    keep_freed_memory()
    lines = [
        "# Attention and dropout",
        "",
        f"Forward and backward, {TOKENS:,} tokens, median of {ROUNDS} rounds in turns: `python benchmarks/parts.py`.",
        describe_machine(),
        "",
        "| attention, texts of | heads × width | plain products | fused kernel | fused faster by |",
        "|---|---|---|---|---|",
    ]
    for heads, width in ((4, 32), (8, 64)):
        for length in (16, 32, 64, 128, 256, 512):
            times = attention(length, heads, width)
            row = f"| {length} tokens | {heads} × {width} | {times['plain']:.1f} ms | {times['fused']:.1f} ms "
            lines.append(row + f"| {times['plain'] / times['fused']:.2f}× |")
    lines += ["", "| dropout, width | Jumok's | PyTorch's | faster by |", "|---|---|---|---|"]
    for width in (128, 512):
        times = dropout(width)
        row = f"| {width} | {times['ours']:.2f} ms | {times['theirs']:.2f} ms "
        lines.append(row + f"| {times['theirs'] / times['ours']:.1f}× |")
    page = "\n".join(lines) + "\n"
    print(page)
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
