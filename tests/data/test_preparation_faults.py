"""Preparing a corpus on a disk that fails, in a process that crashes, with and without the power: the next run makes
the same store, and nothing else is left."""

from __future__ import annotations

import errno
import io
import os
import shutil
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from faulty_files import FaultyFiles, crashes, faulty_everywhere
from jumok.data.corpus import prepare_corpus
from jumok.data.kinds import PAIRS
from jumok.errors import JumokError
from jumok.tokenizer import Tokenizer

TOKENIZER = Tokenizer.train([f"the number {n} has a name" for n in range(30)], 300)  # learned once: that writes no file


def table(kind: str, count: int) -> bytes:
    rows = [f"the {kind} {n}\tname {n} of the {kind}\n" for n in range(count)]
    return "".join([*rows, "an empty side\t\n", "\tanother\n"]).encode()


CONTENTS = {"old": table("number", 20), "new": table("name", 30)}


def prepare(root: Path, which: str, fs: FaultyFiles | None = None) -> None:
    """Prepare a corpus in `root`/store, from standard input, which is copied there first."""
    with pytest.MonkeyPatch.context() as patch, faulty_everywhere(fs or FaultyFiles()):
        patch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(CONTENTS[which])))
        prepare_corpus(PAIRS, root / "store", ["-"], encoder=TOKENIZER)


def contents(directory: Path) -> dict[str, bytes]:
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


@pytest.fixture
def complete(tmp_path: Path) -> dict[str, dict[str, bytes]]:
    """What a preparation leaves that nothing has disturbed."""
    for which in CONTENTS:
        (tmp_path / "root").mkdir()
        prepare(tmp_path / "root", which)
        (tmp_path / "root").rename(tmp_path / which)  # made under the name that is compared: a store names its files
    found = {which: contents(tmp_path / which) for which in CONTENTS}
    assert found["new"]["store/rejected.tsv"].count(b"\n") == 2
    return found


def start_with_the_old(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "root", ignore_errors=True)
    shutil.copytree(tmp_path / "old", tmp_path / "root")


def test_after_a_crash_anywhere_in_the_preparation_the_next_makes_the_same_store(
    tmp_path: Path, complete: dict[str, dict[str, bytes]]
) -> None:
    """Of the new corpus, and of the old one, if the user goes back to it."""
    root = tmp_path / "root"
    for crashed in crashes(
        lambda fs: prepare(root, "new", fs),
        root=root,
        prepare=lambda: start_with_the_old(tmp_path),
        one_in_turn=True,
    ):
        which = ("new", "old")[crashed.moment // 2 % 2]
        prepare(root, which)
        assert contents(root) == complete[which], crashed


def test_a_disk_that_fails_anywhere_in_the_preparation_costs_no_more_than_that(
    tmp_path: Path, complete: dict[str, dict[str, bytes]]
) -> None:
    counting = FaultyFiles()
    start_with_the_old(tmp_path)
    prepare(tmp_path / "root", "new", counting)
    for number in range(1, counting.fallible + 1):
        error = (errno.ENOSPC, errno.EIO)[number % 2]
        start_with_the_old(tmp_path)
        with pytest.raises(JumokError, match=os.strerror(error)) as raised:
            prepare(tmp_path / "root", "new", FaultyFiles(fails_at=number, error=error))
        assert str(tmp_path / "root" / "store") in str(raised.value)
        assert not [name for name in contents(tmp_path / "root") if ".tmp-" in name], number
        prepare(tmp_path / "root", "new")
        assert contents(tmp_path / "root") == complete["new"], number
