import re
from pathlib import Path

import pytest

from jumok.errors import ConfigError
from jumok.training.settings import Settings, parse_assignments, read_settings_file


def test_dotted_names_reach_every_section_and_survive_the_round_trip() -> None:
    values = parse_assignments(["batch.tokens=2048", "model.norm=pre", "validate.every=100", "optimizer.lr=0.001"])
    settings = Settings.from_dict({}).changed(values)
    assert (settings.batch.tokens, settings.validation.every, settings.optimizer.lr) == (2048, 100, 0.001)
    assert settings.model == {"norm": "pre"}
    assert Settings.from_dict(settings.to_dict()) == settings
    assert settings.to_dict()["validate"]["every"] == 100


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("batch.token=1", 'Did you mean "batch.tokens"'),
        ("validate.evry=1", 'Did you mean "validate.every"'),
        ("sed=1", 'Did you mean "seed"'),
        ("batch.tokens=many", "batch.tokens='many'"),
        ("batch.tokens=0", "batch.tokens=0"),
        ("loss.smoothing=1", "loss.smoothing=1"),
        ("schedule.name=linaer", 'Did you mean "linear"'),
        ("seed.deep=1", '"seed" is a single value'),
        ("seed=-1", "seed=-1 cannot be used"),
        ("seed=18446744073709551616", "seed=18446744073709551616 cannot be used"),
        ("stop.steps=1e300", "stop.steps=1e+300 cannot be used"),
        ("stop.minutes=Infinity", "stop.minutes=inf cannot be used: Input should be a finite number"),
        ("stop.minutes=NaN", "stop.minutes=nan cannot be used: Input should be a finite number"),
        ("stop.minutes=1e300", "stop.minutes=1e+300 cannot be used"),
        ("stop.minutes=-3", "stop.minutes=-3"),
        ("stop.epochs=Infinity", "stop.epochs=inf cannot be used: Input should be a finite number"),
        ("optimizer.lr=Infinity", "optimizer.lr=inf cannot be used: Input should be a finite number"),
    ],
)
def test_a_wrong_setting_is_named_with_what_would_be_right(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        Settings.from_dict({}).changed(parse_assignments([assignment]))


@pytest.mark.parametrize("text", ["batch.tokens", "=3"])
def test_what_is_not_an_assignment_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="name=value"):
        parse_assignments([text])


def test_a_toml_file_holds_the_same_names(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('seed = 7\n[batch]\ntokens = 512\n[model]\nnorm = "pre"\n', encoding="utf-8")
    settings = Settings.from_dict(read_settings_file(path))
    assert (settings.seed, settings.batch.tokens, settings.model) == (7, 512, {"norm": "pre"})


def test_a_broken_or_missing_toml_file_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("seed = = 7", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"broken\.toml"):
        read_settings_file(broken)
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        read_settings_file(tmp_path / "missing.toml")
