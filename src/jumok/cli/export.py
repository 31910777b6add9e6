"""jumok export: convert a model for fast inference, and certify the result."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.options import JSON, MODEL, PATH, print_json
from jumok.cli.pair_files import PairFilesCommand


@click.command(cls=PairFilesCommand, epilog="Example: jumok export -m run --to ctranslate2 --quantization int8")
@MODEL
@click.option("--to", type=click.Choice(["ctranslate2"]), default="ctranslate2", expose_value=False, help="The format.")
@click.option(
    "--quantization",
    default="float32",
    metavar="float32|int8",
    help="int8 is a quarter of the size and faster, but slightly less accurate.",
)
@click.option(
    "--probe",
    type=PATH,
    multiple=True,
    metavar="FILE...",
    help="Examples to compare both models on. Default: the validation examples of the run.",
)
@JSON
def command(model: Path, quantization: str, probe: tuple[Path, ...], as_json: bool) -> None:
    """Export a model, and certify that it gives the same results.

    The exported model must reproduce the outputs of PyTorch on a probe set (int8: lose hardly any quality), or nothing
    is exported. From then on, `jumok translate`, `classify` and `generate` use it, and need no PyTorch.
    """
    from jumok.recipes.export import export_ctranslate2, probe_of_run, read_probe, store_of_run

    examples = read_probe(model, probe) if probe else probe_of_run(model)
    train = store_of_run(model)
    directory, certificate = export_ctranslate2(model, quantization=quantization, probe=examples, train=train)
    if as_json:
        print_json({"path": str(directory), **certificate})
        return
    print(f"Exported → {directory}")
    _print_certificate(certificate, quantization)


def _print_certificate(certificate: dict[str, Any], quantization: str) -> None:
    ties = f", {certificate['ties']} more differ by a tie" if certificate["ties"] else ""
    print(f"Certified: {certificate['equal']} of {certificate['sources']} probes have equal outputs{ties};")
    print(f"scores within {certificate['largest_score_difference']:.1e}.")
    for key, name, other, than in (
        ("bleu_exported", quantization, "bleu", "PyTorch"),
        ("bleu_fast", "--fast", "bleu_beam", "without it"),
    ):
        if key in certificate:
            print(f"BLEU with {name}: {certificate[key]:.2f}, {than}: {certificate[other]:.2f}")
    if certificate.get("shortlist", True) is None:
        print("That loses too much: --fast is not available for this model.")
    if "bits_per_token_exported" in certificate:
        bits, others = certificate["bits_per_token_exported"], certificate["bits_per_token"]
        print(f"Bits per token with {quantization}: {bits:.3f}, PyTorch: {others:.3f}")
