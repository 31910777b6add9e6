"""jumok embed: a vector for every line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from jumok.cli.options import Model, Texts, print_json, say
from jumok.errors import BundleError, ConfigError


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
    from jumok.engines.classifier import TextClassifier
    from jumok.engines.loading import load
    from jumok.engines.native import TorchEngine
    from jumok.engines.text import TextTranslator
    from jumok.engines.vectors import sentence_vectors

    if out is not None and out.suffix != ".npy":
        raise ConfigError(f"{out}: the name must end in .npy. Without -o, JSON lines are written.")
    require_file(out)
    loaded = load(model, "torch")
    network: Any
    if isinstance(loaded, TextTranslator) and isinstance(loaded.engine, TorchEngine):
        network = loaded.engine.model
    elif isinstance(loaded, TextClassifier):
        network = loaded.model
    else:
        raise BundleError(f"{model}: has no encoder. Sentence vectors need a translator or a classifier.")
    found = []
    for chunk in chunks_as_they_come(lines_of(files or [])):
        vectors = sentence_vectors(network, loaded.tokenizer, chunk)
        if out is not None:
            found.append(vectors)
            continue
        for text, vector in zip(chunk, vectors, strict=True):
            print_json({"text": text, "vector": [round(float(value), 6) for value in vector]})
    if out is not None:
        width = network.config.d_model
        array = np.concatenate(found) if found else np.zeros((0, width), np.float32)
        with explained(out), open(out, "wb") as file:
            np.save(file, array)
        say(f"{len(array):,} vectors of width {width} → {out}")
