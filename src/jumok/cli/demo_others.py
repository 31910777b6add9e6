"""jumok demo classifier, jumok demo lm: the other tasks, without data."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import say
from jumok.errors import InputError

# Two layers are enough for a small corpus and a minute.
REVIEWS: dict[str, Any] = {"preset": "tiny", "model.encoder_layers": 2, "tokenizer.size": 600}
SENTENCES: dict[str, Any] = {"preset": "tiny", "model.decoder_layers": 2, "tokenizer.size": 2000}
TRICKY = (
    "The soup was wonderful, but the service was awful.",
    "The story was not boring at all.",
    "The room was cold; still, the breakfast was lovely.",
)


def train_demo(task: str, *data: Path, settings: dict[str, Any], **arguments: Any) -> None:
    """Train on built-in data and show the progress; exits if the training is stopped."""
    from jumok.cli.panel import open_display
    from jumok.cli.training import train_with_display

    with open_display("jumok demo") as display:
        code, result = train_with_display(display, task, *data, settings=settings, **arguments)
    if result is None:
        without = " without --fresh" if arguments.get("fresh") else ""
        say(f"Stopped; everything so far is saved. The same command{without} continues.")
        raise click.exceptions.Exit(code)


def demo_classifier(directory: Path, minutes: float, existing: dict[str, bool]) -> None:
    """Train on reviews with negation and contrast. `existing` says what to do with an existing run."""
    from jumok.demo.reviews import demo_reviews
    from jumok.engines.loading import load_classifier

    reviews = demo_reviews()
    train, test = reviews[:-1000], reviews[-1000:]
    data = directory / "reviews.tsv"
    print(f"1. Reviews from a grammar of our own → {data}")
    _write(data, "".join(f"{label}\t{text}\n" for label, text in train))
    print(
        f"   {len(train):,} to train on, {len(test):,} to test on; praise and criticism, with negation and contrast\n"
    )
    print(f"2. Training for about {minutes:g} minutes → {directory / 'run'}")
    settings = {**REVIEWS, "stop.minutes": minutes}
    train_demo("classifier", data, settings=settings, out=directory / "run", **existing)
    classifier = load_classifier(directory / "run")
    found = classifier.classify([text for _, text in test])
    right = sum(each.label == label for each, (label, _) in zip(found, test, strict=True))
    print(f"\n3. The test\n   correct: {right / len(test):.1%} of {len(test):,} reviews")
    for text, each in zip(TRICKY, classifier.classify(list(TRICKY)), strict=True):
        print(f"   {each.label} {each.probability:.0%}  {text}")
    run = shlex.quote(str(directory / "run"))
    print(f"""
4. Now you
   echo "The music was not bad, but the ending was dull." | jumok classify -m {run} --explain 3
   jumok train classifier YOUR.tsv -o run      a label, a tab and a text in each line""")


def demo_lm(directory: Path, minutes: float, existing: dict[str, bool]) -> None:
    """Train on the Korean side of the built-in corpus. `existing` says what to do with an existing run."""
    from jumok.demo.pairs import demo_pairs
    from jumok.engines.loading import load_generator

    data = directory / "sentences.txt"
    print(f"1. Korean sentences from a grammar of our own → {data}")
    _write(data, "".join(f"{korean}\n\n" for _, korean in demo_pairs().train))
    print(f"\n2. Training for about {minutes:g} minutes → {directory / 'run'}")
    settings = {**SENTENCES, "stop.minutes": minutes}
    train_demo("language_model", data, settings=settings, out=directory / "run", **existing)
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
