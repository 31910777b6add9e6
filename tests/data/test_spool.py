"""Examples in a temporary file: all of them, in their order, as often as wanted, and nothing left behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from faulty_files import FaultyFiles, faulty_everywhere
from jumok.data.examples import Example
from jumok.data.spool import Spool
from jumok.errors import WriteError


def examples(count: int) -> list[Example]:
    return [Example((f"줄\n{n}\u2028", [n, None, {"x": 1.5}]), f"a:b.txt:{n}", "label" * (n % 2)) for n in range(count)]


def test_examples_come_back_as_they_were_as_often_as_wanted(tmp_path: Path) -> None:
    wanted = [(example, 2**63 + n) for n, example in enumerate(examples(1000))]
    with Spool(tmp_path) as spool:
        for example, number in wanted:
            spool.add(example, number)
        assert list(spool) == wanted
        for one, other in zip(spool, spool, strict=True):  # two readers at once
            assert one == other
        spool.add(Example(("more",), "c:1"), 5)
        assert list(spool) == [*wanted, (Example(("more",), "c:1"), 5)]


def test_few_large_examples_are_in_memory_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.data.spool._CHARACTERS_AT_A_TIME", 1 << 20)
    with Spool(tmp_path) as spool:
        tracemalloc.start()
        for number in range(200):
            spool.add(Example((str(number % 10) * (1 << 16),), "a:1"), number)
        assert [number for _, number in spool] == list(range(200))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 6 << 20


def test_a_spool_of_nothing_is_empty(tmp_path: Path) -> None:
    with Spool(tmp_path) as spool:
        assert list(spool) == []


def test_nothing_is_left_of_it_even_by_a_killed_process(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from jumok.data.spool import Spool; "
        "from jumok.data.examples import Example; spool = Spool(Path(sys.argv[1])); "
        "[spool.add(Example(('text' * 99,), 'a:1'), 0) for _ in range(9999)]; print('written', flush=True); "
        "time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, tmp_path], stdout=subprocess.PIPE)
    assert process.stdout is not None
    with process, process.stdout as output:
        assert output.readline() == b"written\n"
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_explained(tmp_path: Path) -> None:
    with faulty_everywhere(FaultyFiles(fails_at=2)), Spool(tmp_path) as spool:  # the first is its creation
        spool.add(Example(("text",), "a:1"), 0)
        with pytest.raises(WriteError, match=r"cannot be written \(No space left on device\)"):
            list(spool)
