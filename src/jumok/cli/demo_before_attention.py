"""jumok demo before-attention: recurrent networks without and with attention beside the Transformer."""

from dataclasses import replace
from typing import Any

from jumok.cli.demo_training import DemoTraining
from jumok.cli.demo_translator import draw_attention
from jumok.demo.pairs import DemoCorpus, write_demo_corpus
from jumok.engines.loading import load
from jumok.engines.translator.text import TextTranslator
from jumok.metrics.translation import exact_match

PRESETS = {
    "rnn": "recurrent, one vector between encoder and decoder",
    "rnn-attention": "recurrent, with attention",
    "tiny": "the Transformer: attention alone",
}
SETTINGS: dict[str, Any] = {
    "model.dropout": 0.0,
    "tokenizer.size": 2000,
    "batch.tokens": 384,
    "optimizer.name": "adam",
    "optimizer.lr": 0.0025,
    "validate.sentences": 100,
}
THE_PAPERS = {"tiny": {"model.rotary": False}}  # rotations came later
LENGTHS = ((1, 6), (7, 9), (10, 100))  # words of a source


def run_demo(demo: DemoTraining) -> None:
    """Train the three on the built-in corpus, for equal times, and compare their translations by sentence length."""
    corpus = demo.directory / "corpus"
    print(f"1. The built-in corpus → {corpus}\n")
    pairs = write_demo_corpus(corpus)
    files, valid = ([corpus / f"{part}.{language}" for language in ("en", "ko")] for part in ("train", "valid"))
    for preset, what in PRESETS.items():
        print(f"{preset}: {what}")
        one = replace(demo, directory=demo.directory / preset, minutes=demo.minutes / len(PRESETS))
        settings = {**SETTINGS, **THE_PAPERS.get(preset, {}), "preset": preset}
        one.train("translator", *files, valid=valid, settings=settings)
        print()
    translators = {
        preset: load(demo.directory / preset / "run", task="translator", device=demo.device) for preset in PRESETS
    }
    print("3. The test: sentences translated exactly right, by the number of their words")
    _compare(translators, pairs)
    print("\n4. Attention of the recurrent network")
    draw_attention(translators["rnn-attention"], demo.directory / "attention.png")
    print("\n5. The story, and what longer trainings show: docs/before_attention.md")


def _compare(translators: dict[str, TextTranslator], pairs: DemoCorpus) -> None:
    print(f"   {'words':10}" + "".join(f"{preset:>15}" for preset in translators))
    for low, high in LENGTHS:
        some = [pair for pair in pairs.test if low <= len(pair[0].split()) <= high]
        if not some:
            continue
        cells = [
            exact_match(translator.translate([pair[0] for pair in some], beam=1), [pair[1] for pair in some])
            for translator in translators.values()
        ]
        label = f"{low}–{high}" if high < 100 else f"{low} and more"
        print(f"   {label:11}" + "".join(f"{cell:>15.1%}" for cell in cells))
