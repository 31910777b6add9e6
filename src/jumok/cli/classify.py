"""jumok classify: a class for each line."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from jumok.cli.options import ENGINE, JSON, MODEL, OUT_FILE, TEXTS, THREADS, print_json

if TYPE_CHECKING:
    from jumok.engines.classifier.text import TextClassifier


@click.command(epilog='Example: echo "What a film!" | jumok classify -m run --explain 3')
@TEXTS
@MODEL
@OUT_FILE
@click.option("--probabilities", is_flag=True, help="Write the probability of every class, one column per class.")
@click.option(
    "--explain",
    type=click.IntRange(min=0),
    default=0,
    metavar="N",
    help="Add a column with the N words of the largest attribution: + for the class, - against it.",
)
@ENGINE
@THREADS
@JSON
def command(
    model: Path,
    files: tuple[Path, ...],
    out: Path | None,
    probabilities: bool,
    explain: int,
    engine: str,
    threads: int | None,
    as_json: bool,
) -> None:
    """Assign a class to each text.

    A text is a line. Writes the most probable class of each and its probability. Empty lines are classified too.
    """
    from jumok.cli.models import other_command_named
    from jumok.cli.reading import chunks_as_they_come, lines_of
    from jumok.cli.writing import output_to
    from jumok.engines.loading import load

    with other_command_named(model):
        classifier = load(model, engine, task="classifier", threads=threads)
    with output_to(out) as output:
        if probabilities and not as_json:
            print("class", *classifier.classes, sep="\t", file=output)
        for chunk in chunks_as_they_come(lines_of(files)):
            for text, found in zip(chunk, classifier.classify(chunk), strict=True):
                words = _word_attributions(classifier, text, explain) if explain else None
                if as_json:
                    values = {"text": text, "label": found.label, "probabilities": found.probabilities}
                    print_json(values if words is None else {**values, "words": words}, file=output)
                    continue
                shown = found.probabilities.values() if probabilities else [found.probability]
                explained = [] if words is None else [" ".join(f"{word}({value:+.2f})" for word, value in words)]
                print(found.label, *(f"{value:.4f}" for value in shown), *explained, sep="\t", file=output)
            output.flush()


def _word_attributions(classifier: TextClassifier, text: str, count: int) -> list[tuple[str, float]]:
    """The `count` words with the largest attributions; a word's attribution is the sum of its tokens'."""
    [ids] = classifier.tokenizer.encode([text])
    words: list[tuple[list[int], float]] = []
    for token, (subword, attribution) in zip(ids, classifier.explain(text), strict=True):
        if subword.startswith("▁") or not words:
            words.append(([token], attribution))
        else:
            words[-1] = ([*words[-1][0], token], words[-1][1] + attribution)
    texts = classifier.tokenizer.decode([tokens for tokens, _ in words])
    named = [(" ".join(word.split()), value) for word, (_, value) in zip(texts, words, strict=True) if word.strip()]
    return sorted(named, key=lambda word: -abs(word[1]))[:count]
