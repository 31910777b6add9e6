"""jumok classify: a class for each line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumok.cli.options import (
    ENGINE,
    INPUT_ENCODING,
    JSON,
    MODEL,
    ON_ERROR,
    OUT_FILE,
    QUIET,
    TEXTS,
    hardware_options,
    print_json,
)

if TYPE_CHECKING:
    from jumok.engines.classifier.text import Classification, TextClassifier


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
@hardware_options
@INPUT_ENCODING
@ON_ERROR
@QUIET
@JSON
def command(
    model: Path,
    files: tuple[Path, ...],
    out: Path | None,
    engine: str,
    hardware: dict[str, Any],
    **options: Any,
) -> None:
    """Assign a class to each text or picture.

    A text is a line. Writes the most probable class of each and its probability. Empty lines are classified too. With a
    classifier of pictures, the files are pictures, or directories of them; path, class and probability are written.
    """
    from jumok.cli.models import other_command_named
    from jumok.engines.loading import load_classifier
    from jumok.tasks import resolve, task_named

    with other_command_named(model):
        classifier = load_classifier(model, engine, **hardware)
    resolve(task_named(classifier.task).classify or "")(classifier, files, out, **options)


def classify_texts(
    classifier: TextClassifier,
    files: Sequence[Path],
    out: Path | None,
    *,
    probabilities: bool,
    explain: int,
    encoding: str | None,
    on_error: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write class and probability of each line."""
    from jumok.cli.progress import Progress
    from jumok.cli.reading import DamagedLines, chunks_as_they_come, lines_of, results_for
    from jumok.cli.writing import output_to

    damaged = DamagedLines(on_error)
    try:
        with Progress(files, out, quiet=quiet) as progress, output_to(out) as output:
            if probabilities and not as_json:
                print("class", *classifier.classes, sep="\t", file=output)
            for chunk in chunks_as_they_come(lines_of(files, damaged, encoding)):
                for found in results_for(chunk, classifier.classify):
                    words = _word_attributions(classifier, found[0], explain) if found and explain else None
                    if as_json:
                        print_json(_values(found, words), file=output)
                    else:
                        print(_line(found, words, probabilities), file=output)
                output.flush()
                progress.add(len(chunk), len(chunk))
    finally:
        damaged.report()


def _values(found: tuple[str, Classification] | None, words: Sequence[tuple[str, float]] | None) -> dict[str, Any]:
    """The values of a text for --json; those of a line that was skipped are null."""
    if found is None:
        return {"text": None, "label": None, "probabilities": None}
    values = {"text": found[0], "label": found[1].label, "probabilities": found[1].probabilities}
    return values if words is None else {**values, "words": words}


def _line(
    found: tuple[str, Classification] | None, words: Sequence[tuple[str, float]] | None, probabilities: bool
) -> str:
    if found is None:
        return ""
    shown = found[1].probabilities.values() if probabilities else [found[1].probability]
    explained = [] if words is None else [" ".join(f"{word}({value:+.2f})" for word, value in words)]
    return "\t".join([found[1].label, *(f"{value:.4f}" for value in shown), *explained])


def _word_attributions(classifier: TextClassifier, text: str, count: int) -> list[tuple[str, float]]:
    """The `count` words with the largest attributions; a word's attribution is the sum of its tokens'."""
    from jumok.engines.opening import needed_for

    [ids] = classifier.tokenizer.encode([text])
    words: list[tuple[list[int], float]] = []
    with needed_for("--explain"):
        explained = classifier.explain(text)
    for token, (subword, attribution) in zip(ids, explained, strict=True):
        if subword.startswith("▁") or not words:
            words.append(([token], attribution))
        else:
            words[-1] = ([*words[-1][0], token], words[-1][1] + attribution)
    texts = classifier.tokenizer.decode([tokens for tokens, _ in words])
    named = [(" ".join(word.split()), value) for word, (_, value) in zip(texts, words, strict=True) if word.strip()]
    return sorted(named, key=lambda word: -abs(word[1]))[:count]
