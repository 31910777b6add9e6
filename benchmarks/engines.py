"""CTranslate2 against PyTorch, as `--engine` chooses them, for language models and classifiers.

The weights are drawn at random, as are the texts: nothing here depends on what was learned.

python benchmarks/engines.py            # rewrites benchmarks/engines.md
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from machine import describe_machine
from turns import in_turns

from jumok.bundle import load_bundle, save_bundle
from jumok.demo.pairs import demo_pairs
from jumok.engines.conversion import export
from jumok.engines.language_model.text import GenerationOptions
from jumok.engines.loading import load
from jumok.model.classifier import Classifier
from jumok.model.config import preset
from jumok.model.language_model import LanguageModel
from jumok.recipes.ngram_fit import spelling_of
from jumok.tokenizer import Tokenizer

ENGINES = ("torch", "ctranslate2")
ROUNDS, WRITTEN, VOCABULARY = 5, 50, 4000
REVIEWS = {"token": ("IMDB", 5.4, 100), "character": ("NSMC", 2.6, 1000)}  # unit of runs: log-normal length, texts


def save(model: Classifier | LanguageModel, tokenizer: Tokenizer, path: Path) -> Path:
    """A bundle with this model, and its export."""
    card = {"classes": {"negative": 1, "positive": 1}}
    weights = {name: weight.float().numpy() for name, weight in model.state_dict().items()}
    save_bundle(
        path, config=model.config.to_dict(), weights=weights, encoder=("tokenizer", tokenizer.to_bytes()), card=card
    )
    export(load_bundle(path), "float32", lambda _directory: {})
    return path


def language_model(size: str, tokenizer: Tokenizer, path: Path) -> list[str]:
    """Rows about writing one text, and about reading many."""
    save(LanguageModel(preset(size, vocabulary=tokenizer.size, task="language_model")), tokenizer, path)
    engines = {name: load(path, name, task="language_model").engine for name in ENGINES}
    prompt = list(range(300, 310))
    draw = np.random.default_rng(0)
    texts = [draw.integers(300, tokenizer.size, length).tolist() for length in draw.integers(100, 400, 16)]
    rows = []
    for name, options in (
        ("greedy", {"temperature": 0.0}),
        ("temperature 0.8, top-p 0.95", {"temperature": 0.8, "top_p": 0.95}),
    ):

        def write(engine: str, options: dict[str, float] = options) -> None:
            written = engines[engine].generate(prompt, GenerationOptions(max_tokens=WRITTEN, **options))  # type: ignore[arg-type]
            assert len(written) == WRITTEN, "it ended by itself"

        times = in_turns({engine: lambda engine=engine: write(engine) for engine in ENGINES}, ROUNDS)  # type: ignore[misc]
        rows.append(row(f"language model `{size}` generates, {name}", "tokens", WRITTEN, times))
    times = in_turns({name: lambda engine=engine: engine.score(texts) for name, engine in engines.items()}, ROUNDS)  # type: ignore[misc]
    return [*rows, row(f"language model `{size}` scores texts", "tokens", sum(map(len, texts)), times)]


def classifier(unit: str, tokenizer: Tokenizer, path: Path) -> str:
    """A row about classifying texts as long as those of a corpus."""
    corpus, length, count = REVIEWS[unit]
    model = Classifier(
        preset("tiny", vocabulary=tokenizer.size, task="classifier", window=256, ngrams=1 << 21, ngram_unit=unit)
    )
    for part in model.ngrams:
        if part.spelling is not None:
            part.get_buffer("spelling").copy_(spelling_of(tokenizer))
    save(model, tokenizer, path)
    draw = np.random.default_rng(0)
    lengths = np.clip(draw.lognormal(length, 0.6, count).astype(int), 3, 1500)
    texts = [draw.integers(300, tokenizer.size, length).tolist() for length in lengths]
    engines = {name: load(path, name, task="classifier").engine for name in ENGINES}
    times = in_turns({name: lambda engine=engine: engine.scores(texts) for name, engine in engines.items()}, ROUNDS)  # type: ignore[misc]
    return row(f"classifier `tiny`, texts as long as {corpus}'s", "texts", count, times)


def cold(command: list[str], path: Path) -> str:
    """A row about a process that does one small thing."""

    def run(engine: str) -> None:
        arguments = [sys.executable, "-m", "jumok", *command, "-m", str(path), "--engine", engine]
        subprocess.run(arguments, input="The soup was not bad.\n", text=True, check=True, capture_output=True)

    times = in_turns({engine: lambda engine=engine: run(engine) for engine in ENGINES}, ROUNDS)  # type: ignore[misc]
    shown = " | ".join(f"{times[engine]:.2f} s" for engine in ENGINES)
    return f"| `jumok {command[0]}`, whole command | {shown} | {times['torch'] / times['ctranslate2']:.1f}× |"


def row(name: str, what: str, count: int, times: dict[str, float]) -> str:
    shown = " | ".join(f"{count / times[engine]:,.0f} {what}/s" for engine in ENGINES)
    line = f"| {name} | {shown} | {times['torch'] / times['ctranslate2']:.1f}× |"
    print(line, flush=True)
    return line


def main() -> None:
    torch.manual_seed(0)
    threads = len(os.sched_getaffinity(0))
    torch.set_num_threads(threads)
    pairs = demo_pairs().train
    tokenizer = Tokenizer.train([text for pair in pairs for text in pair], VOCABULARY)
    lines = [
        "# CTranslate2 compared with PyTorch",
        "",
        f"`python benchmarks/engines.py` writes this page: medians of {ROUNDS} alternating rounds, {threads} threads.",
        describe_machine(),
        f"Load average at the start: {os.getloadavg()[0]:.1f}. On a busy machine only the ratios are meaningful.",
        "",
        "| | PyTorch | CTranslate2 | speed-up |",
        "|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for size in ("tiny", "small"):
            lines += language_model(size, tokenizer, directory / size)
        lines += [classifier(unit, tokenizer, directory / unit) for unit in REVIEWS]
        lines.append(cold(["generate", "--max-tokens=10"], directory / "tiny"))
        lines.append(cold(["classify"], directory / "token"))
    page = "\n".join(lines) + "\n"
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
