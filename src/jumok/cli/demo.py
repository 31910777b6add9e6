"""jumok demo: the two-minute tour. It needs no data and leaves everything it made in one directory."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.options import say

if TYPE_CHECKING:
    from jumok.data.demo import DemoCorpus
    from jumok.engines.text import TextTranslator

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
    directory: Annotated[Path, typer.Option(metavar="DIR", help="Where everything goes.")] = Path("demo"),
    minutes: Annotated[float, typer.Option(metavar="N", help="How long to train.")] = 2.5,
) -> None:
    """See it work in a few minutes, without data.

    Trains an English→Korean translator on a built-in corpus and shows what it learned. The test sentences contain
    combinations of words that were never seen in training.
    """
    import jumok.recipes  # noqa: F401 - says at once if something to train with is missing
    from jumok.data.demo import write_demo_corpus

    corpus = directory / "corpus"
    print(f"1. A corpus from a grammar of our own → {corpus}")
    pairs = write_demo_corpus(corpus)
    print(f"   {len(pairs.train):,} pairs to learn from, {len(pairs.test):,} to test with combinations never learned\n")
    print(f"2. Training for about {minutes:g} minutes → {directory / 'run'}")
    _train(corpus, directory / "run", minutes)
    from jumok.engines.text import load

    translator = load(directory / "run")
    print("\n3. The test")
    _test(translator, pairs)
    print("\n4. What it looks at")
    _draw(translator, directory / "attention.png")
    _say_what_next(directory)


def _train(corpus: Path, run: Path, minutes: float) -> None:
    from jumok.cli.panel import watching
    from jumok.cli.train import train_watched
    from jumok.training.settings import Settings

    settings = Settings.from_dict({}).changed({**SETTINGS, "stop.minutes": minutes})
    with watching("jumok demo") as watcher:
        code, result = train_watched(
            watcher,
            source=corpus / "train.en",
            target=corpus / "train.ko",
            valid=(corpus / "valid.en", corpus / "valid.ko"),
            settings=settings,
            out=run,
        )
    if result is None:
        say("Stopped; everything so far is saved. The same command goes on.")
        raise typer.Exit(code)


def _test(translator: TextTranslator, pairs: DemoCorpus) -> None:
    from jumok.data.demo import FAMOUS
    from jumok.evaluation import corpus_scores, exact_match

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
    from jumok.data.demo import FAMOUS

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
