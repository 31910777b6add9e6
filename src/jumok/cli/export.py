"""jumok export: a model for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jumok.cli.options import Json, Model, print_json
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
        typer.Option(metavar="SRC TGT", help="Pairs to compare on; else the validation pairs of the run."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Export a translator, certified.

    On a probe set the exported model must give the very translations that PyTorch gives (with int8: hardly worse ones),
    or nothing is exported. `jumok translate` uses it from then on, without PyTorch.
    """
    from jumok.cli.reading import aligned_texts
    from jumok.recipes.export import export_ctranslate2, probe_of_run, store_of_run

    require_choice("--to", to, ("ctranslate2",))
    pairs = list(aligned_texts(list(probe))) if probe else probe_of_run(model)
    directory, certificate = export_ctranslate2(
        model, quantization=quantization, probe=pairs, train=store_of_run(model)
    )
    if as_json:
        print_json({"path": str(directory), **certificate})
        return
    print(f"Exported → {directory}")
    ties = f", {certificate['ties']} more differ by a tie" if certificate["ties"] else ""
    print(
        f"Certified: {certificate['equal']} of {certificate['sources']} probes translated token for token alike{ties};"
    )
    print(f"scores within {certificate['largest_score_difference']:.1e} a token.")
    for key, name in (("bleu_exported", quantization), ("bleu_fast", "--fast")):
        if key in certificate:
            print(f"BLEU with {name}: {certificate[key]:.2f}, PyTorch: {certificate['bleu']:.2f}")
