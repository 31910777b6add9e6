"""What a number format costs in quality: the training of `jumok demo` in each, for the same number of steps.

    python benchmarks/precision.py                    # rewrites precision.md; about seven minutes on two cores

The built-in corpus, the demo's settings and test sentences, one seed, on the device that is there (`--device`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from machine import describe_machine
from sections import sections_of

from jumok.cli.demo_translator import SETTINGS
from jumok.demo.pairs import DemoCorpus, write_demo_corpus
from jumok.engines.loading import load
from jumok.metrics.translation import corpus_scores, exact_match
from jumok.recipes.translator import train_translator
from jumok.training.settings import PRECISIONS

PAGE = Path(__file__).with_suffix(".md")
STEPS = 3000


def row(precision: str, device: str, steps: int, pairs: DemoCorpus, directory: Path) -> str:
    """Trains and tests; a row of the page."""
    out = directory / precision
    files = {part: [directory / f"{part}.{language}" for language in ("en", "ko")] for part in ("train", "valid")}
    settings = {**SETTINGS, "device": device, "precision": precision}
    train_translator(*files["train"], out=out, valid=files["valid"], steps=steps, settings=settings, progress=False)
    log = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    sources, references = [pair[0] for pair in pairs.test], [pair[1] for pair in pairs.test]
    outputs = load(out, task="translator").translate(sources)
    right, bleu = exact_match(outputs, references), corpus_scores(outputs, references).bleu
    speed = log[-1]["tokens"] / log[-1]["seconds"]
    return f"| {precision} | {right:.1%} of {len(outputs):,} | {bleu:.1f} | {speed:,.0f} tokens/s |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precisions", nargs="+", choices=PRECISIONS, default=["float32", "bfloat16"])
    parser.add_argument("--steps", type=int, default=STEPS)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        pairs = write_demo_corpus(Path(temporary))
        for precision in arguments.precisions:
            rows.append(row(precision, arguments.device, arguments.steps, pairs, Path(temporary)))
            print(rows[-1], flush=True)
    PAGE.write_text(
        f"""# Number formats

`python benchmarks/precision.py` writes this page: the translator of `jumok demo`, trained for {arguments.steps:,} steps
in each number format (`--precision`), and tested on sentences it has not seen.
{describe_machine()}

| precision | exactly right | BLEU | training |
|---|---|---|---|
{chr(10).join(rows)}
{sections_of(PAGE)}""",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
