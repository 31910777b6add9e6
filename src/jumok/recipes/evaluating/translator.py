"""Translation quality on a parallel test set."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from jumok.data.examples import Rejections
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.pairs import aligned_texts
from jumok.data.reading.unused_options import refuse_unused_for_pairs
from jumok.engines.options import DecodingOptions
from jumok.engines.translator.text import TextTranslator
from jumok.metrics.translation import corpus_scores, exact_match
from jumok.recipes.evaluating.evaluation import Evaluation, OnProgress, in_chunks, with_layouts


def evaluate(
    model: TextTranslator,
    files: Sequence[Path],
    *,
    languages: tuple[str, str] | None = None,
    columns: Columns | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    beam: int = 5,
    tokenize: str | None = None,
    on_outputs: Callable[[Sequence[str]], None] | None = None,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """BLEU, chrF, exact matches and speed on two aligned files, or one file with both sides. `tokenize` is sacreBLEU's;
    by default it is chosen by the script of the references. `on_outputs` is called with the translations,
    `on_progress` with the numbers of texts done and of all texts."""
    options = reading_options(languages=languages, columns=columns, separator=separator, sheet=sheet, encoding=encoding)
    refuse_unused_for_pairs(options, files)
    rejections = Rejections()
    pairs = list(aligned_texts(files, options, rejections))
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    started = time.perf_counter()
    results = in_chunks(sources, partial(model.translate_batch, options=DecodingOptions(beam=beam)), on_progress)
    seconds = time.perf_counter() - started
    outputs = [result.text for result in results]
    if on_outputs is not None:
        on_outputs(outputs)
    scores = corpus_scores(outputs, references, tokenize)
    values: dict[str, Any] = {
        "sentences": len(pairs),
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "exact_match": exact_match(outputs, references),
        "sentences_per_second": len(pairs) / seconds,
        "bleu_signature": scores.bleu_signature,
        "chrf_signature": scores.chrf_signature,
        "cut": sum(not result.finished for result in results),
        "beam": beam,
    }
    return with_layouts(Evaluation(values, _lines(values)), rejections)


def _lines(values: dict[str, Any]) -> list[str]:
    lines = [
        f"BLEU         {values['bleu']:6.2f}  {values['bleu_signature']}",
        f"chrF         {values['chrf']:6.2f}  {values['chrf_signature']}",
        f"exact match  {values['exact_match']:6.1%}  of {values['sentences']:,} sentences",
        f"speed        {values['sentences_per_second']:6.1f}  sentences a second, beam {values['beam']}",
    ]
    if values["cut"]:
        lines.append(f"cut          {values['cut']:6,}  translations reached their length limit")
    return lines
