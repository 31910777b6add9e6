"""How well a language model predicts a test text."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jumok.data.examples import Rejections
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.passages import read_passages
from jumok.data.reading.unused_options import refuse_unused_options
from jumok.engines.language_model.text import TextLanguageModel
from jumok.metrics.translation import pair_scores, total_score
from jumok.recipes.evaluating.evaluation import Evaluation, OnProgress, in_chunks, only_file, with_layouts


def evaluate(
    model: TextLanguageModel,
    files: Sequence[Path],
    *,
    columns: Columns | str | int | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    on_progress: OnProgress | None = None,
) -> Evaluation:
    """Perplexity per token and per byte, bits per byte, and speed on a text file, or on a column of a table.
    `on_progress` gets the numbers of passages done and of all passages."""
    options = reading_options(columns=columns, count=1, separator=separator, sheet=sheet, encoding=encoding)
    refuse_unused_options(options, files, unnamed="text")
    rejections = Rejections()
    passages = [example.inputs[0] for example in read_passages([only_file(files)], rejections, options=options)]
    started = time.perf_counter()
    total = total_score(pair_scores(in_chunks(passages, model.score, on_progress)))
    seconds = time.perf_counter() - started
    size = sum(len(text.encode()) + 1 for text in passages)  # one byte for each end token
    values: dict[str, Any] = {
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
        f"perplexity   {values['perplexity']:9.3f}  per token, {total.tokens:,} tokens",
        f"             {values['byte_perplexity']:9.3f}  per byte, {size:,} bytes",
        f"bits/byte    {values['bits_per_byte']:9.3f}",
        f"speed        {values['tokens_per_second']:9,.0f}  tokens a second",
    ]
    if rejections.total:
        lines += ["", "left out:", rejections.render()]
    return with_layouts(Evaluation(values, lines), rejections)
