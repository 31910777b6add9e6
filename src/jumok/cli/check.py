"""jumok check: what is wrong with a corpus, before hours are spent on it."""

from __future__ import annotations

import typer

from jumok.cli.options import Json, Languages, Source, Target, Valid, print_json, valid_files

FINDINGS = 3


def check(
    source: Source, target: Target = None, valid: Valid = None, languages: Languages = None, as_json: Json = False
) -> None:
    """Look for what is wrong with a corpus.

    Exits with 0 if nothing is, with 3 if something was found.
    """
    from jumok.data.checking.check import check_pairs

    paths = [source] if target is None else [source, target]
    report = check_pairs(paths, valid_files(valid), languages=languages)
    if as_json:
        print_json(report.to_json(), indent=1)
    else:
        print(report.render())
    if not report.clean:
        raise typer.Exit(FINDINGS)
