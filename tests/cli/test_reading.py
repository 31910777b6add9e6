"""Lines as they come."""

import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.cli import reading
from jumok.cli.reading import READ_AHEAD, READ_AHEAD_CHARACTERS, chunks_as_they_come
from jumok.engines import batching
from jumok.engines.batching import FIRST_CHUNK, GROWTH
from jumok.errors import InputError


@given(st.lists(st.text(max_size=5), max_size=50))
def test_every_line_comes_once_in_order(lines: list[str]) -> None:
    assert [line for chunk in chunks_as_they_come(lines) for line in chunk] == lines


def test_lines_that_come_quickly_come_together() -> None:
    chunks = [len(chunk) for chunk in chunks_as_they_come(map(str, range(2 * READ_AHEAD)))]
    assert max(chunks) == READ_AHEAD


def test_the_first_chunk_is_short_and_slow_work_keeps_chunks_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAUSE", 10.0)  # the lines come quickly, however busy the machine is
    lines = list(map(str, range(10 * FIRST_CHUNK)))
    growing = [FIRST_CHUNK, GROWTH * FIRST_CHUNK, 10 * FIRST_CHUNK - (1 + GROWTH) * FIRST_CHUNK]
    assert [len(chunk) for chunk in chunks_as_they_come(lines)] == growing
    monkeypatch.setattr(batching, "CHUNK_SECONDS", 0.0)
    assert {len(chunk) for chunk in chunks_as_they_come(lines)} == {FIRST_CHUNK}
    assert [len(chunk) for chunk in chunks_as_they_come(lines, same_always=True)] == growing


def test_a_slow_writer_is_answered_at_once() -> None:
    answered = threading.Event()

    def questions() -> Iterator[str]:
        yield "first"
        assert answered.wait(10)
        yield "second"

    seen = []
    for chunk in chunks_as_they_come(questions()):
        seen.append(chunk)
        answered.set()
    assert seen == [["first"], ["second"]]


def test_what_is_read_ahead_is_bounded() -> None:
    read = 0

    def endless() -> Iterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "x" * 100_000

    chunks = chunks_as_they_come(endless())
    assert sum(len(line or "") for line in next(chunks)) <= READ_AHEAD_CHARACTERS + 100_000
    time.sleep(0.2)
    assert read * 100_000 <= 2 * (READ_AHEAD_CHARACTERS + 200_000)


def test_an_error_comes_after_the_lines_before_it() -> None:
    def broken() -> Iterator[str]:
        yield "fine"
        raise InputError("not fine")

    chunks = chunks_as_they_come(broken())
    assert next(chunks) == ["fine"]
    with pytest.raises(InputError, match="not fine"):
        next(chunks)
