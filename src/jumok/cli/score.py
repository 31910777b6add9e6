"""jumok score: how probable a translator finds given translations."""

import sys
from itertools import islice
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import (
    JSON,
    LANGUAGES,
    MODEL,
    SOURCE,
    TARGET,
    hardware_options,
    print_json,
    reading_flags,
    say,
    say_layouts,
)
from jumok.errors import counted


@click.command(epilog="Example: jumok score -m run a.en a.ko > scores.tsv")
@SOURCE
@TARGET
@MODEL
@LANGUAGES
@reading_flags("SRC TGT")
@hardware_options
@JSON
def command(
    model: Path, source: Path, target: Path | None, hardware: dict[str, Any], as_json: bool, **reading: Any
) -> None:
    """Compute the probability of given translations.

    Writes a line for each pair: log-probability of the translation, its number of tokens including the end token, and
    its perplexity. The perplexity of the corpus is printed at the end, to standard error.
    """
    from jumok.cli.models import other_command_named
    from jumok.cli.progress import Progress
    from jumok.data.examples import Rejections
    from jumok.data.reading.options import reading_options
    from jumok.data.reading.pairs import aligned_texts
    from jumok.data.reading.unused_options import refuse_unused_for_pairs
    from jumok.engines.batching import growing_chunks
    from jumok.engines.loading import load
    from jumok.metrics.translation import pair_scores, total_score

    files, options = [source] if target is None else [source, target], reading_options(**reading)
    refuse_unused_for_pairs(options, files)
    with other_command_named(model):
        translator = load(model, task="translator", **hardware)
    read = Rejections()
    pairs = aligned_texts(files, options, read)
    found = []
    with Progress(files[:1] if target else (), None) as progress:
        for chunk in growing_chunks(lambda count: list(islice(pairs, count))):
            sources, targets = [pair[0] for pair in chunk], [pair[1] for pair in chunk]
            log_probs = translator.score(sources, targets)
            for row, of_pair in zip(log_probs, pair_scores(log_probs), strict=True):
                found.append(of_pair)
                if as_json:
                    print_json({"log_prob": of_pair.log_prob, "tokens": of_pair.tokens, "token_log_probs": row})
                else:
                    print(f"{of_pair.log_prob:.4f}\t{of_pair.tokens}\t{of_pair.perplexity:.4f}")
            sys.stdout.flush()
            progress.add(len(chunk), len(chunk))
    say_layouts(read)
    total = total_score(found)
    sizes = f"{counted(len(found), 'pair')}, {counted(total.tokens, 'token')}"
    say(f"{sizes}, perplexity {total.perplexity:.4f}")
