"""jumok evaluate: how good a model translates."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.options import Beam, Json, Model, Source, Target, print_json


def evaluate(
    model: Model,
    source: Source,
    reference: Target = None,
    beam: Beam = 5,
    tokenize: Annotated[
        str | None,
        typer.Option(metavar="none|13a|char|…", help="sacreBLEU's tokenisation; else chosen by the script."),
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Keep the translations here.")] = None,
    as_json: Json = False,
) -> None:
    """Translate and compare with a reference.

    Prints BLEU, chrF, the share of exact matches and the speed. Scores compare only with scores of the same signature.
    """
    from jumok.cli.reading import aligned_texts
    from jumok.cli.writing import output_to
    from jumok.engines.engine import DecodingOptions
    from jumok.engines.text import load
    from jumok.evaluation import corpus_scores, exact_match

    pairs = list(aligned_texts([source] if reference is None else [source, reference]))
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    corpus_scores(references[:1], references[:1], tokenize)  # a wrong option is found now, not after an hour
    translator = load(model)
    started = time.perf_counter()
    results = translator.translate_batch(sources, DecodingOptions(beam=beam))
    seconds = time.perf_counter() - started
    translations = [result.text for result in results]
    if output is not None:
        with output_to(output) as file:
            file.writelines(text + "\n" for text in translations)
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
    if as_json:
        print_json(values)
        return
    print(f"BLEU         {scores.bleu:6.2f}  {scores.bleu_signature}")
    print(f"chrF         {scores.chrf:6.2f}  {scores.chrf_signature}")
    print(f"exact match  {values['exact_match']:6.1%}  of {len(pairs):,} sentences")
    print(f"speed        {values['sentences_per_second']:6.1f}  sentences a second, beam {beam}")
    if values["cut"]:
        print(f"cut          {values['cut']:6,}  translations reached their length limit")
