"""jumok check: find problems in a parallel corpus before hours are spent on it."""

from pathlib import Path
from typing import Any

import click

from jumok.cli.flags import with_flags
from jumok.cli.options import JSON, LANGUAGES, PATH, SOURCE, TARGET, print_json, reading_flags
from jumok.cli.several_values import SeveralValuesCommand, files_with_pairs

FINDINGS = 3  # exit code


@click.command(cls=SeveralValuesCommand, several={"--valid": files_with_pairs}, epilog="Example: jumok check a.en a.ko")
@SOURCE
@TARGET
@click.option(
    "--valid",
    type=PATH,
    multiple=True,
    metavar="FILE...",
    help="Validation data: one file with both sides, or two text files. Pairs that are also in SRC are reported.",
)
@LANGUAGES
@reading_flags("SRC TGT")
@JSON
def command(source: Path, target: Path | None, valid: tuple[Path, ...], as_json: bool, **reading: Any) -> None:
    """Look for problems in a parallel corpus.

    The exit code is 0 if nothing was found, 3 if something was.
    """
    from jumok.data.checking.check import check_pairs
    from jumok.data.reading.options import reading_options

    paths = [source] if target is None else [source, target]
    report = check_pairs(paths, valid or None, options=reading_options(**reading))
    if as_json:
        print_json(report.to_json(), indent=1)
    else:
        print(with_flags(report.render()))
    if not report.clean:
        raise click.exceptions.Exit(FINDINGS)
