"""jumok classify: lines in, their classes out."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from jumok.cli.options import Engine, Json, Model, OutFile, Texts

if TYPE_CHECKING:
    from jumok.engines.classifier.text import Classification, TextClassifier


def classify(
    model: Model,
    files: Texts = None,
    out: OutFile = None,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="A column for the probability of every class.")
    ] = False,
    explain: Annotated[
        int,
        typer.Option(
            "--explain", metavar="N", min=0, help="Add a column: the N words that decided most, and which way."
        ),
    ] = 0,
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Tell what each text is.

    A line for each line: the most probable class and its probability. An empty line gets an answer too: what a text of
    which nothing is known most probably is.
    """
    from jumok.cli.reading import chunks_as_they_come, lines_of
    from jumok.cli.writing import output_to
    from jumok.engines.loading import load_classifier

    classifier = load_classifier(model, engine)
    with output_to(out) as output:
        if probabilities and not as_json:
            output.write("\t".join(["class", *classifier.classes]) + "\n")
        for chunk in chunks_as_they_come(lines_of(files or [])):
            for text, found in zip(chunk, classifier.classify(chunk), strict=True):
                words = _deciding_words(classifier, text, explain) if explain else None
                output.write(_line(text, found, words, probabilities=probabilities, as_json=as_json) + "\n")
            output.flush()


def _deciding_words(classifier: TextClassifier, text: str, count: int) -> list[tuple[str, float]]:
    """Words, not pieces: what a word's pieces are worth is added up."""
    [ids] = classifier.tokenizer.encode([text])
    words: list[tuple[list[int], float]] = []
    for token, (piece, worth) in zip(ids, classifier.explain(text), strict=True):
        if piece.startswith("▁") or not words:
            words.append(([token], worth))
        else:
            words[-1] = ([*words[-1][0], token], words[-1][1] + worth)
    texts = classifier.tokenizer.decode([tokens for tokens, _ in words])
    named = [(" ".join(word.split()), worth) for word, (_, worth) in zip(texts, words, strict=True) if word.strip()]
    return sorted(named, key=lambda word: -abs(word[1]))[:count]


def _line(
    text: str, found: Classification, words: list[tuple[str, float]] | None, *, probabilities: bool, as_json: bool
) -> str:
    if as_json:
        values = {"text": text, "label": found.label, "probabilities": found.probabilities}
        return json.dumps(values | ({} if words is None else {"words": words}), ensure_ascii=False)
    shown = (
        [f"{value:.4f}" for value in found.probabilities.values()] if probabilities else [f"{found.probability:.4f}"]
    )
    deciding = [] if words is None else [" ".join(f"{word}({worth:+.2f})" for word, worth in words)]
    return "\t".join([found.label, *shown, *deciding])
