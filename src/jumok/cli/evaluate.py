"""jumok evaluate: how good a model is, on data it did not learn from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.options import DEFAULT_BEAM, Beam, Json, Languages, Model, Source, Target, print_json
from jumok.errors import ConfigError

if TYPE_CHECKING:
    from jumok.engines.classifier.text import TextClassifier
    from jumok.engines.language_model.text import TextGenerator
    from jumok.engines.translator.text import TextTranslator

# Options that have an effect, by task.
_OPTIONS: dict[str, tuple[str, ...]] = {
    "translator": ("--languages", "--beam", "--tokenize", "--output"),
    "classifier": ("--plot",),
    "language model": (),
}


def evaluate(
    model: Model,
    source: Source,
    reference: Target = None,
    languages: Languages = None,
    beam: Beam = None,
    tokenize: Annotated[
        str | None,
        typer.Option(metavar="none|13a|char|…", help="sacreBLEU's tokenisation; else chosen by the script."),
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the translations here.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE.png", help="Draw the confusion of a classifier.")] = None,
    as_json: Json = False,
) -> None:
    """Compare with what is right.

    Of a translator BLEU, chrF, exact matches and speed; scores compare only with scores of the same signature. Of a
    classifier (SRC is a file with labels) accuracy, macro-F1, calibration and what is taken for what. Of a language
    model (SRC is a text) perplexity per token and bits per byte.
    """
    from jumok.cli.reading import aligned_texts
    from jumok.cli.writing import require_file, require_picture
    from jumok.engines.loading import load
    from jumok.metrics.translation import corpus_scores

    if tokenize is not None:
        corpus_scores(["x"], ["x"], tokenize)  # a wrong option is found now, not after an hour
    require_file(output)
    require_picture(plot)
    loaded = load(model)
    task = _task_of(loaded)
    given = {"--languages": languages, "--beam": beam, "--tokenize": tokenize, "--output": output, "--plot": plot}
    _refuse_unused(task, [name for name, value in given.items() if value is not None])
    if task == "translator":
        pairs = list(aligned_texts([source] if reference is None else [source, reference], languages))
        lines, values = _evaluate_translator(loaded, pairs, DEFAULT_BEAM if beam is None else beam, tokenize, output)
    elif reference is not None:
        raise ConfigError(f"{reference}: only a translator is compared with a second file. Give one file.")
    elif task == "classifier":
        lines, values = _evaluate_classifier(loaded, source, plot)
    else:
        lines, values = _evaluate_language_model(loaded, source)
    if as_json:
        print_json(values)
    else:
        print("\n".join(lines))


def _task_of(loaded: object) -> str:
    from jumok.engines.translator.text import TextTranslator

    if isinstance(loaded, TextTranslator):
        return "translator"
    return "classifier" if hasattr(loaded, "classes") else "language model"


def _refuse_unused(task: str, given: list[str]) -> None:
    unused = [name for name in given if name not in _OPTIONS[task]]
    if unused:
        raise ConfigError(f"{unused[0]} has no effect on the evaluation of a {task}. Leave it out.")


def _evaluate_translator(
    translator: TextTranslator, pairs: list[tuple[str, str]], beam: int, tokenize: str | None, output: Path | None
) -> tuple[list[str], dict[str, Any]]:
    from jumok.cli.writing import output_to
    from jumok.engines.engine import DecodingOptions
    from jumok.metrics.translation import corpus_scores, exact_match

    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    started = time.perf_counter()
    results = translator.translate_batch(sources, DecodingOptions(beam=beam))
    seconds = time.perf_counter() - started
    translations = [result.text for result in results]
    if output is not None:
        with output_to(output) as file:
            file.writelines(text.replace("\n", " ") + "\n" for text in translations)  # a line for each pair
    scores = corpus_scores(translations, references, tokenize)
    values = {
        "sentences": len(pairs),
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "exact_match": exact_match(translations, references),
        "sentences_per_second": len(pairs) / seconds,
        "bleu_signature": scores.bleu_signature,
        "chrf_signature": scores.chrf_signature,
        "cut": sum(not result.finished for result in results),
        "beam": beam,
    }
    lines = [
        f"BLEU         {scores.bleu:6.2f}  {scores.bleu_signature}",
        f"chrF         {scores.chrf:6.2f}  {scores.chrf_signature}",
        f"exact match  {values['exact_match']:6.1%}  of {len(pairs):,} sentences",
        f"speed        {values['sentences_per_second']:6.1f}  sentences a second, beam {beam}",
    ]
    if values["cut"]:
        lines.append(f"cut          {values['cut']:6,}  translations reached their length limit")
    return lines, values


def _evaluate_classifier(classifier: TextClassifier, path: Path, plot: Path | None) -> tuple[list[str], dict[str, Any]]:
    import numpy as np

    from jumok.data.examples import Rejections
    from jumok.data.reading.labelled import read_labelled
    from jumok.metrics.classification import classification_scores, confusion, f1_scores

    rejections = Rejections()
    examples = list(read_labelled([path], rejections, classifier.classes))
    for example in examples:
        if example.label not in classifier.classes:
            rejections.add(f'label "{example.label}" is not among those learned', example.where)
    known = [example for example in examples if example.label in classifier.classes]
    if not known:
        raise ConfigError(f"{path}: nothing to evaluate:\n{rejections.render()}")
    answers = np.array([classifier.classes.index(example.label) for example in known])
    started = time.perf_counter()
    scores = classifier.scores([example.inputs[0] for example in known])
    seconds = time.perf_counter() - started
    table = confusion(scores.argmax(1), answers, len(classifier.classes))
    values = {
        "texts": len(known),
        **classification_scores(scores, answers, classifier.temperature),
        "f1": dict(zip(classifier.classes, f1_scores(table).tolist(), strict=True)),
        "confusion": table.tolist(),
        "classes": classifier.classes,
        "texts_per_second": len(known) / seconds,
        "rejected": rejections.to_json(),
    }
    lines = [
        f"accuracy     {values['accuracy']:7.2%}  of {len(known):,} texts",
        f"macro-F1     {values['macro_f1']:7.2%}",
        f"calibration  {values['ece']:7.2%}  expected error; {values['ece_uncalibrated']:.2%} without temperature",
        f"speed        {values['texts_per_second']:7,.0f}  texts a second",
        "",
        *_confusion_lines(classifier.classes, table.tolist()),
    ]
    if rejections.total:
        lines += ["", "left out:", rejections.render()]
    if plot is not None:
        from jumok.cli.picture import draw_confusion
        from jumok.cli.writing import explained

        with explained(plot):
            draw_confusion(table, classifier.classes, plot)
        lines += ["", f"drawn → {plot}"]
    return lines, values


def _confusion_lines(classes: list[str], table: list[list[int]]) -> list[str]:
    """A row for each true class, a column for each answer."""
    width = max(8, *(len(name) for name in classes)) + 2
    head = "true \\ answer".ljust(width + 4) + "".join(name.rjust(width) for name in classes)
    rows = [
        name.ljust(width + 4) + "".join(f"{count:,}".rjust(width) for count in row)
        for name, row in zip(classes, table, strict=True)
    ]
    return [head, *rows]


def _evaluate_language_model(generator: TextGenerator, path: Path) -> tuple[list[str], dict[str, Any]]:
    import math

    from jumok.data.examples import Rejections
    from jumok.data.reading.passages import read_passages
    from jumok.metrics.translation import pair_scores, total_score

    rejections = Rejections()
    passages = [example.inputs[0] for example in read_passages([path], rejections)]
    started = time.perf_counter()
    total = total_score(pair_scores(generator.score(passages)))
    seconds = time.perf_counter() - started
    size = sum(len(text.encode()) + 1 for text in passages)
    values = {
        "passages": len(passages),
        "tokens": total.tokens,
        "bytes": size,
        "perplexity": total.perplexity,
        "byte_perplexity": math.exp(-total.log_prob / size),
        "bits_per_byte": -total.log_prob / math.log(2) / size,
        "tokens_per_second": total.tokens / seconds,
        "rejected": rejections.to_json(),
    }
    lines = [
        f"perplexity   {values['perplexity']:9.3f}  a token, {total.tokens:,} tokens",
        f"             {values['byte_perplexity']:9.3f}  a byte, {size:,} bytes",
        f"bits/byte    {values['bits_per_byte']:9.3f}",
        f"speed        {values['tokens_per_second']:9,.0f}  tokens a second",
    ]
    if rejections.total:
        lines += ["", "left out:", rejections.render()]
    return lines, values
