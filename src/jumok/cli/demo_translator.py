"""jumok demo: an English-Korean translator."""

from pathlib import Path
from typing import Any

from jumok.cli.demo_training import DemoTraining
from jumok.cli.look import open_session, save_explorer
from jumok.demo.pairs import FAMOUS, DemoCorpus, write_demo_corpus
from jumok.engines.loading import load
from jumok.engines.translator.text import TextTranslator
from jumok.lens.plots import draw_weights, save_figure
from jumok.metrics.translation import corpus_scores, exact_match

# For a training of minutes: two layers allow twice the steps of four, and three epochs need no dropout.
SETTINGS: dict[str, Any] = {
    "preset": "tiny",
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.d_model": 128,
    "model.d_ff": 256,
    "model.dropout": 0.0,
    "tokenizer.size": 2000,
    "batch.tokens": 384,
    "optimizer.lr": 0.0025,
    "validate.sentences": 200,
}
SHOWN = 8  # held-out sentences to print


def run_demo(demo: DemoTraining) -> None:
    """Train on the built-in corpus, translate its test sentences, and draw the attention of one translation."""
    corpus = demo.directory / "corpus"
    print(f"1. The built-in corpus → {corpus}")
    pairs = write_demo_corpus(corpus)
    print(
        f"   {len(pairs.train):,} pairs to train on, {len(pairs.test):,} to test on, with new combinations of words\n"
    )
    valid = [corpus / "valid.en", corpus / "valid.ko"]
    demo.train("translator", corpus / "train.en", corpus / "train.ko", valid=valid, settings=SETTINGS)
    translator = load(demo.run, task="translator", device=demo.device)
    print("\n3. The test")
    _test(translator, pairs)
    print("\n4. Attention")
    draw_attention(translator, demo.directory / "attention.png")
    print("\n5. The explorer")
    session, start = open_session(demo.run, FAMOUS[1][0], device=demo.device)
    save_explorer(session, start, demo.directory / "explorer.html", say=lambda text: print(f"   {text}"))
    print(f"""
6. Try it
   jumok look -m {demo.quoted_run}
   echo "The cat that drinks milk is small." | jumok translate -m {demo.quoted_run}
   jumok info -m {demo.quoted_run}
   jumok train translator YOUR.en YOUR.ko -o run      with your own files; first: jumok check YOUR.en YOUR.ko""")


def _test(translator: TextTranslator, pairs: DemoCorpus) -> None:
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


def draw_attention(translator: TextTranslator, path: Path) -> None:
    """Draw what the translation of a well-known sentence attends to."""
    english = FAMOUS[1][0]
    tokenizer = translator.tokenizer
    source, target = tokenizer.encode([english, translator.translate(english)])
    [weights] = translator.engine.align([source], [target])
    end = ["</s>"]
    messages: list[str] = []
    keys, queries = tokenizer.pieces(source) + end, tokenizer.pieces(target) + end
    save_figure(draw_weights(weights, keys, queries, on_message=messages.append), path)
    print(f"   {english}\n   Each row is a token of the translation, each column a token of the source → {path}")
    for message in messages:
        print(f"   {message}")
