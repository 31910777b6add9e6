"""jumok translate: lines in, as many lines out."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from jumok.cli.options import (
    BEAM,
    DEFAULT_BEAM,
    ENGINE,
    INPUT_ENCODING,
    JSON,
    MODEL,
    NO_REPEAT_NGRAM,
    ON_ERROR,
    OUT_FILE,
    QUIET,
    TEXTS,
    hardware_options,
    print_json,
    say,
)
from jumok.errors import ConfigError, counted

if TYPE_CHECKING:
    from jumok.engines.options import DecodingOptions
    from jumok.engines.translator.text import Result

_EXCERPT = 60  # characters shown of a doubtful line


@click.command(epilog='Example: echo "Hello!" | jumok translate -m run')
@TEXTS
@MODEL
@OUT_FILE
@BEAM
@click.option("--n-best", default=1, metavar="N", help="Write the N best translations of each line, in columns.")
@ENGINE
@hardware_options
@click.option("--fast", is_flag=True, help="Faster. Output may differ slightly and depend on other lines of the batch.")
@click.option("--scores", is_flag=True, help="Add a column with the score of each translation.")
@click.option(
    "--alignment", is_flag=True, help="Add a column with the word alignment: source-target pairs, such as 0-0 1-2."
)
@click.option(
    "--length-penalty",
    default=1.0,
    metavar="A",
    help="Rank by log-probability / length^A: a higher A prefers longer translations.",
)
@NO_REPEAT_NGRAM
@click.option(
    "--prefix", default="", show_default=False, metavar="TEXT", help="Begin every translation with this text."
)
@click.option(
    "--split-sentences/--no-split-sentences",
    default=None,
    help="Whether to translate the sentences of a line one by one. Default: as suits the model.",
)
@click.option(
    "--paragraphs", is_flag=True, help="Join the lines of each paragraph first; write one line for each paragraph."
)
@click.option("--warn", is_flag=True, help="Report lines with a doubtful translation on standard error.")
@click.option("--temperature", type=float, metavar="T", help="Sample instead of searching: higher is more varied.")
@click.option("--top-k", type=int, metavar="K", help="Sample from the K most probable tokens.")
@click.option(
    "--top-p", type=float, metavar="P", help="Sample from the smallest set of tokens with total probability P."
)
@click.option("--seed", type=int, metavar="N", help="Random seed for sampling.")
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
    fast: bool,
    scores: bool,
    paragraphs: bool,
    warn: bool,
    encoding: str | None,
    on_error: str,
    quiet: bool,
    as_json: bool,
    **decoding: Any,
) -> None:
    """Translate texts, line by line.

    Writes exactly one line for each input line (with --paragraphs: for each paragraph); an empty line stays empty. A
    line that is too long or cut is reported on standard error, and in --json. In columns (--n-best, --scores,
    --alignment), tabs of a text become spaces.
    """
    from jumok.cli.models import other_command_named
    from jumok.cli.progress import Progress
    from jumok.cli.reading import DamagedLines, chunks_as_they_come, lines_of, results_for
    from jumok.cli.writing import output_to, require_file
    from jumok.engines.loading import load
    from jumok.engines.translator.segments import join_paragraphs
    from jumok.engines.translator.text import Result

    options = _decoding_options(scores=scores or warn or as_json, **decoding)
    require_file(out)
    with other_command_named(model):
        translator = load(model, engine, task="translator", fast=fast, **hardware)
    if not files and sys.stdin.isatty():
        say("Write a sentence and press Enter. Ctrl-D ends.")
    if warn:
        _require_confidence(translator.card, options)
    notes, damaged = _Notes(warn), DamagedLines(on_error)
    lines = lines_of(files, damaged, encoding)
    if paragraphs:
        lines = join_paragraphs(line for line in lines if line is not None)
    try:
        with Progress(() if paragraphs else files, out, quiet=quiet) as progress, output_to(out) as output:
            for chunk in chunks_as_they_come(lines, same_always=fast):
                before = notes.sentences
                for found in results_for(chunk, partial(translator.translate_batch, options=options)):
                    source, result = found or (None, Result(""))
                    notes.add(result)
                    if as_json:
                        print_json({"source": source, **asdict(result)}, file=output)
                    else:
                        print(_line(source or "", result, options, scores), file=output)
                output.flush()
                progress.add(len(chunk), notes.sentences - before)
    finally:
        damaged.report()
        notes.print()


def _decoding_options(*, beam: int | None, n_best: int, **others: Any) -> DecodingOptions:
    from jumok.engines.options import DecodingOptions, Sampling

    names = ("temperature", "top_k", "top_p", "seed")
    given = {name: value for name in names if (value := others.pop(name)) is not None}
    if given.keys() == {"seed"}:
        raise ConfigError("--seed has no effect without --temperature, --top-k or --top-p. Give one of them, or none.")
    sampling = Sampling(**given) if given else None
    if sampling is not None and beam is not None:
        raise ConfigError(
            "--beam has no effect with --temperature, --top-k or --top-p: they sample instead of searching. "
            "Leave out --beam, or these."
        )
    beam = max(DEFAULT_BEAM, n_best) if beam is None else beam
    return DecodingOptions.of(beam=beam, n_best=n_best, sampling=sampling, **others)


def _require_confidence(card: Mapping[str, Any], options: DecodingOptions) -> None:
    """Say why --warn will name no line, where it will not."""
    from jumok.engines.translator.confidence import Confidence

    if options.sampling is not None or options.prefix:
        raise ConfigError(
            "--warn has no effect with sampling or --prefix: their scores are lower than usual. Leave one of them out."
        )
    if Confidence.from_card(card) is None:
        say("jumok: --warn has no effect: the model was trained by an earlier version, which recorded no scores")


def _line(source: str, result: Result, options: DecodingOptions, scores: bool) -> str:
    if options.n_best == 1 and not scores and not options.alignment:
        return result.text
    found = [(result.text, result.score), *((other.text, other.score) for other in result.alternatives)]
    columns: list[str] = []
    for rank in range(options.n_best):  # the same number of columns in every line: missing translations are empty
        text, score = found[rank] if rank < len(found) else ("", None)
        columns.append(text.replace("\t", " "))
        if scores:
            columns.append("" if score is None else f"{score:.4f}")
    if options.alignment:
        pairs = result.alignment.by_word(source, result.text) if result.alignment else []
        columns.append(" ".join(f"{of_source}-{of_output}" for of_source, of_output in pairs))
    return "\t".join(columns)


class _Notes:
    """Counts the lines that need a note, and prints the notes at the end."""

    _TEXTS = (
        ("split", "too long for the model, translated in parts"),
        ("loop", "repeated itself or did not end at first; a second attempt was better"),
        ("cut", "cut at the length limit: the translation is not complete"),
    )

    def __init__(self, warn: bool) -> None:
        self._warn = warn  # of every doubtful line, at once
        self._lines = 0
        self.sentences = 0
        self._found: dict[str, list[int]] = {kind: [] for kind, _ in self._TEXTS}

    def add(self, result: Result) -> None:
        self._lines += 1
        self.sentences += result.segments
        if self._warn and result.low_confidence:
            doubtful = " ".join(part.source for part in result.parts if part.low_confidence)
            excerpt = doubtful if len(doubtful) <= _EXCERPT else doubtful[:_EXCERPT] + "…"
            say(f"jumok: line {self._lines}: low confidence, the translation may be wrong: {excerpt}")
        notes = {"split": result.too_long, "loop": result.loop_resolved, "cut": not result.finished}
        for kind, applies in notes.items():
            if applies:
                self._found[kind].append(self._lines)

    def print(self) -> None:
        """Print a line to standard error for each kind of note."""
        for kind, text in self._TEXTS:
            if numbers := self._found[kind]:
                shown = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
                say(f"jumok: {len(numbers):,} of {counted(self._lines, 'line')}: {text} (line {shown})")
