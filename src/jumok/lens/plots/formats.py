"""Formats of pictures, known by the ending of a file's name. Without matplotlib: checked before work is spent."""

from pathlib import Path

from jumok.errors import InputError

FORMATS = (".png", ".svg", ".pdf")


def require_format(path: Path) -> None:
    """Raise InputError unless the name of a picture ends as one of the formats."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: the name of a picture must end in {', '.join(FORMATS[:-1])} or {FORMATS[-1]}.")
