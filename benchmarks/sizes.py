"""Bytes of a translator on disk, and the memory and time of small things that the documents name.

    python benchmarks/sizes.py            # a minute; rewrites benchmarks/sizes.md

The weights are drawn at random and the vocabulary is learned from random words: sizes do not depend on what a model
has learned. There is no shortlist, whose size depends on the corpus. The worker is forked from a process that has
loaded the application of docs/production.md, as gunicorn's `--preload` does; each request holds one sentence.
"""

from __future__ import annotations

import io
import json
import os
import random
import re
import statistics
import string
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from machine import describe_machine

if TYPE_CHECKING:
    from jumok.tokenizer import Tokenizer

SIZES, VOCABULARY = ("tiny", "small", "base"), 8000
CHOSEN = {"tiny": {"encoder_layers": 2, "decoder_layers": 2, "d_model": 192, "d_ff": 384}}  # by `jumok train`
REQUESTS, BATCH_TOKENS, BATCHES, TRACED = 50, 1024, 400, "base"
DOCUMENT = Path(__file__).parent.parent / "docs" / "production.md"


def save_model(size: str, tokenizer: Tokenizer, path: Path) -> None:
    """A model directory with random weights."""
    from jumok.bundle import save_bundle
    from jumok.model.config import preset
    from jumok.model.translator import Translator

    model = Translator(preset(size, vocabulary=tokenizer.size, task="translator", **CHOSEN.get(size, {})))
    weights = {name: weight.float().numpy() for name, weight in model.state_dict().items()}
    encoder = ("tokenizer", tokenizer.to_bytes())
    save_bundle(path, config=model.config.to_dict(), weights=weights, encoder=encoder, card={})


def megabytes(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1e6


def sizes(size: str, path: Path) -> str:
    """A row about the directories of a model: with and without what only PyTorch needs, in float32 and in int8."""
    from jumok.bundle import load_bundle
    from jumok.engines.conversion import export
    from jumok.engines.copying import copy_for_runtime

    cells = []
    for quantization in ("float32", "int8"):
        exported = export(load_bundle(path), quantization, lambda _directory: {})
        copy = path.with_name(f"{size}-{quantization}")
        copy_for_runtime(path, copy)
        cells += [megabytes(exported), megabytes(path), megabytes(copy)]
    shares = [f"{cells[2] / cells[1]:.0%}", f"{cells[3] / cells[0]:.0%}"]
    return f"| `{size}` | {' | '.join(f'{cell:.1f} MB' for cell in (*cells[:4], cells[5]))} | {' | '.join(shares)} |"


def worker(model: Path) -> None:
    """In a process of its own, without PyTorch: print the megabytes that a forked worker holds after some requests."""
    os.environ["MODEL"] = str(model)
    space: dict[str, object] = {}
    exec(re.findall(r"```python\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL)[0], space)
    if (child := os.fork()) != 0:
        os.waitpid(child, 0)
        return
    for number in range(REQUESTS):
        body = json.dumps([f"This is sentence number {number}."]).encode()
        space["application"]({"CONTENT_LENGTH": len(body), "wsgi.input": io.BytesIO(body)}, lambda *_: None)  # type: ignore[operator]
    status = Path("/proc/self/smaps_rollup").read_text(encoding="utf-8")
    held = {line.split()[0]: int(line.split()[1]) / 1000 for line in status.splitlines()[1:]}
    print(json.dumps({"rss": held["Rss:"], "own": held["Private_Dirty:"] + held["Private_Clean:"]}))
    assert "torch" not in sys.modules
    sys.stdout.flush()
    os._exit(0)


def batch_milliseconds(directory: Path) -> float:
    """The median time to make a batch from the store of the built-in corpus."""
    from jumok.data.corpus import prepare_corpus
    from jumok.data.epochs import TranslationEpochs
    from jumok.data.kinds import PAIRS
    from jumok.demo.pairs import write_demo_corpus

    write_demo_corpus(directory)
    corpus = prepare_corpus(PAIRS, directory / "store", [directory / "train.en", directory / "train.ko"])
    epochs = TranslationEpochs(corpus, tokens=BATCH_TOKENS, seed=1)
    plan, times = epochs.plan.epoch(0), []
    for number in range(BATCHES):
        indices = plan[number]
        began = time.perf_counter()
        epochs._collate(0, number, indices)
        times.append(time.perf_counter() - began)
    return 1e3 * statistics.median(times)


def traced_megabytes(path: Path) -> float:
    """What a trace keeps for a token of the source and one of the target."""
    from jumok.engines.loading import load
    from jumok.lens import trace

    found = trace(load(path, "torch", task="translator"), "I am a student.", target="저는 학생입니다.")
    sides = {side: len(found.sides[side]) for side in ("encoder", "decoder")}
    kept = {side: sum(array.nbytes for name, array in found.tensors.items() if name.startswith(side)) for side in sides}
    return sum(kept[side] / sides[side] for side in sides) / 1e6


def main() -> None:
    if len(sys.argv) > 1:
        worker(Path(sys.argv[1]))
        return
    import torch

    from jumok.tokenizer import Tokenizer

    torch.manual_seed(0)
    draw = random.Random(0)
    words = ["".join(draw.choices(string.ascii_lowercase, k=draw.randint(3, 9))) for _ in range(20_000)]
    tokenizer = Tokenizer.train([" ".join(draw.choices(words, k=10)) for _ in range(10_000)], VOCABULARY)
    lines = [
        "# Sizes",
        "",
        "`python benchmarks/sizes.py` writes this page; its docstring says what is measured.",
        describe_machine(),
        "",
        f"A translator with {tokenizer.size:,} tokens, on disk; `tiny` has 2 + 2 layers, 192 wide. The copy is "
        "that of `jumok export --to bundle`.",
        "",
        "| | export, float32 | model with it | its copy | export, int8 | its copy | copy / model, float32 "
        "| export, int8 / float32 |",
        "|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        for size in SIZES:
            save_model(size, tokenizer, directory / size)
            lines.append(sizes(size, directory / size))
        command = [sys.executable, __file__, str(directory / "tiny-float32")]
        held = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        batch, traced = batch_milliseconds(directory / "corpus"), traced_megabytes(directory / TRACED)
    lines += [
        "",
        "| | measured |",
        "|---|---|",
        f"| a worker of the service, `tiny`, after {REQUESTS} requests | {held['rss']:.0f} MB, of which "
        f"{held['own']:.0f} MB are not shared with other processes |",
        f"| making a batch of {BATCH_TOKENS:,} tokens from a store, median of {BATCHES} | {batch:.2f} ms |",
        f"| a trace of `{TRACED}`, for each token of the source and each of the target | {traced:.2f} MB in all |",
    ]
    page = "\n".join(lines) + "\n"
    print(page)
    Path(__file__).with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
