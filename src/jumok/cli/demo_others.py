"""jumok demo classifier, jumok demo lm: the other tasks, without data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import typer

from jumok.cli.options import say
from jumok.errors import InputError

# A small corpus and little time: two layers do.
REVIEWS: dict[str, Any] = {"preset": "tiny", "model.encoder_layers": 2, "tokenizer.size": 600}
SENTENCES: dict[str, Any] = {"preset": "tiny", "model.decoder_layers": 2, "tokenizer.size": 2000}
TRICKY = (
    "The soup was wonderful, but the service was awful.",
    "The story was not boring at all.",
    "The room was cold; still, the breakfast was lovely.",
)


def train_demo(recipe: str, *data: Path, settings: dict[str, Any], **arguments: Any) -> None:
    """Trains on built-in data while somebody watches; leaves the program if they stop it."""
    from jumok.cli.panel import watching
    from jumok.cli.training import train_watched

    with watching("jumok demo") as watcher:
        code, result = train_watched(watcher, recipe, *data, settings=settings, **arguments)
    if result is None:
        without = " without --fresh" if arguments.get("fresh") else ""
        say(f"Stopped; everything so far is saved. The same command{without} goes on.")
        raise typer.Exit(code)


def demo_classifier(directory: Path, minutes: float, again: dict[str, bool]) -> None:
    """Reviews with negation and contrast. `again` says what to do with a training that is there already."""
    from jumok.demo.reviews import demo_reviews
    from jumok.engines.loading import load_classifier

    reviews = demo_reviews()
    train, test = reviews[:-1000], reviews[-1000:]
    data = directory / "reviews.tsv"
    print(f"1. Reviews from a grammar of our own → {data}")
    _write(data, "".join(f"{label}\t{text}\n" for label, text in train))
    print(f"   {len(train):,} to learn from, {len(test):,} to test; each says something good or bad, turns it around\n")
    print(f"2. Training for about {minutes:g} minutes → {directory / 'run'}")
    settings = {**REVIEWS, "stop.minutes": minutes}
    train_demo("train_classifier", data, settings=settings, out=directory / "run", **again)
    classifier = load_classifier(directory / "run")
    found = classifier.classify([text for _, text in test])
    right = sum(each.label == label for each, (label, _) in zip(found, test, strict=True))
    print(f"\n3. The test\n   right: {right / len(test):.1%} of {len(test):,} reviews")
    for text, each in zip(TRICKY, classifier.classify(list(TRICKY)), strict=True):
        print(f"   {each.label} {each.probability:.0%}  {text}")
    run = shlex.quote(str(directory / "run"))
    print(f"""
4. Now you
   echo "The music was not bad, but the ending was dull." | jumok classify -m {run} --explain 3
   jumok train classifier YOUR.tsv -o run      a label, a tab and a text in each line""")


def demo_lm(directory: Path, minutes: float, again: dict[str, bool]) -> None:
    """The Korean side of the built-in corpus. `again` says what to do with a training that is there already."""
    from jumok.demo.pairs import demo_pairs
    from jumok.engines.loading import load_generator

    data = directory / "sentences.txt"
    print(f"1. Korean sentences from a grammar of our own → {data}")
    _write(data, "".join(f"{korean}\n\n" for _, korean in demo_pairs().train))
    print(f"\n2. Training for about {minutes:g} minutes → {directory / 'run'}")
    settings = {**SENTENCES, "stop.minutes": minutes}
    train_demo("train_lm", data, settings=settings, out=directory / "run", **again)
    generator = load_generator(directory / "run")
    print("\n3. What it writes")
    for seed in range(5):
        print(f"   {generator.generate(seed=seed, temperature=0.8, top_p=0.95, max_tokens=60)}")
    run = shlex.quote(str(directory / "run"))
    print(f"""
4. Now you
   jumok generate -m {run} --prompt "나는"
   jumok train lm YOUR.txt -o run""")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written ({error.strerror}). Choose another place with --directory."
        ) from error
