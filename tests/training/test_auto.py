import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import ConfigError
from jumok.training.auto import (
    FINAL_VALIDATIONS,
    MOST_VALIDATIONS,
    Costs,
    choose_length,
    choose_sizes,
    forecast,
    measure_step,
    require_one_length,
    smaller_preset,
)
from jumok.training.settings import Settings, StopSettings


def settings_with(**changes: object) -> Settings:
    return Settings.from_dict({}).changed({name.replace("__", "."): value for name, value in changes.items()})


def chosen(settings: Settings, costs: Costs, steps_per_epoch: int = 500, tokens: int = 500_000) -> Settings:
    choices = choose_length(settings, steps_per_epoch, tokens, costs)
    assert all(choice.why for choice in choices)
    return settings.changed({choice.name: choice.value for choice in choices})


@given(
    minutes=st.floats(0.5, 600),
    step=st.floats(0.005, 5),
    validation=st.floats(0.05, 60),
    spent=st.floats(0, 20),
)
def test_the_minutes_asked_for_are_the_minutes_forecast(
    minutes: float, step: float, validation: float, spent: float
) -> None:
    costs = Costs(step, validation, spent)
    settings = chosen(settings_with(stop__minutes=minutes), costs)
    steps, every, warmup = settings.stop.steps, settings.validation.every, settings.schedule.warmup
    assert steps is not None
    assert every is not None
    assert warmup is not None
    assert 1 <= warmup <= max(1, steps)
    assert math.ceil(steps / every) <= MOST_VALIDATIONS
    room = minutes * 60 - spent - (FINAL_VALIDATIONS + 2) * validation - 2 * step
    if room > 0:  # with less, one step and one validation are the least there can be
        assert forecast(settings, costs) <= minutes * 60 + validation + step


def test_what_is_given_stays_as_it_is() -> None:
    given_settings = settings_with(
        stop__steps=777, schedule__name="cosine", schedule__warmup=3, validate__every=5, checkpoint__every=9
    )
    assert chosen(given_settings, Costs(0.1, 1.0)) == given_settings
    sizes = choose_sizes(settings_with(preset="base", batch__tokens=123, batch__accumulate=2, optimizer__lr=0.5), 10**6)
    assert sizes == []


def test_larger_corpora_get_larger_models_and_batches() -> None:
    sizes = [
        {choice.name: choice.value for choice in choose_sizes(settings_with(), tokens)}
        for tokens in (10**5, 10**7, 10**9)
    ]
    assert [size["preset"] for size in sizes] == ["tiny", "small", "base"]
    assert sizes[0]["batch.tokens"] < sizes[1]["batch.tokens"] < sizes[2]["batch.tokens"]


def test_post_norm_is_warmed_up_longer_in_a_short_training() -> None:
    post, pre = (
        chosen(settings_with(preset="base", stop__steps=900, model__norm=norm), Costs(0.1, 1.0))
        for norm in ("post", "pre")
    )
    assert (post.schedule.warmup, pre.schedule.warmup) == (300, 90)


@pytest.mark.parametrize(("epochs", "dropout"), [(2, 0.0), (10, 0.1), (50, 0.2), (90, None)])
def test_the_fewer_epochs_the_less_dropout(epochs: int, dropout: float | None) -> None:
    settings = chosen(settings_with(preset="tiny", stop__epochs=epochs), Costs(0.1, 1.0))
    assert settings.model.get("dropout") == dropout
    asked = settings_with(preset="tiny", stop__epochs=epochs, model__dropout=0.4)
    assert chosen(asked, Costs(0.1, 1.0)).model["dropout"] == 0.4


def test_epochs_become_steps() -> None:
    assert chosen(settings_with(stop__epochs=2.5), Costs(0.1, 1.0), steps_per_epoch=40).stop.steps == 100


def test_two_lengths_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"stop\.epochs and stop\.minutes"):
        require_one_length(StopSettings(epochs=1.0, minutes=2.0))


def test_the_speed_is_that_of_the_later_steps() -> None:
    import time

    calls: list[int] = []

    def step() -> None:
        calls.append(1)
        time.sleep(0.2 if len(calls) < 4 else 0.02)  # the first ones warm up

    assert 0.015 < measure_step(step, StopSettings(steps=5)) < 0.06


@pytest.mark.parametrize(
    ("changes", "step", "expected"),
    [
        ({"stop__minutes": 60.0}, 1.0, "small"),  # 7 epochs of 500 steps
        ({"stop__minutes": 60.0}, 10.0, "tiny"),
        ({}, 10.0, "small"),  # in a night
        ({}, 100.0, "tiny"),
        ({"stop__epochs": 10.0}, 100.0, "small"),  # as long as it takes
        ({"stop__steps": 10}, 100.0, "small"),
    ],
)
def test_a_machine_too_slow_for_the_corpus_gets_a_smaller_model(
    changes: dict[str, object], step: float, expected: str
) -> None:
    smaller = smaller_preset(settings_with(preset="small", **changes), 500, Costs(step, 1.0))
    assert (smaller.value if smaller else "small") == expected
    assert smaller_preset(settings_with(preset="tiny", **changes), 500, Costs(step, 1.0)) is None
