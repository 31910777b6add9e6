import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import ConfigError
from jumok.training.length import Length
from jumok.training.schedule import SCHEDULES, make_schedule


def fixed(total: int, warmup: int) -> Length:
    return Length([(0, total)], warmup=warmup)


@given(warmup=st.integers(1, 8000), step=st.integers(1, 10**6), d_model=st.sampled_from([128, 512]))
def test_the_papers_formula(warmup: int, step: int, d_model: int) -> None:
    peak = 1 / math.sqrt(d_model * warmup)
    schedule = make_schedule("inverse_sqrt", peak=peak, warmup=warmup, length=fixed(10**6, warmup))
    formula = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    assert schedule(step) == pytest.approx(formula, rel=1e-9)


@pytest.mark.parametrize("name", SCHEDULES)
def test_rises_to_the_peak_and_never_exceeds_it(name: str) -> None:
    schedule = make_schedule(name, peak=0.002, warmup=100, length=fixed(1000, 100))
    rates = [schedule(step) for step in range(1, 1001)]
    assert rates[99] == pytest.approx(0.002)
    assert max(rates) <= 0.002 * (1 + 1e-12)
    assert all(earlier < later for earlier, later in pairwise(rates[:100]))
    assert all(earlier >= later for earlier, later in pairwise(rates[99:]))
    assert all(rate > 0 for rate in rates)


@pytest.mark.parametrize("name", ["linear", "cosine"])
def test_a_training_of_known_length_ends_near_zero(name: str) -> None:
    schedule = make_schedule(name, peak=1.0, warmup=10, length=fixed(1000, 10))
    assert schedule(1000) < 0.01
    assert schedule(1001) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("name", ["linear", "cosine"])
@pytest.mark.parametrize("last", [600, 3000])
def test_when_the_end_moves_the_rate_goes_on_from_where_it_is_to_zero_there(name: str, last: int) -> None:
    length = fixed(1000, 100)
    schedule = make_schedule(name, peak=1.0, warmup=100, length=length)
    before = [schedule(step) for step in range(1, 401)]
    length.change(400, last)
    rates = [schedule(step) for step in range(1, last + 1)]
    assert rates[:400] == before  # what was done stays as it was
    assert all(earlier > later for earlier, later in pairwise(rates[99:]))
    assert max(earlier - later for earlier, later in pairwise(rates[99:])) < 0.01  # no jump
    assert rates[-1] < 0.01


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "linaer", "peak": 1.0, "warmup": 1, "length": fixed(9, 1)}, 'Did you mean "linear"'),
        ({"name": "linear", "peak": 1.0, "warmup": 10, "length": fixed(9, 10)}, "warmup=10"),
        ({"name": "constant", "peak": math.nan, "warmup": 1, "length": fixed(9, 1)}, "nan"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_schedule(**arguments)  # type: ignore[arg-type]
