"""jumok translate: lines in, as many lines out."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jumok.cli.options import DEFAULT_BEAM, Beam, Engine, Json, Model, OutFile, Texts, say
from jumok.errors import ConfigError

if TYPE_CHECKING:
    from jumok.engines.engine import DecodingOptions, Sampling
    from jumok.engines.translator.text import Result


def translate(
    model: Model,
    files: Texts = None,
    out: OutFile = None,
    beam: Beam = None,
    n_best: Annotated[int, typer.Option(metavar="N", help="So many translations of each line, in columns.")] = 1,
    engine: Engine = "auto",
    fast: Annotated[
        bool, typer.Option("--fast", help="Weigh only likely pieces: quicker, less thorough; neighbours matter.")
    ] = False,
    scores: Annotated[bool, typer.Option("--scores", help="Add a column: the score of each translation.")] = False,
    alignment: Annotated[
        bool, typer.Option("--alignment", help="Add a column: which word comes from which, as 0-0 1-2.")
    ] = False,
    length_penalty: Annotated[
        float, typer.Option(metavar="A", help="Scores are log-probability / length^A: higher means longer.")
    ] = 1.0,
    no_repeat_ngram: Annotated[
        int, typer.Option(metavar="N", help="No N pieces in a row twice in a translation; 0: no such rule.")
    ] = 0,
    prefix: Annotated[str, typer.Option(metavar="TEXT", help="Every translation begins with it.")] = "",
    temperature: Annotated[
        float | None, typer.Option(metavar="T", help="Draw at random: below 1 safer, above 1 bolder.")
    ] = None,
    top_k: Annotated[int | None, typer.Option(metavar="K", help="Draw from the K most probable pieces.")] = None,
    top_p: Annotated[
        float | None, typer.Option(metavar="P", help="Draw from the fewest pieces that have probability P together.")
    ] = None,
    seed: Annotated[int | None, typer.Option(metavar="N", help="What is drawn depends on it and the text.")] = None,
    as_json: Json = False,
) -> None:
    """Translate texts, line by line.

    Lines out are lines in; an empty line gives an empty line. Nothing is cut in silence: what happened to a line is
    said on standard error, and in --json. In columns (--n-best, --scores, --alignment), tabs of a text become spaces.
    """
    from jumok.cli.reading import chunks_as_they_come, lines_of
    from jumok.cli.writing import output_to, require_file
    from jumok.engines.engine import DecodingOptions
    from jumok.engines.loading import load_translator

    sampling = _sampling(temperature, top_k, top_p, seed)
    if sampling is not None and beam is not None:
        raise ConfigError(
            "--beam has no effect with --temperature, --top-k or --top-p: they draw at random instead of searching. "
            "Leave out --beam, or these."
        )
    options = DecodingOptions.of(
        beam=max(DEFAULT_BEAM, n_best) if beam is None else beam,
        n_best=n_best,
        length_penalty=length_penalty,
        no_repeat_ngram=no_repeat_ngram,
        prefix=prefix,
        alignment=alignment,
        sampling=sampling,
    )
    require_file(out)
    translator = load_translator(model, engine, fast=fast)
    if not files and sys.stdin.isatty():
        say("Write a sentence and press Enter. Ctrl-D ends.")
    notes = _Notes()
    try:
        with output_to(out) as output:
            for chunk in chunks_as_they_come(lines_of(files or [])):
                for source, result in zip(chunk, translator.translate_batch(chunk, options), strict=True):
                    notes.look_at(result)
                    line = _json_line(source, result) if as_json else _line(source, result, options, scores)
                    output.write(line + "\n")
                output.flush()
    finally:
        notes.tell()


def _sampling(temperature: float | None, top_k: int | None, top_p: float | None, seed: int | None) -> Sampling | None:
    from jumok.engines.engine import Sampling

    given = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    values: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not values:
        return None
    if values.keys() == {"seed"}:
        raise ConfigError("--seed has no effect without --temperature, --top-k or --top-p. Give one of them, or none.")
    return Sampling(**values)


def _line(source: str, result: Result, options: DecodingOptions, scores: bool) -> str:
    if options.n_best == 1 and not scores and not options.alignment:
        return result.text
    found = [(result.text, result.score), *((other.text, other.score) for other in result.alternatives)]
    columns: list[str] = []
    for place in range(options.n_best):  # always as many columns: where there are fewer translations, empty ones
        text, score = found[place] if place < len(found) else ("", None)
        columns.append(text.replace("\t", " "))
        if scores:
            columns.append("" if score is None else f"{score:.4f}")
    if options.alignment:
        pairs = result.alignment.by_word(source, result.text) if result.alignment else []
        columns.append(" ".join(f"{of_source}-{of_output}" for of_source, of_output in pairs))
    return "\t".join(columns)


def _json_line(source: str, result: Result) -> str:
    import json

    return json.dumps({"source": source, **asdict(result)}, ensure_ascii=False)


class _Notes:
    """Counts what a reader should know about some lines, and says it at the end."""

    _TEXTS = (
        ("split", "too long for one piece, translated in parts"),
        ("loop", "repeated itself or did not end at first; a second attempt was better"),
        ("cut", "cut at the length limit: the translation is not complete"),
    )

    def __init__(self) -> None:
        self._lines = 0
        self._found: dict[str, list[int]] = {kind: [] for kind, _ in self._TEXTS}

    def look_at(self, result: Result) -> None:
        """Notes what is to be said about the next line."""
        self._lines += 1
        for kind, happened in (
            ("split", result.segments > 1),
            ("loop", result.loop_resolved),
            ("cut", not result.finished),
        ):
            if happened:
                self._found[kind].append(self._lines)

    def tell(self) -> None:
        """A line on standard error for everything that happened."""
        for kind, text in self._TEXTS:
            if numbers := self._found[kind]:
                shown = ", ".join(map(str, numbers[:5])) + (", …" if len(numbers) > 5 else "")
                say(f"jumok: {len(numbers):,} of {self._lines:,} lines: {text} (line {shown})")
