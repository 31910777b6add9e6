"""Pairs of texts with empty sides kept, for commands that write one line for each pair."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from jumok.data.reading.languages import Languages
from jumok.data.reading.lines import EMPTY, Damage, text_of
from jumok.data.reading.pairs import names_of, read_records
from jumok.errors import InputError


def aligned_texts(paths: Sequence[Path], languages: Languages | None = None) -> Iterator[tuple[str, str]]:
    """Both sides of every pair. Empty sides are kept; a line that is not text is an InputError."""
    names = names_of(paths)
    for number, *sides in read_records(paths, languages):
        texts = ["" if text is EMPTY else text for text in map(text_of, sides)]
        for name, text in zip(names, texts, strict=True):
            if isinstance(text, Damage):
                raise InputError(f"{name}:{number}: {text.reason}. Correct or remove this line on both sides.")
        yield str(texts[0]), str(texts[1])
