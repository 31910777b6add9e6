"""The frozen description of a model: what it accepts, what it refuses and with which words."""

import json
from dataclasses import FrozenInstanceError, fields
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jumok.errors import ConfigError, JumokError
from jumok.model.config import PRESETS, config_from_dict, preset
from jumok.model.config.base import ACTIVATIONS, MOST_LAYERS, NORMS, POSITIONS, ModelConfig
from jumok.model.config.classifier import NGRAM_UNITS, POOLINGS, ClassifierConfig
from jumok.model.config.language_model import LanguageModelConfig
from jumok.model.config.translator import TranslatorConfig

CONFIGS: dict[str, type[ModelConfig]] = {
    "translator": TranslatorConfig,
    "classifier": ClassifierConfig,
    "language_model": LanguageModelConfig,
}
# What config.json of a task also held when all tasks shared one set of fields.
OTHERS: dict[str, dict[str, Any]] = {
    "translator": {"classes": 0, "pooling": "mean", "window": 0, "ngrams": 0, "ngram_unit": "token"},
    "classifier": {"decoder_layers": 0},
    "language_model": {
        "encoder_layers": 0,
        "classes": 0,
        "pooling": "mean",
        "window": 0,
        "ngrams": 0,
        "ngram_unit": "token",
    },
}


@st.composite
def settings_of_a_model(draw: st.DrawFn) -> dict[str, Any]:
    """Every field of a valid config."""
    positive, layers = st.integers(1, 10**5), st.integers(1, MOST_LAYERS)
    rate = st.floats(0, 1, exclude_max=True) | st.just(0)
    task, heads = draw(st.sampled_from(sorted(CONFIGS))), draw(st.integers(1, 64))
    free_widths = draw(st.booleans())
    positions = draw(st.sampled_from(POSITIONS))
    unit = 1 if free_widths else heads
    everything = {
        "vocabulary": draw(positive),
        "task": task,
        "encoder_layers": draw(layers),
        "decoder_layers": draw(layers),
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
        "classes": draw(positive),
        "pooling": draw(st.sampled_from(POOLINGS)),
        "window": draw(positive | st.just(0)),
        "ngrams": 1 << draw(st.integers(0, 20)),
        "ngram_unit": draw(st.sampled_from(NGRAM_UNITS)),
        "ngram_fingerprints": draw(st.booleans()),
    }
    width = everything["d_k"] or everything["d_model"] // heads
    stacks = [
        f"{stack}_layers" for stack in ("encoder", "decoder") if f"{stack}_layers" in CONFIGS[task].__annotations__
    ]
    everything["rotary"] = width % 2 == 0 and max(everything[name] for name in stacks) > 1 and draw(st.booleans())
    names = {field.name for field in fields(CONFIGS[task])}
    return {name: value for name, value in everything.items() if name in names}


@given(settings_of_a_model())
def test_plain_values_both_ways(values: dict[str, Any]) -> None:
    config = CONFIGS[values["task"]](**values)
    assert set(values) == {field.name for field in fields(config)}
    assert config_from_dict(json.loads(json.dumps(config.to_dict()))) == config
    assert config.to_dict() == values
    assert config.key_width == (values["d_k"] or values["d_model"] // values["heads"])
    assert config.value_width == (values["d_v"] or values["d_model"] // values["heads"])


@given(settings_of_a_model(), st.data())
def test_a_wrong_type_in_any_field_is_named(values: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(values)))
    wrong = data.draw(st.sampled_from([[], {}, "", "\0", -1, -0.5, 1.5, float("nan"), float("inf"), b"relu"]))
    with pytest.raises(ConfigError) as error:
        CONFIGS[values["task"]](**values | {name: wrong})
    assert f"{name}={wrong!r}" in str(error.value) or (name == "task" and repr(wrong) in str(error.value))


@given(settings_of_a_model())
def test_it_is_frozen_and_can_be_a_key(values: dict[str, Any]) -> None:
    config = config_from_dict(values)
    with pytest.raises(FrozenInstanceError):
        config.d_model = 4  # type: ignore[misc]
    assert {config: 1}[config_from_dict(values)] == 1


@given(settings_of_a_model(), st.data())
def test_configs_with_the_fields_of_all_tasks_are_still_read(values: dict[str, Any], data: st.DataObject) -> None:
    others = OTHERS[values["task"]]
    config = config_from_dict(values | others)
    assert config.to_dict() == values
    name = data.draw(st.sampled_from(sorted(others)))
    with pytest.raises(ConfigError, match=f"{name}=.*another task"):
        config_from_dict(values | others | {name: data.draw(st.sampled_from([2, "max"]))})


def test_the_defaults_are_the_paper_s_base_model() -> None:
    assert TranslatorConfig(vocabulary=37_000) == preset("base", vocabulary=37_000)
    assert config_from_dict({"vocabulary": 37_000}) == TranslatorConfig(vocabulary=37_000)


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
    halves: dict[str, dict[str, int]] = {
        "translator": {"encoder_layers": layers, "decoder_layers": layers},
        "language_model": {"decoder_layers": layers},
        "classifier": {"encoder_layers": layers, "classes": 2},
    }
    for task, config in CONFIGS.items():
        expected = config(**sizes, **halves[task], **(PAPER | {"norm": norm}))
        assert preset(name, vocabulary=9, task=task) == expected
        assert expected.task == task
    assert preset(name, vocabulary=9).task == "translator"


def test_the_notebook_s_classifier() -> None:
    config = preset("imdb-notebook")
    assert isinstance(config, ClassifierConfig)
    assert (config.encoder_layers, config.d_model, config.heads) == (1, 32, 2)
    assert (config.vocabulary, config.classes, config.pooling) == (50_002, 2, "answers")
    assert (config.d_ff, config.dropout) == (128, 0.1)
    assert preset("imdb-notebook", vocabulary=100).vocabulary == 100


def test_presets_can_be_changed_and_stay_as_they_are() -> None:
    before = json.dumps(PRESETS)
    assert preset("tiny", vocabulary=9, d_ff=77, norm="pre").d_ff == 77
    assert preset("tiny", vocabulary=9, task="classifier", classes=5).to_dict()["classes"] == 5
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
        ({"encoder_layers": -1}, r"encoder_layers=-1.*at least 1"),
        ({"encoder_layers": 0}, r"encoder_layers=0.*at least 1"),
        ({"task": "language_model", "encoder_layers": 6}, r"encoder_layers=6.*another task"),
        ({"task": "classifier", "decoder_layers": 6}, r"decoder_layers=6.*another task"),
        ({"task": "classifier", "classes": 0}, r"classes=0.*at least 1"),
        ({"task": "classifier", "ngrams": 6}, r"ngrams=6.*power of 2"),
        ({"classes": 2}, r"classes=2.*another task.*TranslatorConfig"),
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
        ({"rotary": True, "d_k": 5}, r"rotary=true.*even width.*5 wide"),
        ({"rotary": True, "encoder_layers": 1, "decoder_layers": 1}, r"rotary=true.*two layers.*has 1,"),
        ({"rotary": 1}, r"rotary=1.*true or false"),
        ({"task": "classifier", "pooling": "means"}, r"pooling='means'.*Did you mean \"mean\""),
        ({"task": "translater"}, r"'translater'.*Did you mean \"translator\""),
        ({"d_modle": 4}, r'"d_modle".*Did you mean "d_model"'),
        ({"zzz": 4}, r'"zzz".*Known: activation, .*vocabulary'),
    ],
)
def test_values_that_cannot_be_used(changes: dict[str, Any], message: str) -> None:
    config_from_dict(GOOD)
    with pytest.raises(ConfigError, match=message):
        config_from_dict(GOOD | changes)


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ConfigError, match='"vocabulary" is missing'):
        config_from_dict({"d_model": 4})


def test_a_config_cannot_say_that_it_is_of_another_task() -> None:
    with pytest.raises(ConfigError, match="task='classifier' does not fit a TranslatorConfig"):
        TranslatorConfig(**GOOD, task="classifier")


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("tinny", {"vocabulary": 9}, r'"tinny".*Did you mean "tiny"'),
        ("huge", {"vocabulary": 9}, r'"huge".*base, big, imdb-notebook, rnn, rnn-attention, small, tiny'),
        ("tiny", {}, r'"vocabulary" is missing'),
        ("tiny", {"vocabulary": 9, "task": "lm"}, r"task 'lm'.*language_model"),
        ("tiny", {"vocabulary": 9, "dropuot": 0.1}, r'"dropuot".*Did you mean "dropout"'),
        ("imdb-notebook", {"task": "translator"}, r"is for a classifier, not for a translator"),
    ],
)
def test_presets_that_cannot_be_made(name: str, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(JumokError, match=message):
        preset(name, **arguments)
