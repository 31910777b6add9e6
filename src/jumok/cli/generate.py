"""jumok generate: continue a text."""

import sys
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import (
    ENGINE,
    INPUT_ENCODING,
    JSON,
    MODEL,
    NO_REPEAT_NGRAM,
    ON_ERROR,
    hardware_options,
    print_json,
)


@click.command(epilog='Example: jumok generate -m run --prompt "Once upon a time"')
@MODEL
@click.option("--prompt", metavar="TEXT", help="The beginning of the text. Default: read from standard input.")
@click.option("--max-tokens", default=200, metavar="N", help="Stop after N tokens.")
@click.option(
    "--temperature", default=0.8, metavar="T", help="Sampling temperature: higher is more varied; 0 is greedy."
)
@click.option("--top-k", default=0, metavar="K", help="Sample from the K most probable tokens; 0: all.")
@click.option(
    "--top-p", default=0.95, metavar="P", help="Sample from the smallest set of tokens with total probability P."
)
@NO_REPEAT_NGRAM
@click.option("--seed", default=0, metavar="N", help="Random seed for sampling.")
@INPUT_ENCODING
@ON_ERROR
@ENGINE
@hardware_options
@JSON
def command(
    model: Path,
    prompt: str | None,
    encoding: str | None,
    on_error: str,
    engine: str,
    hardware: dict[str, Any],
    as_json: bool,
    **options: Any,
) -> None:
    """Continue a text with a language model.

    Prints the prompt and then the text, token by token. It stops where the model ends the text, or after --max-tokens.
    """
    from jumok.cli.models import other_command_named
    from jumok.cli.reading import DamagedLines, lines_of
    from jumok.engines.loading import load
    from jumok.engines.options import GenerationOptions

    GenerationOptions(**options)  # wrong options fail before anything is read or printed
    with other_command_named(model):
        generator = load(model, engine, task="language_model", **hardware)
    if prompt is None:
        damaged = DamagedLines(on_error)
        lines = [] if sys.stdin.isatty() else lines_of([], damaged, encoding)
        prompt = "\n".join(line or "" for line in lines).rstrip("\n")
        damaged.report()
    if as_json:
        print_json({"prompt": prompt, "text": generator.generate(prompt, **options)})
        return
    print(prompt, end="", flush=True)
    generator.generate(prompt, on_text=lambda part: print(part, end="", flush=True), **options)
    print()
