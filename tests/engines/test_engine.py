"""Options and batches: what every engine shares."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.engines.batching import in_two_ways, sorted_batches
from jumok.engines.options import DecodingOptions, Sampling, SearchOptions
from jumok.engines.translator.engine import LIMIT_STEP, ROOM, longest_output
from jumok.errors import ConfigError

SOURCE = Path(__file__).parents[2] / "src"


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"beam": 0}, "beam is 0"),
        ({"beam": 2.5}, "beam is 2.5"),
        ({"beam": True}, "beam is True"),
        ({"n_best": 0}, "n_best is 0"),
        ({"n_best": 6}, "n_best is 6, more than the beam of 5"),
        ({"length_penalty": -1}, "length_penalty is -1"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
        ({"length_penalty": "1"}, "length_penalty is '1'"),
        ({"no_repeat_ngram": -1}, "no_repeat_ngram is -1"),
        ({"max_ratio": float("inf")}, "max_ratio is inf"),
        ({"batch_tokens": 0}, "batch_tokens is 0"),
        ({"sampling": True}, "sampling is True"),
        ({"prefix": "a\nb"}, "prefix is 'a\\nb'"),
        ({"prefix": None}, "prefix is None"),
        ({"bias": {"word": float("inf")}}, 'bias of "word" is inf'),
        ({"bias": {"word": "much"}}, "bias of \"word\" is 'much'"),
        ({"segment_tokens": 2}, "segment_tokens is 2; it must be a whole number, at least 8"),
        ({"beams": 4}, 'Unknown option "beams". Did you mean "beam"?'),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as error:
        DecodingOptions.of(**wrong)
    assert said in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"temperature": -1.0},
        {"temperature": float("inf")},
        {"top_k": -1},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"seed": 0.5},
    ],
)
def test_sampling_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Sampling(**wrong)


def test_samples_need_no_beam() -> None:
    options = SearchOptions(beam=1, n_best=7, sampling=Sampling())
    assert options.rows == 7
    assert SearchOptions(beam=4).rows == 4


@given(st.integers(0, 500), st.integers(0, 500), st.floats(0, 10), st.none() | st.integers(1, 500))
def test_an_output_has_room_but_an_end(source: int, prefix: int, ratio: float, longest: int | None) -> None:
    limit = longest_output(source, prefix, SearchOptions(max_ratio=ratio), longest)
    if longest is None:
        assert limit >= prefix + ROOM
        assert limit <= max(prefix, ratio * (source + LIMIT_STEP - 1) + 1) + ROOM
    else:
        assert limit <= longest


@given(st.lists(st.integers(1, 300), max_size=60), st.integers(1, 2000), st.integers(1, 5))
def test_batches_hold_every_source_once_within_the_budget(lengths: list[int], budget: int, rows: int) -> None:
    batches = sorted_batches(lengths, budget, rows)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    assert all(len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) * rows <= budget for batch in batches)
    order = [lengths[index] for batch in batches for index in batch]
    assert order == sorted(order, reverse=True)


@given(st.lists(st.booleans()))
def test_results_of_two_ways_are_put_back_in_order(fits: list[bool]) -> None:
    asked: list[list[int]] = []

    def other(indices: list[int]) -> list[str]:
        asked.append(indices)
        return [f"other {index}" for index in indices]

    found = in_two_ways(fits, lambda indices: [f"usual {index}" for index in indices], other, range(len(fits)))
    assert found == [f"{'usual' if fit else 'other'} {index}" for index, fit in enumerate(fits)]
    assert asked == ([] if all(fits) else [[index for index, fit in enumerate(fits) if not fit]])


@pytest.mark.parametrize("task", ["translator", "classifier", "language_model"])
def test_texts_are_handled_without_torch(task: str) -> None:
    program = f"import sys; import jumok.engines.{task}.text, jumok.engines.loading; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], cwd=SOURCE, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
