"""One training step (forward, backward, update) of Jumok's model and the same sizes from torch.nn.Transformer.

    python benchmarks/training_step.py            # tiny and base; rewrites benchmarks/training_step.md

All are post-norm, as in the paper, and have the same batch of 4,096 source and 4,096 target tokens in sentences of 16
and the same optimizer. The reference has dropout in more places than the paper; its second line leaves these out and is
the fairer comparison. "jumok, same loss" differs from it in the model alone; "jumok" also has the one-pass loss, as
`jumok train` does. The process keeps freed memory for all, which helps the reference too. Contenders take turns,
so that noise disturbs each alike; ratios are taken round by round. Memory is the peak of a process of its own.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from machine import describe_machine, peak_memory
from torch import Tensor, nn

from jumok.model.config import ModelConfig, preset
from jumok.model.positions import sinusoids
from jumok.model.translator import Translator
from jumok.system import keep_freed_memory
from jumok.training.objective import smoothed_cross_entropy

VOCABULARY, SENTENCES, LENGTH = 8_000, 256, 16
REFERENCE = "torch.nn.Transformer"
FEWER_DROPOUTS = "torch.nn.Transformer, dropouts as in the paper"
CONTENDERS = (REFERENCE, FEWER_DROPOUTS, "jumok, same loss", "jumok")


class TorchTransformer(nn.Module):
    """The same sizes from PyTorch's own parts: nn.Transformer between a scaled, tied embedding."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.transformer = nn.Transformer(
            config.d_model,
            config.heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.dropout = nn.Dropout(config.dropout)
        self.scale = math.sqrt(config.d_model)
        self.register_buffer("positions", sinusoids(LENGTH, config.d_model))
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(LENGTH))

    def embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.scale + self.positions)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        states = self.transformer(self.embed(source), self.embed(target), tgt_mask=self.causal, tgt_is_causal=True)
        return nn.functional.linear(states, self.embedding.weight)


def leave_out_extra_dropouts(transformer: nn.Transformer) -> None:
    """PyTorch also drops attention weights and inside the feed-forward: twice as many dropouts as the paper has."""
    for module in transformer.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
        elif isinstance(module, (nn.TransformerEncoderLayer, nn.TransformerDecoderLayer)):
            module.dropout = nn.Identity()


class Training:
    """A model, its optimizer and one fixed batch."""

    def __init__(self, contender: str, config: ModelConfig) -> None:
        torch.manual_seed(0)
        self.one_pass = contender == "jumok"
        self.model: Any = TorchTransformer(config) if contender in (REFERENCE, FEWER_DROPOUTS) else Translator(config)
        if contender == FEWER_DROPOUTS:
            leave_out_extra_dropouts(self.model.transformer)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.source, self.target, self.answer = torch.randint(4, VOCABULARY, (3, SENTENCES, LENGTH))

    def step(self) -> float:
        """Seconds one step took."""
        started = time.perf_counter()
        loss = self.loss()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return time.perf_counter() - started

    def loss(self) -> Tensor:
        answers = self.answer.flatten()
        if self.one_pass:
            states = self.model.states(self.source, self.target).flatten(0, 1)
            return smoothed_cross_entropy(states, self.model.embed.tokens.weight, answers, 0.1) / len(answers)
        logits = self.model(self.source, self.target).flatten(0, 1)
        return nn.functional.cross_entropy(logits, answers, label_smoothing=0.1)


def memory_of(contender: str, size: str) -> float:
    """Megabytes at the peak of a process that makes two steps."""
    command = [sys.executable, __file__, "--memory-of", contender, "--sizes", size]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return float(json.loads(output))


def compare(size: str, rounds: int) -> dict[str, Any]:
    """Seconds of each contender, how many times faster than the reference it was, and its memory."""
    config = preset(size, vocabulary=VOCABULARY, norm="post")
    trainings = {name: Training(name, config) for name in CONTENDERS}
    for training in trainings.values():
        training.step()
    seconds: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for number in range(rounds):
        for name in CONTENDERS if number % 2 else reversed(CONTENDERS):
            seconds[name].append(trainings[name].step())
    return {
        "size": size,
        "seconds": {name: statistics.median(times) for name, times in seconds.items()},
        "ratios": {
            name: sorted(slow / fast for slow, fast in zip(seconds[REFERENCE], times, strict=True))
            for name, times in seconds.items()
        },
        "memory": {name: memory_of(name, size) for name in CONTENDERS},
    }


def table(results: list[dict[str, Any]]) -> str:
    """The results as a Markdown page."""
    lines = [
        "# One training step compared with torch.nn.Transformer",
        "",
        f"{SENTENCES * LENGTH:,} target tokens per batch, {LENGTH} per sentence, vocabulary {VOCABULARY:,}, float32.",
        "`make bench` (`python benchmarks/training_step.py`, whose docstring says what is compared) writes this page.",
        describe_machine(),
        "",
        "| size | | one step | speed-up: median (middle half of the rounds) | peak memory |",
        "|---|---|---|---|---|",
    ]
    for result in results:
        for name in CONTENDERS:
            ratios = result["ratios"][name]
            low, high = ratios[len(ratios) // 4], ratios[-1 - len(ratios) // 4]
            lines.append(
                f"| `{result['size']}` | {name} | {result['seconds'][name] * 1e3:,.0f} ms "
                f"| {statistics.median(ratios):.2f}× ({low:.2f}–{high:.2f}) | {result['memory'][name]:,.0f} MB |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", nargs="+", default=["tiny", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory-of", choices=CONTENDERS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    keep_freed_memory()
    if arguments.memory_of:
        training = Training(arguments.memory_of, preset(arguments.sizes[0], vocabulary=VOCABULARY, norm="post"))
        for _ in range(2):
            training.step()
        print(peak_memory())
        return
    page = table([compare(size, arguments.rounds) for size in arguments.sizes])
    print(page)
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
