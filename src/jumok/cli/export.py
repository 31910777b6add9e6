"""jumok export: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.options import Json, Model, print_json, valid_files
from jumok.errors import require_choice


def export(
    model: Model,
    to: Annotated[str, typer.Option(metavar="ctranslate2", help="The format.")] = "ctranslate2",
    quantization: Annotated[
        str,
        typer.Option(metavar="float32|int8", help="int8 is a quarter of the size, quicker, and a little less exact."),
    ] = "float32",
    probe: Annotated[
        tuple[Path, Path] | None,
        typer.Option(metavar="SRC [TGT]", help="Examples to compare on; else those the run was measured on."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Export a model, certified.

    On a probe set the exported model must give the very answers that PyTorch gives (with int8: hardly worse ones), or
    nothing is exported. `jumok translate`, `generate`, `classify` and others use it from then on, without PyTorch.
    """
    from jumok.recipes.export import export_ctranslate2, probe_of_run, store_of_run

    require_choice("--to", to, ("ctranslate2",))
    examples = _examples(model, valid_files(probe) or []) if probe else probe_of_run(model)
    directory, certificate = export_ctranslate2(
        model, quantization=quantization, probe=examples, train=store_of_run(model)
    )
    if as_json:
        print_json({"path": str(directory), **certificate})
        return
    print(f"Exported → {directory}")
    ties = f", {certificate['ties']} more differ by a tie" if certificate["ties"] else ""
    print(f"Certified: {certificate['equal']} of {certificate['sources']} probes answered alike{ties};")
    print(f"scores within {certificate['largest_score_difference']:.1e}.")
    for key, name, other, than in (
        ("bleu_exported", quantization, "bleu", "PyTorch"),
        ("bleu_fast", "--fast", "bleu_beam", "without it"),
    ):
        if key in certificate:
            print(f"BLEU with {name}: {certificate[key]:.2f}, {than}: {certificate[other]:.2f}")
    if certificate.get("shortlist", True) is None:
        print("That loses too much: there is no --fast for this model.")
    if "bits_per_token_exported" in certificate:
        bits, others = certificate["bits_per_token_exported"], certificate["bits_per_token"]
        print(f"Bits a token with {quantization}: {bits:.3f}, PyTorch: {others:.3f}")


def _examples(model: Path, files: list[Path]) -> list[tuple[str, ...]]:
    """The texts in files such as this model learns from."""
    from jumok.bundle import load_bundle
    from jumok.cli.reading import aligned_texts
    from jumok.data.examples import Rejections
    from jumok.data.reading.labelled import read_labelled
    from jumok.data.reading.passages import read_passages

    bundle = load_bundle(model)
    if bundle.config.get("task") == "language_model":
        return [example.inputs for example in read_passages(files, Rejections())]
    if bundle.config.get("task") == "classifier":
        return [example.inputs for example in read_labelled(files, Rejections(), list(bundle.card.get("classes", {})))]
    return list(aligned_texts(files))
