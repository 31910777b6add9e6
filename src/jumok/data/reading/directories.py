"""Directories with one directory for each class, and which of their files are meant."""

import os
from collections.abc import Iterator
from pathlib import Path

from jumok.errors import InputError

_LEFT_BY_SYSTEMS = {"thumbs.db", "desktop.ini"}
LEFT_BY_SYSTEM = "left by the operating system"


def files_of_classes(directory: Path) -> Iterator[Path]:
    """All files in a directory and below, and links that lead nowhere or to directories, in no order. A link to a
    directory is followed if it stands for that of a class."""
    for entry in _entries(directory):
        yield from files_and_links(entry.path) if entry.is_dir() else _file_or_link(entry)


def files_and_links(directory: str | Path) -> Iterator[Path]:
    """All files in a directory and below, and links that lead nowhere or to directories, in no order."""
    for entry in _entries(directory):
        yield from files_and_links(entry.path) if entry.is_dir(follow_symlinks=False) else _file_or_link(entry)


def _entries(directory: str | Path) -> list[os.DirEntry[str]]:
    try:
        # Many times faster than Path.rglob, which leaves out what it cannot read.
        with os.scandir(directory) as entries:
            return list(entries)
    except OSError as error:
        raise InputError(f"{directory}: cannot be read ({error.strerror}). Make it readable, or remove it.") from error


def _file_or_link(entry: os.DirEntry[str]) -> list[Path]:
    """The path of an entry that is a file or such a link, and not a pipe or a device."""
    is_lost_link = entry.is_symlink() and (entry.is_dir() or not os.path.exists(entry))
    return [Path(entry)] if entry.is_file() or is_lost_link else []


def is_left_by_system(file: Path) -> bool:
    """Whether a file was made by an operating system and not by a person, as `._a.png` by macOS beside `a.png`."""
    return file.name.startswith(".") or file.name.lower() in _LEFT_BY_SYSTEMS
