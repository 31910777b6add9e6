"""Pages that a benchmark writes may have sections that were written by hand: they stay."""

from __future__ import annotations

from pathlib import Path


def sections_of(page: Path) -> str:
    """Everything from the first section on, with a line end before it; nothing if there is none."""
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    return text[text.index("\n## ") :] if "\n## " in text else ""
