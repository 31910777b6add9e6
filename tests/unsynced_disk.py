"""What a power failure may leave of a directory: any combination of the changes that were not synced.

Names are secured by syncing their directory, content by syncing its file. Nothing else orders changes: a later one may
be on the disk without an earlier one, a name without its content, and what was removed may come back.
"""

from __future__ import annotations

import itertools
import os
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(eq=False)
class _File:
    kept: bytes = b""  # certainly on the disk


class _Directory:
    def __init__(self, names: dict[str, _File | _Directory] | None = None) -> None:
        self.kept = dict(names or {})  # certainly on the disk
        self.now = dict(names or {})  # as processes see it


@dataclass(eq=False)
class _Written:
    """Bytes written into a file at an offset; None: the file was cut off there."""

    node: _File
    what: str
    offset: int
    data: bytes | None

    def applied(self, content: bytes) -> bytes:
        before = content.ljust(self.offset, b"\0")[: self.offset]
        return before if self.data is None else before + self.data + content[self.offset + len(self.data) :]


@dataclass(eq=False)
class _Named:
    """Names in a directory that were given, or taken away (None)."""

    node: _Directory
    what: str
    names: dict[str, _File | _Directory | None]

    def applied(self, names: dict[str, _File | _Directory]) -> dict[str, _File | _Directory]:
        changed = {name: node for name, node in names.items() if name not in self.names}
        return changed | {name: node for name, node in self.names.items() if node is not None}


@dataclass(frozen=True)
class State:
    """A state in which a power failure may leave the disk."""

    lost: list[str]
    files: dict[Path, bytes | None]  # None: a directory


class Disk:
    """Notes the changes of files below `root`, which must exist."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._top = _import_directory(root)
        self._unsynced: list[_Written | _Named] = []

    def create(self, path: Path, *, directory: bool = False) -> None:
        """A new file or directory, which is empty."""
        parent = self._find(path.parent)
        if isinstance(parent, _Directory):
            node = parent.now[path.name] = _Directory() if directory else _File()
            self._unsynced.append(_Named(parent, f"create {path.name}", {path.name: node}))

    def import_tree(self, path: Path) -> None:
        """Everything below a directory that another program has just written there."""
        for entry in sorted(path.iterdir()):
            if self._find(entry) is None:
                self.create(entry, directory=entry.is_dir())
                if entry.is_file():
                    self.write(entry, 0, entry.read_bytes())
            if entry.is_dir():
                self.import_tree(entry)

    def write(self, path: Path, offset: int, data: bytes) -> None:
        """Bytes written into a file; one without a name is not found and does not matter."""
        node = self._find(path)
        if isinstance(node, _File) and data:
            self._unsynced.append(_Written(node, f"write {path.name} at {offset}", offset, data))

    def truncate(self, path: Path, size: int) -> None:
        """The end of a file is cut off."""
        node = self._find(path)
        assert isinstance(node, _File)
        self._unsynced.append(_Written(node, f"truncate {path.name}", size, None))

    def rename(self, source: Path, target: Path) -> None:
        """A file or directory gets another name in the same directory."""
        assert source.parent == target.parent
        parent = self._find(source.parent)
        if isinstance(parent, _Directory):
            node = parent.now[target.name] = parent.now.pop(source.name)
            names = {source.name: None, target.name: node}
            self._unsynced.append(_Named(parent, f"rename {source.name} to {target.name}", names))

    def remove(self, path: Path) -> None:
        """A file or an empty directory is removed."""
        parent = self._find(path.parent)
        if isinstance(parent, _Directory) and parent.now.pop(path.name, None) is not None:
            self._unsynced.append(_Named(parent, f"remove {path.name}", {path.name: None}))

    def secure(self, path: Path) -> None:
        """A file or a directory is synced."""
        node = self._find(path)
        for change in self._unsynced:
            if change.node is node:
                change.node.kept = change.applied(change.node.kept)  # type: ignore[arg-type]
        self._unsynced = [change for change in self._unsynced if change.node is not node]

    def states(self, most: int, seed: int) -> list[State]:
        """All states that a power failure may leave now; if there are more than `most`, the one in which everything
        unsynced is lost, and others at random."""
        reachable = set(map(id, self._reachable(self._top)))
        changes = [change for change in self._unsynced if id(change.node) in reachable]
        if 2 ** len(changes) <= most:
            combinations: list[Sequence[bool]] = list(itertools.product([False, True], repeat=len(changes)))
        else:
            draw = random.Random(seed)
            combinations = [[False] * len(changes)]
            combinations += [[draw.random() < 0.5 for _ in changes] for _ in range(most - 1)]
        return [self._state(changes, kept) for kept in combinations]

    def become(self, state: State) -> None:
        """Give the directory the contents of this state."""
        for entry in self.root.iterdir():
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        for path, content in state.files.items():
            path.mkdir() if content is None else path.write_bytes(content)

    def _state(self, changes: Sequence[_Written | _Named], kept: Sequence[bool]) -> State:
        values = {}
        lost = []
        for change, survives in zip(changes, kept, strict=True):
            if survives:
                values[change.node] = change.applied(values.get(change.node, change.node.kept))  # type: ignore[arg-type]
            else:
                lost.append(change.what)
        files: dict[Path, bytes | None] = {}

        def collect(directory: _Directory, path: Path) -> None:
            for name, node in values.get(directory, directory.kept).items():  # type: ignore[union-attr]
                if isinstance(node, _Directory):
                    files[path / name] = None
                    collect(node, path / name)
                else:
                    files[path / name] = values.get(node, node.kept)  # type: ignore[assignment]

        collect(self._top, self.root)
        return State(lost, files)

    def _reachable(self, node: _File | _Directory) -> Iterator[_File | _Directory]:
        """Everything below a node that has a name, or may get one back."""
        yield node
        if isinstance(node, _Directory):
            pending = [change.names for change in self._unsynced if change.node is node and isinstance(change, _Named)]
            for names in (node.kept, node.now, *pending):
                for child in names.values():
                    if child is not None:
                        yield from self._reachable(child)

    def _find(self, path: Path) -> _File | _Directory | None:
        """The file or directory of a path; None if it is not below the root or was never noted."""
        if not path.is_relative_to(self.root):
            return None
        node: _File | _Directory | None = self._top
        for name in path.relative_to(self.root).parts:
            node = node.now.get(name) if isinstance(node, _Directory) else None
        return node


def _import_directory(path: Path) -> _Directory:
    names: dict[str, _File | _Directory] = {}
    for entry in os.scandir(path):
        if entry.is_dir(follow_symlinks=False):
            names[entry.name] = _import_directory(Path(entry.path))
        elif entry.is_file(follow_symlinks=False):
            names[entry.name] = _File(Path(entry.path).read_bytes())
    return _Directory(names)
