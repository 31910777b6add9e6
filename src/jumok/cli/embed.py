"""jumok embed: a vector for every line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.options import Model, Texts, print_json, say
from jumok.errors import ConfigError


def embed(
    model: Model,
    files: Texts = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="OUT.npy", help="A NumPy array [lines, width]; else JSON lines."),
    ] = None,
) -> None:
    """Turn sentences into vectors.

    The mean of what the encoder of a translator or classifier makes of each sentence, scaled to length 1: the dot
    product of two says how alike they are. Without -o, a line of JSON for each line.
    """
    import numpy as np

    from jumok.cli.reading import chunks_as_they_come, lines_of
    from jumok.cli.writing import explained, require_file
    from jumok.engines.loading import load_encoder

    if out is not None and out.suffix != ".npy":
        raise ConfigError(f"{out}: the name must end in .npy. Without -o, JSON lines are written.")
    require_file(out)
    encode = load_encoder(model)
    found = [encode([])]  # no text, but the right width
    for chunk in chunks_as_they_come(lines_of(files or [])):
        vectors = encode(chunk)
        if out is not None:
            found.append(vectors)
            continue
        for text, vector in zip(chunk, vectors, strict=True):
            print_json({"text": text, "vector": [round(float(value), 6) for value in vector]})
    if out is not None:
        array = np.concatenate(found)
        with explained(out), open(out, "wb") as file:
            np.save(file, array)
        say(f"{len(array):,} vectors of width {array.shape[1]} → {out}")
