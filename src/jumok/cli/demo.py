"""jumok demo: the two-minute tour. It needs no data and leaves everything it made in one directory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.training import ContinueWithChanges

if TYPE_CHECKING:
    from jumok.demo.pairs import DemoCorpus
    from jumok.engines.translator.text import TextTranslator

# Fitted to two minutes: two layers make twice the steps of four, and a corpus that is seen only three times needs no
# dropout.
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
SHOWN = 8  # held-out sentences


def demo(
    what: Annotated[
        str, typer.Argument(metavar="[translator|classifier|lm]", help="What to train.", show_default=False)
    ] = "translator",
    directory: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where everything goes. [demo, demo-classifier or demo-lm]")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="N", help="How long to train. [2.8, or 1 for a classifier or lm]")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget what was trained in DIR and start again.")] = False,
    continue_with_changes: ContinueWithChanges = False,
) -> None:
    """See it work in a few minutes, without data.

    Trains an English→Korean translator on a built-in corpus and shows what it learned. The test sentences contain
    combinations of words that were never seen in training. Or a classifier of reviews, or a language model.
    """
    import jumok.recipes  # noqa: F401 - says at once if something to train with is missing
    from jumok.cli.demo_others import demo_classifier, demo_lm
    from jumok.errors import require_choice
    from jumok.training.settings import Settings

    require_choice("demo", what, ("translator", "classifier", "lm"))
    Settings.from_dict({"stop": {"minutes": minutes}})  # a length that cannot be is refused before anything is made
    if minutes is None:
        minutes = 2.8 if what == "translator" else 1.0
    place = directory or Path("demo" if what == "translator" else f"demo-{what}")
    run_demo = {"translator": _demo_translator, "classifier": demo_classifier, "lm": demo_lm}[what]
    run_demo(place, minutes, {"fresh": fresh, "continue_with_changes": continue_with_changes})


def _demo_translator(directory: Path, minutes: float, again: dict[str, bool]) -> None:
    from jumok.demo.pairs import write_demo_corpus

    corpus = directory / "corpus"
    print(f"1. A corpus from a grammar of our own → {corpus}")
    pairs = write_demo_corpus(corpus)
    print(f"   {len(pairs.train):,} pairs to learn from, {len(pairs.test):,} to test with combinations never learned\n")
    print(f"2. Training for about {minutes:g} minutes → {directory / 'run'}")
    _train(corpus, directory / "run", minutes, again)
    from jumok.engines.loading import load_translator

    translator = load_translator(directory / "run")
    print("\n3. The test")
    _test(translator, pairs)
    print("\n4. What it looks at")
    _draw(translator, directory / "attention.png")
    _say_what_next(directory)


def _train(corpus: Path, run: Path, minutes: float, again: dict[str, bool]) -> None:
    from jumok.cli.demo_others import train_demo

    files = corpus / "train.en", corpus / "train.ko"
    valid = [corpus / "valid.en", corpus / "valid.ko"]
    settings = {**SETTINGS, "stop.minutes": minutes}
    train_demo("train_translator", *files, valid=valid, settings=settings, out=run, **again)


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
    print(f"   {english}\n   Each row is a piece of the translation, each column a piece of the source → {path}")
    for line in legend:
        print(f"   {line}")


def _say_what_next(directory: Path) -> None:
    run = shlex.quote(str(directory / "run"))
    print(f"""
5. Now you
   echo "The cat that drinks milk is small." | jumok translate -m {run}
   jumok info -m {run}
   jumok train translator YOUR.en YOUR.ko -o run      with your own files; jumok check YOUR.en YOUR.ko looks first""")
