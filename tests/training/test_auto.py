import pytest

from jumok.errors import ConfigError
from jumok.model.config import PRESETS
from jumok.training.auto import (
    MOST_VALIDATIONS,
    Workload,
    choose_length,
    choose_rate,
    choose_sizes,
    choose_validations,
    measure_step,
    require_one_length,
    smaller_preset,
)
from jumok.training.settings import Settings, StopSettings

WORK = Workload(tokens=500_000, steps_per_epoch=500, validation_steps=10.0)


def settings_with(**changes: object) -> Settings:
    return Settings.from_dict({}).changed({name.replace("__", "."): value for name, value in changes.items()})


def chosen(settings: Settings, work: Workload = WORK, estimated_steps: int | None = None) -> Settings:
    config = {"norm": "post"} | PRESETS.get(settings.preset, {}) | settings.model
    choices = choose_length(settings, work, config, estimated_steps)
    assert all(choice.why for choice in choices)
    return settings.changed({choice.name: choice.value for choice in choices})


def test_what_is_given_stays_as_it_is() -> None:
    given_settings = settings_with(
        stop__steps=777, schedule__name="cosine", schedule__warmup=3, validate__every=5, checkpoint__every=9
    )
    assert chosen(given_settings) == given_settings
    sizes = settings_with(preset="base", batch__tokens=123, batch__accumulate=2, optimizer__lr=0.5)
    assert choose_sizes(sizes, 10**6) == choose_rate(sizes) == []


def test_larger_corpora_get_larger_models_and_batches() -> None:
    sizes = [
        {choice.name: choice.value for choice in choose_sizes(settings_with(), tokens)}
        for tokens in (10**5, 10**7, 10**9)
    ]
    assert [size["preset"] for size in sizes] == ["tiny", "small", "base"]
    assert sizes[0]["batch.tokens"] < sizes[1]["batch.tokens"] < sizes[2]["batch.tokens"]


def test_the_rate_suits_the_preset_and_the_optimizer() -> None:
    rates = {
        (preset, name): choose_rate(settings_with(preset=preset, optimizer__name=name))[0].value
        for preset in ("tiny", "base")
        for name in ("adam", "muon", None)
    }
    assert rates["tiny", "muon"] > rates["tiny", "adam"] == rates["tiny", None] > rates["base", "adam"]
    assert rates["base", "muon"] == rates["base", "adam"]  # nothing else has been measured


def test_post_norm_is_warmed_up_longer_in_a_short_training() -> None:
    post, pre = (chosen(settings_with(preset="base", stop__steps=900, model__norm=norm)) for norm in ("post", "pre"))
    assert (post.schedule.warmup, pre.schedule.warmup) == (300, 90)


@pytest.mark.parametrize(("epochs", "dropout"), [(2, 0.0), (10, 0.1), (20, 0.15), (50, 0.2), (90, None)])
def test_the_fewer_epochs_the_less_dropout(epochs: int, dropout: float | None) -> None:
    settings = chosen(settings_with(preset="tiny", stop__epochs=epochs))
    assert settings.model.get("dropout") == dropout
    asked = settings_with(preset="tiny", stop__epochs=epochs, model__dropout=0.4)
    assert chosen(asked).model["dropout"] == 0.4


def test_epochs_become_steps() -> None:
    assert chosen(settings_with(stop__epochs=2.5), Workload(500_000, 40, 10.0)).stop.steps == 100


def test_minutes_stay_minutes_and_validations_are_spread_by_the_trainer() -> None:
    settings = chosen(settings_with(stop__minutes=20.0), estimated_steps=7000)
    assert (settings.stop.steps, settings.stop.minutes, settings.validation.every) == (None, 20.0, None)
    assert settings.schedule.warmup == 700


def test_validations_are_few_where_they_are_a_large_part_of_the_work() -> None:
    assert choose_validations(100_000, WORK) == MOST_VALIDATIONS
    assert choose_validations(500, WORK) == 5  # 50 of 500 updates' time
    assert choose_validations(3, WORK) == 1
    assert chosen(settings_with(stop__steps=500)).validation.every == 100


def test_two_lengths_are_one_too_many() -> None:
    with pytest.raises(ConfigError, match=r"stop\.epochs and stop\.minutes"):
        require_one_length(StopSettings(epochs=1.0, minutes=2.0))


def test_the_measured_speed_is_that_of_the_quiet_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.training.auto.LEAST_SECONDS", 1.5)
    times: list[float] = []
    monkeypatch.setattr("time.perf_counter", lambda: sum(times))

    def step() -> None:
        warms_up = len(times) < 3
        something_else_runs = 14 < len(times) < 29
        times.append(0.2 if warms_up else 0.04 if something_else_runs else 0.01)

    assert measure_step(step, minutes=1.0) == pytest.approx(0.01)
    assert sum(times) == pytest.approx(1.5, abs=0.05)


@pytest.mark.parametrize(
    ("changes", "cores", "step", "expected"),
    [
        ({"stop__minutes": 60.0}, 2, 1.0, "small"),  # 7 epochs of 500 steps
        ({"stop__minutes": 60.0}, 2, 10.0, "tiny"),
        ({}, 2, None, "small"),  # in a night
        ({}, 1, None, "tiny"),
        ({"stop__epochs": 10.0}, 1, None, "small"),  # as long as it takes
        ({"stop__steps": 10}, 1, None, "small"),
    ],
)
def test_a_machine_too_slow_for_the_corpus_gets_a_smaller_model(
    changes: dict[str, object], cores: int, step: float | None, expected: str
) -> None:
    work = Workload(tokens=25_000_000, steps_per_epoch=500, validation_steps=10.0)
    smaller = smaller_preset(settings_with(preset="small", **changes), work, cores, step)
    assert (smaller.value if smaller else "small") == expected
    assert smaller_preset(settings_with(preset="tiny", **changes), work, cores, step) is None
