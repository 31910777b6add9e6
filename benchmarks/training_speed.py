"""Target tokens a second while training: the real `jumok train translator` against a plain PyTorch loop, and the limit.

    python benchmarks/training_speed.py --data DIRECTORY      # train.lc.norm.tok.{en,de}.gz; rewrites training_speed.md

The plain loop has packed projections, fused attention, nn.Dropout, F.cross_entropy, fused Adam and the very same sorted
batches: what a careful person writes. Both start as processes of their own, in turns. Jumok's figure comes from its
log.jsonl: tokens learned from, divided by seconds spent training, without validation and checkpoints. The limit is the
matrix multiplication this machine does alone, measured before and after every round: of large matrices, in one call. A
small model's matrices are not large; what its own products would take if there were nothing else is measured as well.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from machine import describe_machine, peak_memory
from torch import Tensor, nn

from jumok.data.corpus import prepare_corpus
from jumok.data.epochs import TranslationEpochs
from jumok.data.kinds import PAIRS
from jumok.model.attention import Attend
from jumok.model.config import preset
from jumok.model.dropout import Dropout
from jumok.model.translator import Translator

VOCABULARY, BATCH_TOKENS = 8_000, 4_096
REMARKS = """
Besides these matrix products, a step spends its time, in descending order, on copying heads, the softmax over the
vocabulary, dropout and layer norms. With the matrix shapes of a step, even the products alone do not reach the peak
of one large product, so their speed (last column but one) is the upper limit. Tried without a gain: two processes with
one thread each, PyTorch's fused attention, larger and smaller blocks of the loss.
"""
STEPS = {"tiny": 30, "small": 10, "base": 4}  # measured; a step of base takes ten seconds


class FusedAttention(nn.Module):
    """What PyTorch recommends."""

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def plain_model(size: str, vocabulary: int) -> Translator:
    """The same Transformer with PyTorch's own attention and dropout."""
    model = Translator(preset(size, vocabulary=vocabulary))
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, Attend):
                setattr(module, name, FusedAttention())
            elif isinstance(child, Dropout) and not isinstance(module, Attend):
                setattr(module, name, nn.Dropout(child.rate))
    return model


def run_plain(data: list[Path], size: str, steps: int, store: Path) -> dict[str, float]:
    """The plain loop for some steps."""
    corpus = prepare_corpus(PAIRS, store, data, size=VOCABULARY, seed=1)
    epochs = TranslationEpochs(corpus, tokens=BATCH_TOKENS, seed=1)
    model = plain_model(size, corpus.tokenizer.size).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
    tokens, started = 0, 0.0
    for number, batch in enumerate(epochs.batches(0, range(epochs.size(0)))):
        if number == 2:  # the first two warm up
            tokens, started = 0, time.perf_counter()
        if number == steps + 2:
            break
        logits = model(torch.from_numpy(batch.source), torch.from_numpy(batch.target_in))
        answers = torch.from_numpy(batch.target_out).flatten()
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), answers, ignore_index=0, label_smoothing=0.1)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        tokens += batch.tokens
    seconds = time.perf_counter() - started
    return {"rate": tokens / seconds, "memory": peak_memory()}


def run_jumok(data: list[Path], size: str, steps: int) -> dict[str, float]:
    """The real command for as many steps."""
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "jumok", "train", "translator", *map(str, data), "-o", f"{directory}/run"]
        command += ["--preset", size, "--steps", str(steps + 2), "--set", f"tokenizer.size={VOCABULARY}"]
        command += ["--set", f"batch.tokens={BATCH_TOKENS}", "--set", "log.every=2", "--set", "validate.sentences=1"]
        # The model and the optimizer of the plain loop, not what it would choose for so few steps.
        model = preset(size, vocabulary=VOCABULARY).to_dict()
        fields = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "dropout", "rotary")
        same = {f"model.{name}": model[name] for name in fields}
        same |= {"optimizer.name": "adam", "precision": "float32", "loss.candidates": VOCABULARY}
        command += [f"--set={name}={json.dumps(value)}" for name, value in same.items()]
        memory = watch_memory(command)
        log = [json.loads(line) for line in Path(directory, "run", "log.jsonl").read_text().splitlines()]
    trained = [entry for entry in log if entry["event"] == "train"]
    first, last = trained[0], trained[-1]
    rate = (last["tokens"] - first["tokens"]) / (last["seconds"] - first["seconds"])
    return {"rate": rate, "memory": memory}


def watch_memory(command: list[str]) -> float:
    """Runs a command; the most memory it used, looked at five times a second."""
    memory = 0.0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None:
            with suppress(OSError, StopIteration):  # it may end while it is looked at
                memory = max(memory, peak_memory(process.pid))
            time.sleep(0.2)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return memory


def multiplication_peak() -> float:
    """The best GFLOP/s of a large float32 matrix product."""
    a, b = torch.randn(2, 2048, 2048)
    best = 0.0
    for _ in range(8):
        started = time.perf_counter()
        torch.mm(a, b)
        best = max(best, 2 * 2048**3 / (time.perf_counter() - started) / 1e9)
    return best


def products_alone(size: str) -> float:
    """Target tokens a second if a step were nothing but the products of its projections, forward and back."""
    config = preset(size, vocabulary=VOCABULARY)
    d, ff = config.d_model, config.d_ff
    layer = [(d, 3 * d), (d, d), (d, ff), (ff, d)]  # inputs and outputs of its projections
    crossing = [(d, d), (d, 2 * d), (d, d)]
    shapes = config.encoder_layers * layer + config.decoder_layers * (layer + crossing) + [(d, VOCABULARY)]
    seconds = 0.0
    for (inputs, outputs), count in Counter(shapes).items():
        x, weight, gradient = (
            torch.randn(rows, columns)
            for rows, columns in ((BATCH_TOKENS, inputs), (outputs, inputs), (BATCH_TOKENS, outputs))
        )
        times = []
        for _ in range(5):
            started = time.perf_counter()
            x @ weight.T, gradient @ weight, gradient.T @ x
            times.append(time.perf_counter() - started)
        seconds += count * min(times)
    return BATCH_TOKENS / seconds


def needed_per_token(size: str, vocabulary: int = VOCABULARY) -> float:
    """Multiplications and additions of matrix products for one target token and its source token, forward and back."""
    config = preset(size, vocabulary=vocabulary)
    d, ff = config.d_model, config.d_ff
    encoder = config.encoder_layers * (4 * d * d + 2 * d * ff)
    decoder = config.decoder_layers * (8 * d * d + 2 * d * ff)
    return 6.0 * (encoder + decoder + d * vocabulary)


def compare(data: list[Path], size: str, steps: int, rounds: int) -> dict[str, Any]:
    """Rates of both, round by round."""
    results: dict[str, list[dict[str, float]]] = {"plain": [], "jumok": []}
    peaks, alone = [], []
    with tempfile.TemporaryDirectory() as store:
        arguments = [sys.executable, __file__, "--plain", size, "--steps", str(steps), "--store", store]
        for number in range(rounds):
            alone.append(products_alone(size))
            peaks.append(multiplication_peak())  # the machine is not as fast in one minute as in the next
            for name in ("plain", "jumok") if number % 2 else ("jumok", "plain"):
                if name == "jumok":
                    results[name].append(run_jumok(data, size, steps))
                else:
                    command = [*arguments, "--files", *map(str, data)]
                    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                    results[name].append(json.loads(output))
    ratios = sorted(j["rate"] / p["rate"] for j, p in zip(results["jumok"], results["plain"], strict=True))
    rate = {name: statistics.median(run["rate"] for run in runs) for name, runs in results.items()}
    memory = {name: max(run["memory"] for run in runs) for name, runs in results.items()}
    peaks.append(multiplication_peak())
    around = [(before + after) / 2 for before, after in itertools.pairwise(peaks)]
    needed = needed_per_token(size) / 1e9
    shares = sorted(run["rate"] * needed / peak for run, peak in zip(results["jumok"], around, strict=True))
    own = sorted(run["rate"] / bound for run, bound in zip(results["jumok"], alone, strict=True))
    values = {"size": size, "rate": rate, "ratios": ratios, "memory": memory, "shares": shares, "peaks": around}
    return {**values, "own": own, "alone": statistics.median(alone)}


def page(results: list[dict[str, Any]], rounds: int, steps: dict[str, int]) -> str:
    """The results as a Markdown page."""
    sizes = " ".join(result["size"] for result in results)
    lines = [
        "# Training speed",
        "",
        f"Multi30k en→de, vocabulary {VOCABULARY:,}, batches of {BATCH_TOKENS:,} tokens, float32, {rounds}",
        f"alternating rounds, each with {', '.join(f'{count} steps of `{size}`' for size, count in steps.items())}.",
        f"`python benchmarks/training_speed.py --data DIRECTORY --sizes {sizes} --rounds {rounds}`",
        "writes this page. Matrix products: those of the model's projections and its output layer, not of attention.",
        describe_machine(),
        "",
        "| size | plain PyTorch loop | `jumok train` | speed-up: median (all rounds) "
        "| share of the peak of one large matrix product | share of the speed of its matrix products alone "
        "| memory: plain / `jumok` |",
        "|---|---|---|---|---|---|---|",
    ]
    for result in results:
        rate, memory, ratios, shares = result["rate"], result["memory"], result["ratios"], result["shares"]
        lines.append(
            f"| `{result['size']}` | {rate['plain']:,.0f} tokens/s | {rate['jumok']:,.0f} tokens/s "
            f"| **{statistics.median(ratios):.2f}×** ({', '.join(f'{ratio:.2f}' for ratio in ratios)}) "
            f"| {statistics.median(shares):.0%} ({shares[0]:.0%}–{shares[-1]:.0%}) "
            f"of {statistics.median(result['peaks']):.0f} GFLOP/s "
            f"| {statistics.median(result['own']):.0%} ({result['own'][0]:.0%}–{result['own'][-1]:.0%}) "
            f"of {result['alone']:,.0f} tokens/s "
            f"| {memory['plain']:,.0f} / {memory['jumok']:,.0f} MB |"
        )
    return "\n".join(lines) + "\n" + REMARKS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sizes", nargs="+", choices=tuple(STEPS), default=list(STEPS))
    parser.add_argument("--steps", type=int, help=f"as many for every size; else {STEPS}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--plain", help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--files", type=Path, nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plain:
        print(json.dumps(run_plain(arguments.files, arguments.plain, arguments.steps, arguments.store)))
        return
    if arguments.data is None:
        parser.error("--data is needed: the directory with train.lc.norm.tok.en.gz and train.lc.norm.tok.de.gz")
    data = [arguments.data / f"train.lc.norm.tok.{language}.gz" for language in ("en", "de")]
    steps = {size: arguments.steps or STEPS[size] for size in arguments.sizes}
    results = [compare(data, size, steps[size], arguments.rounds) for size in arguments.sizes]
    text = page(results, arguments.rounds, steps)
    print(text)
    Path(__file__).with_suffix(".md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
