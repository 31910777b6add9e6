"""jumok export: a model for CTranslate2, certified; or a copy of a model for machines without PyTorch."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jumok.cli.options import JSON, LANGUAGES, MODEL, PATH, print_json, reading_flags, say_layouts
from jumok.cli.several_values import SeveralValuesCommand, columns_of_a_task, files_with_pairs
from jumok.errors import counted


@click.command(
    cls=SeveralValuesCommand,
    several={"--probe": files_with_pairs, "--columns": columns_of_a_task},
    epilog="Example: jumok export -m run --quantization int8",
)
@click.argument("out", type=PATH, required=False, metavar="[OUT]", help="With --to bundle: the new directory.")
@MODEL
@click.option(
    "--to",
    "form",
    type=click.Choice(["ctranslate2", "bundle"]),
    default="ctranslate2",
    help="ctranslate2: into the model directory. bundle: a copy of the model directory that runs without PyTorch.",
)
@click.option(
    "--quantization",
    metavar="float32|int8",
    help="int8 is smaller and faster, but slightly less accurate.  [default: float32]",
)
@click.option(
    "--probe",
    type=PATH,
    multiple=True,
    metavar="FILE...",
    help="Examples to compare both models on. Default: the validation examples of the run.",
)
@LANGUAGES
@reading_flags("A B", nargs=1, multiple=True)
@click.option("--note", metavar="TEXT", help="With --to bundle: the note of the copy. Default: that of the model.")
@JSON
def command(
    model: Path,
    out: Path | None,
    form: str,
    quantization: str | None,
    probe: tuple[Path, ...],
    note: str | None,
    as_json: bool,
    **reading: Any,
) -> None:
    """Convert a model for fast inference without PyTorch.

    --to ctranslate2 converts the model and certifies the result: it must reproduce the outputs of PyTorch on a probe
    set (int8: lose hardly any quality), or nothing is exported. From then on, `jumok translate`, `classify` and
    `generate` use it, and need no PyTorch. Every training does this at its end.

    --columns, --languages, --separator, --sheet and --encoding say how the files of --probe are read.

    --to bundle OUT writes a copy of an exported model, without what only PyTorch needs: about half the size.
    """
    given = {name: value for name, value in reading.items() if value not in (None, ())}
    if given and not probe:
        raise click.UsageError(f"--{next(iter(given))} says how files are read. Give it together with --probe.")
    if form == "bundle":
        if out is None or quantization or probe:
            raise click.UsageError(
                "--to bundle takes the name of the new directory, and neither --quantization nor --probe: "
                "give these to --to ctranslate2 first."
            )
        _copy(model, out, note, as_json)
    elif out is not None or note is not None:
        raise click.UsageError("--to ctranslate2 writes into the model directory: give neither OUT nor --note.")
    else:
        _convert(model, quantization or "float32", probe, given, as_json)


def _copy(model: Path, out: Path, note: str | None, as_json: bool) -> None:
    from jumok.engines.copying import copy_for_runtime

    copy_for_runtime(model, out, note=note)
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    if as_json:
        print_json({"path": os.path.abspath(out), "bytes": size})
    else:
        print(f"Copied → {out} ({size / 1e6:,.1f} MB), without what only PyTorch needs.")


def _convert(
    model: Path, quantization: str, probe: tuple[Path, ...], reading: Mapping[str, Any], as_json: bool
) -> None:
    from jumok.data.examples import Rejections
    from jumok.recipes.export import export_ctranslate2, probe_of_run, read_probe, store_of_run

    read = Rejections()
    examples = read_probe(model, probe, rejections=read, **reading) if probe else probe_of_run(model)
    say_layouts(read)
    train = store_of_run(model)
    directory, certificate = export_ctranslate2(model, quantization=quantization, probe=examples, train=train)
    if as_json:
        print_json({"path": str(directory), **certificate})
        return
    print(f"Exported → {directory}")
    for line in describe_certificate(certificate, quantization):
        print(line)


def describe_certificate(certificate: dict[str, Any], quantization: str) -> list[str]:
    """What was compared, and how it came out."""
    ties = f", {certificate['ties']:,} more differ by a tie" if certificate["ties"] else ""
    equal, probes = certificate["equal"], counted(certificate["sources"], "probe")
    lines = [
        f"Certified: equal outputs for {equal:,} of {probes}{ties}; "
        f"scores within {certificate['largest_score_difference']:.1e}."
    ]
    for key, name, other, than in (
        ("bleu_exported", quantization, "bleu", "PyTorch"),
        ("bleu_fast", "--fast", "bleu_beam", "without it"),
    ):
        if key in certificate:
            lines.append(f"BLEU with {name}: {certificate[key]:.2f}, {than}: {certificate[other]:.2f}")
    if certificate.get("shortlist", True) is None:
        lines.append("That loses too much: --fast is not available for this model.")
    if "bits_per_token_exported" in certificate:
        bits, others = certificate["bits_per_token_exported"], certificate["bits_per_token"]
        lines.append(f"Bits per token with {quantization}: {bits:.3f}, PyTorch: {others:.3f}")
    return lines
