"""jumok demo: a tour of a few minutes that needs no data and writes everything to one directory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumok.cli.options import PATH

if TYPE_CHECKING:
    from jumok.demo.pairs import DemoCorpus
    from jumok.engines.translator.text import TextTranslator

# For a training of minutes: two layers allow twice the steps of four, and three epochs need no dropout.
SETTINGS: dict[str, Any] = {
    "preset": "tiny",
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
    "tokenizer.size": 2000,
    "batch.tokens": 384,
    "optimizer.lr": 0.0025,
    "validate.sentences": 200,
}
SHOWN = 8  # held-out sentences to print


@click.command(epilog="Example: jumok demo")
@click.argument(
    "what",
    type=click.Choice(["translator", "classifier", "lm"]),
    default="translator",
    metavar="[translator|classifier|lm]",
    help="What to train.",
)
@click.option(
    "--directory",
    type=PATH,
    metavar="DIR",
    help="Where to write data, run and pictures. [demo, demo-classifier or demo-lm]",
)
@click.option(
    "--minutes", type=float, metavar="N", help="Training time. [2.8 for a translator, 1 for a classifier or lm]"
)
@click.option("--fresh", is_flag=True, help="Delete what was trained in DIR and start again.")
@click.option(
    "--continue-with-changes", is_flag=True, help="Continue the training in DIR although settings have changed."
)
def command(what: str, directory: Path | None, minutes: float | None, fresh: bool, continue_with_changes: bool) -> None:
    """See it work in a few minutes, without data.

    Trains an English-Korean translator on a built-in corpus and shows what it learned. The test sentences contain
    combinations of words that do not occur in the training data. Or trains a classifier of reviews, or a language
    model.
    """
    import jumok.recipes  # noqa: F401 - fails at once if a package for training is missing
    from jumok.cli.demo_others import demo_classifier, demo_lm
    from jumok.training.settings import Settings

    Settings.from_dict({"stop": {"minutes": minutes}})  # a wrong length fails before anything is written
    run_demo, default_directory, default_minutes = {
        "translator": (_demo_translator, "demo", 2.8),
        "classifier": (demo_classifier, "demo-classifier", 1.0),
        "lm": (demo_lm, "demo-lm", 1.0),
    }[what]
    existing = {"fresh": fresh, "continue_with_changes": continue_with_changes}
    run_demo(directory or Path(default_directory), default_minutes if minutes is None else minutes, existing)


def _demo_translator(directory: Path, minutes: float, existing: dict[str, bool]) -> None:
    from jumok.demo.pairs import write_demo_corpus

    corpus = directory / "corpus"
    print(f"1. A corpus from a grammar of our own → {corpus}")
    pairs = write_demo_corpus(corpus)
    print(
        f"   {len(pairs.train):,} pairs to train on, {len(pairs.test):,} to test on, with new combinations of words\n"
    )
    print(f"2. Training for about {minutes:g} minutes → {directory / 'run'}")
    _train(corpus, directory / "run", minutes, existing)
    from jumok.engines.loading import load_translator

    translator = load_translator(directory / "run")
    print("\n3. The test")
    _test(translator, pairs)
    print("\n4. Attention")
    _draw(translator, directory / "attention.png")
    _print_next_steps(directory)


def _train(corpus: Path, run: Path, minutes: float, existing: dict[str, bool]) -> None:
    from jumok.cli.demo_others import train_demo

    files = corpus / "train.en", corpus / "train.ko"
    valid = [corpus / "valid.en", corpus / "valid.ko"]
    settings = {**SETTINGS, "stop.minutes": minutes}
    train_demo("translator", *files, valid=valid, settings=settings, out=run, **existing)


def _test(translator: TextTranslator, pairs: DemoCorpus) -> None:
    from jumok.demo.pairs import FAMOUS
    from jumok.metrics.translation import corpus_scores, exact_match

    sources, references = [pair[0] for pair in pairs.test], [pair[1] for pair in pairs.test]
    outputs = translator.translate(sources)
    print(
        f"   exactly right: {exact_match(outputs, references):.1%} of {len(outputs):,} sentences, "
        f"BLEU {corpus_scores(outputs, references).bleu:.1f}\n"
    )
    step = max(1, (len(outputs) - len(FAMOUS)) // SHOWN)
    shown = [*range(len(FAMOUS)), *range(len(FAMOUS), len(outputs), step)[:SHOWN]]
    for number in shown:
        right = outputs[number] == references[number]
        print(f"   {'✓' if right else '✗'} {sources[number]}\n     {outputs[number]}")
        if not right:
            print(f"     reference: {references[number]}")


def _draw(translator: TextTranslator, path: Path) -> None:
    from jumok.cli.picture import draw_attention
    from jumok.demo.pairs import FAMOUS

    english = FAMOUS[1][0]
    tokenizer = translator.tokenizer
    source, target = tokenizer.encode([english, translator.translate(english)])
    [weights] = translator.engine.align([source], [target])
    end = ["</s>"]
    legend = draw_attention(weights, tokenizer.pieces(source) + end, tokenizer.pieces(target) + end, path)
    print(f"   {english}\n   Each row is a token of the translation, each column a token of the source → {path}")
    for line in legend:
        print(f"   {line}")


def _print_next_steps(directory: Path) -> None:
    run = shlex.quote(str(directory / "run"))
    print(f"""
5. Now you
   echo "The cat that drinks milk is small." | jumok translate -m {run}
   jumok info -m {run}
   jumok train translator YOUR.en YOUR.ko -o run      with your own files; first: jumok check YOUR.en YOUR.ko""")
