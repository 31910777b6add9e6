"""The frozen description of a model: what it accepts, what it refuses and with which words."""

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import ConfigError, JumokError
from jumok.model.config import (
    ACTIVATIONS,
    MOST_LAYERS,
    NGRAM_UNITS,
    NORMS,
    POOLINGS,
    POSITIONS,
    PRESETS,
    TASKS,
    ModelConfig,
    preset,
)


@st.composite
def settings_of_a_model(draw: st.DrawFn) -> dict[str, Any]:
    """Every field of a valid config."""
    positive, layers = st.integers(1, 10**5), st.integers(1, MOST_LAYERS)
    rate = st.floats(0, 1, exclude_max=True) | st.just(0)
    task, heads = draw(st.sampled_from(TASKS)), draw(st.integers(1, 64))
    free_widths = draw(st.booleans())
    positions = draw(st.sampled_from(POSITIONS))
    unit = 1 if free_widths else heads
    return {
        "vocabulary": draw(positive),
        "task": task,
        "encoder_layers": 0 if task == "language_model" else draw(layers),
        "decoder_layers": 0 if task == "classifier" else draw(layers),
        "d_model": draw(positive) * unit * (2 if positions == "sinusoidal" else 1),
        "heads": heads,
        "d_k": draw(positive if free_widths else st.none() | positive),
        "d_v": draw(positive if free_widths else st.none() | positive),
        "d_ff": draw(positive),
        "dropout": draw(rate),
        "attention_dropout": draw(rate),
        "attention_bias": draw(st.booleans()),
        "activation": draw(st.sampled_from(ACTIVATIONS)),
        "norm": draw(st.sampled_from(NORMS)),
        "positions": positions,
        "max_length": draw(positive),
        "classes": draw(positive) if task == "classifier" else 0,
        "pooling": draw(st.sampled_from(POOLINGS)),
        "window": draw(positive) if task == "classifier" else 0,
        "ngrams": 1 << draw(st.integers(0, 20)) if task == "classifier" else 0,
        "ngram_unit": draw(st.sampled_from(NGRAM_UNITS)),
    }


@given(settings_of_a_model())
def test_json_both_ways(values: dict[str, Any]) -> None:
    config = ModelConfig(**values)
    assert set(values) == {field.name for field in fields(ModelConfig)}
    assert ModelConfig.from_json(config.to_json()) == config
    assert ModelConfig.from_dict(config.to_dict()) == config
    assert json.loads(config.to_json()) == values
    assert config.key_width == (values["d_k"] or values["d_model"] // values["heads"])
    assert config.value_width == (values["d_v"] or values["d_model"] // values["heads"])


@given(settings_of_a_model(), st.data())
def test_a_wrong_type_in_any_field_is_named(values: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(values)))
    wrong = data.draw(st.sampled_from([[], {}, "", "\0", -1, -0.5, 1.5, float("nan"), float("inf"), b"relu"]))
    with pytest.raises(ConfigError) as error:
        ModelConfig(**values | {name: wrong})
    assert f"{name}={wrong!r}" in str(error.value)


@given(settings_of_a_model())
def test_it_is_frozen_and_can_be_a_key(values: dict[str, Any]) -> None:
    config = ModelConfig(**values)
    with pytest.raises(FrozenInstanceError):
        config.d_model = 4  # type: ignore[misc]
    assert {config: 1}[ModelConfig(**values)] == 1


def test_changes_make_a_new_checked_config() -> None:
    config = ModelConfig(vocabulary=10)
    assert config.with_changes(heads=4).heads == 4
    assert config.heads == 8
    with pytest.raises(ConfigError, match="heads=7"):
        config.with_changes(heads=7)
    with pytest.raises(ConfigError, match=r'"head".*Did you mean "heads"'):
        config.with_changes(head=4)


def test_the_defaults_are_the_paper_s_base_model() -> None:
    assert ModelConfig(vocabulary=37_000) == preset("base", vocabulary=37_000)


PAPER = {"d_k": None, "d_v": None, "activation": "relu", "norm": "post", "positions": "sinusoidal"}
PAPER |= {"attention_bias": False, "attention_dropout": 0.0}


@pytest.mark.parametrize(
    ("name", "layers", "d_model", "heads", "d_ff", "dropout", "norm"),
    [
        ("tiny", 4, 128, 4, 256, 0.3, "pre"),
        ("small", 4, 256, 4, 1024, 0.2, "pre"),
        ("base", 6, 512, 8, 2048, 0.1, "post"),
        ("big", 6, 1024, 16, 4096, 0.3, "post"),
    ],
)
def test_presets(name: str, layers: int, d_model: int, heads: int, d_ff: int, dropout: float, norm: str) -> None:
    sizes = {"d_model": d_model, "heads": heads, "d_ff": d_ff, "dropout": dropout, "vocabulary": 9}
    for task, encoder_layers, decoder_layers, classes in (
        ("translator", layers, layers, 0),
        ("language_model", 0, layers, 0),
        ("classifier", layers, 0, 2),
    ):
        halves = {"encoder_layers": encoder_layers, "decoder_layers": decoder_layers, "classes": classes, "task": task}
        assert preset(name, vocabulary=9, task=task) == ModelConfig(**sizes, **halves, **(PAPER | {"norm": norm}))
    assert preset(name, vocabulary=9).task == "translator"


def test_the_notebook_s_classifier() -> None:
    config = preset("imdb-notebook")
    assert (config.task, config.encoder_layers, config.d_model, config.heads) == ("classifier", 1, 32, 2)
    assert (config.vocabulary, config.classes, config.pooling) == (50_002, 2, "answers")
    assert (config.d_ff, config.dropout) == (128, 0.1)
    assert preset("imdb-notebook", vocabulary=100).vocabulary == 100


def test_presets_can_be_changed_and_stay_as_they_are() -> None:
    before = json.dumps(PRESETS)
    assert preset("tiny", vocabulary=9, d_ff=77, norm="pre").d_ff == 77
    assert preset("tiny", vocabulary=9, task="classifier", classes=5).classes == 5
    assert json.dumps(PRESETS) == before


GOOD: dict[str, Any] = {"vocabulary": 100, "d_model": 12, "heads": 3}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"d_model": 10}, r"d_model=10.*heads=3.*multiple of 3.*d_k and d_v"),
        ({"d_model": 10, "d_k": 4}, r"d_model=10.*heads=3"),
        ({"d_model": 9}, r"d_model=9 is odd.*pairs.*Use 10.*learned"),
        ({"heads": 0}, r"heads=0.*at least 1"),
        ({"heads": True}, r"heads=True.*whole number"),
        ({"d_ff": 0}, r"d_ff=0.*at least 1"),
        ({"d_k": 0}, r"d_k=0.*at least 1"),
        ({"max_length": -5}, r"max_length=-5.*at least 1"),
        ({"vocabulary": 0}, r"vocabulary=0.*at least 1"),
        ({"vocabulary": 8000.0}, r"vocabulary=8000.0.*whole number"),
        ({"vocabulary": None}, r"vocabulary=None.*whole number"),
        ({"encoder_layers": -1}, r"encoder_layers=-1.*at least 0"),
        ({"encoder_layers": 0}, r"encoder_layers=0.*task=translator.*at least 1"),
        ({"task": "language_model"}, r"encoder_layers=6.*task=language_model.*0"),
        ({"task": "classifier", "classes": 2}, r"decoder_layers=6.*task=classifier.*0"),
        ({"task": "classifier", "decoder_layers": 0}, r"classes=0.*task=classifier.*at least 1"),
        ({"classes": 2}, r"classes=2.*task=translator.*0"),
        ({"dropout": 1.0}, r"dropout=1.0.*at least 0 and below 1"),
        ({"dropout": -0.1}, r"dropout=-0.1.*at least 0"),
        ({"dropout": float("nan")}, r"dropout=nan.*not a rate"),
        ({"attention_dropout": "0.1"}, r"attention_dropout='0.1'.*not a rate"),
        ({"dropout": False}, r"dropout=False.*not a rate"),
        ({"attention_bias": 1}, r"attention_bias=1.*true or false"),
        ({"activation": "rleu"}, r"activation='rleu'.*Did you mean \"relu\""),
        ({"activation": "swish"}, r"activation='swish'.*gelu, relu"),
        ({"norm": "posts"}, r"norm='posts'.*Did you mean \"post\""),
        ({"positions": "rotary"}, r"positions='rotary'.*learned, sinusoidal"),
        ({"pooling": "means"}, r"pooling='means'.*Did you mean \"mean\""),
        ({"task": "translater"}, r"task='translater'.*Did you mean \"translator\""),
    ],
)
def test_values_that_cannot_be_used(changes: dict[str, Any], message: str) -> None:
    ModelConfig(**GOOD)
    with pytest.raises(ConfigError, match=message):
        ModelConfig(**GOOD | changes)
    with pytest.raises(ConfigError, match=message):
        ModelConfig.from_json(json.dumps(GOOD | changes))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"vocabulary": 10, "d_modle": 4}', r'"d_modle".*Did you mean "d_model"'),
        ('{"vocabulary": 10, "zzz": 4}', r'"zzz".*Known: activation, .*vocabulary'),
        ('{"d_model": 4}', r'"vocabulary" is missing'),
        ("{", r"not valid JSON.*line 1"),
        ("", r"not valid JSON"),
        ("[" * 100_000, r"not valid JSON"),
        ("[1]", r"JSON object, not list"),
        ("null", r"JSON object, not NoneType"),
        ('{"vocabulary": ' + "9" * 5000 + "}", r"not valid JSON"),
    ],
    ids=lambda value: value[:20],
)
def test_json_that_is_no_config(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ModelConfig.from_json(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "tinny", "vocabulary": 9}, r'"tinny".*Did you mean "tiny"'),
        ({"name": "huge", "vocabulary": 9}, r'"huge".*base, big, imdb-notebook, small, tiny'),
        ({"name": "tiny"}, r'"vocabulary" is missing'),
        ({"name": "tiny", "vocabulary": 9, "task": "lm"}, r"task='lm'.*language_model"),
        ({"name": "tiny", "vocabulary": 9, "dropuot": 0.1}, r'"dropuot".*Did you mean "dropout"'),
        ({"name": "imdb-notebook", "task": "translator"}, r"decoder_layers=0.*task=translator"),
    ],
)
def test_presets_that_cannot_be_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(JumokError, match=message):
        preset(**arguments)
