"""Contenders that take turns, so that noise disturbs each alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence


def in_turns(contenders: dict[str, Callable[[], None]], rounds: int) -> dict[str, float]:
    """Median seconds of each."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            started = time.perf_counter()
            run()
            if number:  # the first warms up
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(values) for name, values in times.items()}


def rounds_of(names: Sequence[str], rounds: int) -> list[tuple[int, str]]:
    """The number of the round and who is next: every contender once a round, each round beginning with another."""
    return [(number, names[(number + place) % len(names)]) for number in range(rounds) for place in range(len(names))]
