"""A look at the corpus before training: what would waste hours is an error, what may be wrong is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jumok.cli.options import say
from jumok.data.checking.check import check_pairs
from jumok.data.checking.findings import Finding
from jumok.data.reading.languages import Languages
from jumok.data.reading.lines import STANDARD_INPUT
from jumok.errors import InputError

_FATAL = ("unequal-length", "labels")
_TOLD_BY_TRAINING = ("malformed", "empty-side", "too-long")  # it leaves them out and says so, with numbers


def look_before_training(
    paths: Sequence[Path], valid: Sequence[Path] | None, languages: Languages | None = None
) -> None:
    """Raises InputError for a corpus that cannot be meant; warns of whatever else `jumok check` would find.

    What can be read only once, standard input and pipes, is left for the training.
    """
    if any(str(path) == STANDARD_INPUT or path.is_fifo() for path in (*paths, *(valid or ()))):
        return
    for finding in check_pairs(paths, valid, languages=languages if len(paths) == 1 else None).findings:
        if finding.kind in _FATAL:
            raise InputError(f"{' and '.join(map(str, paths))}: {_in_words(finding)} {finding.advice}")
        if finding.kind not in _TOLD_BY_TRAINING:
            say(f"jumok: warning: {_in_words(finding)} `jumok check` tells more.")


def _in_words(finding: Finding) -> str:
    first = finding.examples[0].where if finding.examples else ""
    return f"{finding.what}{f', first at {first}' if first else ''}."
