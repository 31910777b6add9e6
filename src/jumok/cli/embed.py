"""jumok embed: a vector for every line."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import INPUT_ENCODING, MODEL, ON_ERROR, PATH, QUIET, TEXTS, hardware_options, print_json, say
from jumok.errors import ConfigError, counted


@click.command(epilog="Example: jumok embed -m run sentences.txt -o vectors.npy")
@TEXTS
@MODEL
@hardware_options
@INPUT_ENCODING
@ON_ERROR
@QUIET
@click.option(
    "-o", "--out", type=PATH, metavar="OUT.npy", help="Write a NumPy array [lines, d_model]. Default: JSON lines."
)
def command(
    model: Path,
    files: tuple[Path, ...],
    hardware: dict[str, Any],
    encoding: str | None,
    on_error: str,
    quiet: bool,
    out: Path | None,
) -> None:
    """Compute a sentence vector for each line.

    It is the mean of the encoder's outputs, scaled to length 1: the dot product of two vectors is the cosine
    similarity of their sentences. Needs a translator or a classifier. Without -o, writes a JSON object for each line.
    """
    import numpy as np

    from jumok.cli.progress import Progress
    from jumok.cli.reading import DamagedLines, chunks_as_they_come, lines_of
    from jumok.cli.writing import explained, require_file
    from jumok.engines.loading import load_sentence_encoder

    if out is not None and out.suffix != ".npy":
        raise ConfigError(f"{out}: the name must end in .npy. Without -o, JSON lines are written.")
    require_file(out)
    encode = load_sentence_encoder(model, **hardware).vectors
    found = [encode([])]  # no rows, but the right width
    damaged = DamagedLines(on_error)
    with Progress(files, out, quiet=quiet) as progress:
        for chunk in chunks_as_they_come(lines_of(files, damaged, encoding)):
            vectors = encode([line or "" for line in chunk])  # the vector of a line that was skipped is 0
            if out is not None:
                found.append(vectors)
            for text, vector in zip(chunk, vectors, strict=True) if out is None else ():
                print_json({"text": text, "vector": [round(float(value), 6) for value in vector]})
            progress.add(len(chunk), len(chunk))
    damaged.report()
    if out is not None:
        array = np.concatenate(found)
        with explained(out), open(out, "wb") as file:
            np.save(file, array)
        say(f"{counted(len(array), 'vector')} of width {array.shape[1]} → {out}")
