"""jumok generate: a text goes on."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from jumok.cli.options import Engine, Json, Model, print_json


def generate(
    model: Model,
    prompt: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How the text begins; else what comes from standard input.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(metavar="N", help="At most so many pieces.")] = 200,
    temperature: Annotated[
        float, typer.Option(metavar="T", help="Below 1 safer, above 1 bolder, 0 always the most probable.")
    ] = 0.8,
    top_k: Annotated[int, typer.Option(metavar="K", help="Draw from the K most probable pieces; 0: all.")] = 0,
    top_p: Annotated[
        float, typer.Option(metavar="P", help="Draw from the fewest pieces that have probability P together.")
    ] = 0.95,
    no_repeat_ngram: Annotated[int, typer.Option(metavar="N", help="No N pieces in a row twice; 0: no such rule.")] = 0,
    seed: Annotated[int, typer.Option(metavar="N", help="Another number, another text.")] = 0,
    engine: Engine = "auto",
    as_json: Json = False,
) -> None:
    """Continue a text with a language model.

    The text appears as it is written, the prompt first. It ends where the model ends it, or after --max-tokens.
    """
    from jumok.cli.reading import lines_of
    from jumok.engines.language_model.text import GenerationOptions
    from jumok.engines.loading import load_generator

    options: dict[str, Any] = {
        "max_tokens": max_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "no_repeat_ngram": no_repeat_ngram,
        "seed": seed,
    }
    GenerationOptions(**options)  # refuses what makes no sense before anything is read or printed
    generator = load_generator(model, engine)
    if prompt is None:
        prompt = "" if sys.stdin.isatty() else "\n".join(lines_of([])).rstrip("\n")
    if as_json:
        print_json({"prompt": prompt, "text": generator.generate(prompt, **options)})
        return
    print(prompt, end="", flush=True)
    generator.generate(prompt, heard=lambda part: print(part, end="", flush=True), **options)
    print()
