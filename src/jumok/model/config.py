"""What a model is made of, in one frozen object that is saved beside its weights. Needs no torch."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from jumok.errors import ConfigError, did_you_mean, require_choice

TASKS = ("translator", "language_model", "classifier")
ACTIVATIONS = ("relu", "gelu")
NORMS = ("post", "pre")
POSITIONS = ("sinusoidal", "learned")
POOLINGS = ("mean", "max", "answers")
NGRAM_UNITS = ("token", "character", "both")
MOST_LAYERS, MOST = 256, 1 << 24  # beyond any model of use; a config may come from anybody


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Sizes and choices of one task model. The defaults are the paper's base model."""

    vocabulary: int  # V: rows of the one embedding shared by source, target and output
    task: str = "translator"  # translator | language_model | classifier
    encoder_layers: int = 6  # 0 for a language model
    decoder_layers: int = 6  # 0 for a classifier
    d_model: int = 512  # D: width of every vector between two sublayers
    heads: int = 8  # H
    d_k: int | None = None  # K: width of a query and a key in one head; None is d_model / heads
    d_v: int | None = None  # Dv: width of a value in one head; None is d_model / heads
    d_ff: int = 2048  # width inside the feed-forward sublayer
    dropout: float = 0.1  # after each sublayer and after embedding + position
    attention_dropout: float = 0.0  # on the attention weights (the paper has none)
    attention_bias: bool = False  # the paper's W^Q, W^K, W^V, W^O are plain matrices
    activation: str = "relu"  # relu | gelu
    norm: str = "post"  # post: LayerNorm(x + Sublayer(x)), the paper | pre: x + Sublayer(LayerNorm(x))
    positions: str = "sinusoidal"  # sinusoidal (any length) | learned (up to max_length)
    max_length: int = 1024  # only learned positions have a limit
    classes: int = 0  # classifier: number of answers
    pooling: str = "mean"  # classifier: mean | max over the real tokens | answers: a score a token, then max
    window: int = 0  # classifier: tokens that attend to each other, a longer text is read in parts; 0: all of them
    ngrams: int = 0  # classifier: places for the scores of short runs of units, a power of 2; 0: no such scores
    ngram_unit: str = "token"  # token | character | both: runs of each, scored apart and added

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_choices()
        self._check_task()
        if self.d_model % self.heads and (self.d_k is None or self.d_v is None):
            raise ConfigError(
                f"d_model={self.d_model} cannot be split into heads={self.heads} equal parts. "
                f"Use a d_model that is a multiple of {self.heads}, or set d_k and d_v yourself."
            )
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ConfigError(
                f"d_model={self.d_model} is odd, but sinusoidal positions come in pairs of sine and cosine. "
                f"Use {self.d_model + 1}, or positions=learned."
            )

    def _check_numbers(self) -> None:
        least = {"encoder_layers": 0, "decoder_layers": 0, "classes": 0, "window": 0, "ngrams": 0}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "float":
                if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
                    raise ConfigError(f"{field.name}={value!r} is not a rate. It must be at least 0 and below 1.")
            elif field.type == "int" or (field.type == "int | None" and value is not None):
                low, high = least.get(field.name, 1), MOST_LAYERS if field.name.endswith("_layers") else MOST
                if isinstance(value, bool) or not isinstance(value, int) or value < low:
                    raise ConfigError(f"{field.name}={value!r} must be a whole number, at least {low}.")
                if value > high:
                    raise ConfigError(f"{field.name} is too large, at most {high:,} make sense.")
            elif field.type == "bool" and not isinstance(value, bool):
                raise ConfigError(f"{field.name}={value!r} must be true or false.")

    def _check_choices(self) -> None:
        choices = {"task": TASKS, "activation": ACTIVATIONS, "norm": NORMS, "positions": POSITIONS, "pooling": POOLINGS}
        choices["ngram_unit"] = NGRAM_UNITS
        for name, known in choices.items():
            require_choice(name, getattr(self, name), known)

    def _check_task(self) -> None:
        needs_encoder = self.task != "language_model"
        needs_decoder = self.task != "classifier"
        for name, needed in (("encoder_layers", needs_encoder), ("decoder_layers", needs_decoder)):
            layers = getattr(self, name)
            if needed != (layers > 0):
                raise ConfigError(
                    f"{name}={layers} does not fit task={self.task}: it needs {'at least 1' if needed else '0'}."
                )
        if (self.task == "classifier") != (self.classes > 0):
            need = "at least 1" if self.task == "classifier" else "0"
            raise ConfigError(f"classes={self.classes} does not fit task={self.task}: it needs {need}.")

        if self.task != "classifier" and (self.window or self.ngrams):
            raise ConfigError(f"window and ngrams belong to a classifier, not to task={self.task}.")
        if self.ngrams & (self.ngrams - 1):
            raise ConfigError(f"ngrams={self.ngrams} must be a power of 2, such as {1 << self.ngrams.bit_length()}.")

    @property
    def units_of_runs(self) -> tuple[str, ...]:
        """What a classifier's runs are made of, one after another; nothing if it has no scores of runs."""
        if not self.ngrams:
            return ()
        return ("character", "token") if self.ngram_unit == "both" else (self.ngram_unit,)

    @property
    def key_width(self) -> int:
        """K, the width of a query and of a key in one head."""
        return self.d_k if self.d_k is not None else self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """Dv, the width of a value in one head."""
        return self.d_v if self.d_v is not None else self.d_model // self.heads

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, ready for JSON."""
        return asdict(self)

    def to_json(self) -> str:
        """The same as text, as it stands in a bundle's config.json."""
        return json.dumps(self.to_dict(), indent=2) + "\n"

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> ModelConfig:
        """The config those values describe. An unknown or missing key is an error that names it."""
        known = [field.name for field in fields(cls)]
        for key in values:
            if key not in known:
                raise ConfigError(f'Unknown model setting "{key}".{did_you_mean(key, known)}')
        if "vocabulary" not in values:
            raise ConfigError('The model setting "vocabulary" is missing: the number of token ids.')
        return cls(**values)

    @classmethod
    def from_json(cls, text: str) -> ModelConfig:
        """The inverse of `to_json`."""
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"The model config is not valid JSON: {error}") from error
        if not isinstance(values, dict):
            raise ConfigError(f"The model config must be a JSON object, not {type(values).__name__}.")
        return cls.from_dict(values)

    def with_changes(self, **changes: Any) -> ModelConfig:
        """A copy with some fields changed, checked like a new one."""
        for key in changes:
            if key not in (known := [field.name for field in fields(self)]):
                raise ConfigError(f'Unknown model setting "{key}".{did_you_mean(key, known)}')
        return replace(self, **changes)


PRESETS: dict[str, dict[str, Any]] = {
    # The two small ones are pre-norm: in the minutes they are made for, they learn three times as fast that way.
    "tiny": {
        "encoder_layers": 4,
        "decoder_layers": 4,
        "d_model": 128,
        "heads": 4,
        "d_ff": 256,
        "dropout": 0.3,
        "norm": "pre",
    },
    "small": {
        "encoder_layers": 4,
        "decoder_layers": 4,
        "d_model": 256,
        "heads": 4,
        "d_ff": 1024,
        "dropout": 0.2,
        "norm": "pre",
    },
    "base": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 512, "heads": 8, "d_ff": 2048, "dropout": 0.1},
    "big": {"encoder_layers": 6, "decoder_layers": 6, "d_model": 1024, "heads": 16, "d_ff": 4096, "dropout": 0.3},
    # The one-layer film-review classifier: 32 wide, 2 heads, every token answers and the strongest answer counts.
    # (Its W^O has a bias, 32 numbers that ours has not.)
    "imdb-notebook": {
        "task": "classifier",
        "encoder_layers": 1,
        "decoder_layers": 0,
        "d_model": 32,
        "heads": 2,
        "d_ff": 128,
        "classes": 2,
        "pooling": "answers",
    },
}

_TASK_LAYERS: dict[str, dict[str, Any]] = {
    "translator": {},
    "language_model": {"encoder_layers": 0},
    "classifier": {"decoder_layers": 0, "classes": 2},
}


def preset(name: str, *, vocabulary: int | None = None, task: str | None = None, **changes: Any) -> ModelConfig:
    """A named size as a config. `imdb-notebook` brings its own vocabulary of 50,002 and is always a classifier.

    For the other presets `task` chooses which half of the sizes is used: `preset("tiny", task="language_model",
    vocabulary=8000)` has the 4 decoder layers and no encoder.
    """
    if name not in PRESETS:
        raise ConfigError(f'Unknown preset "{name}".{did_you_mean(name, PRESETS)}')
    values = dict(PRESETS[name])
    if name == "imdb-notebook" and vocabulary is None:
        vocabulary = 50_002
    task = task or values.get("task", "translator")
    require_choice("task", task, TASKS)
    values |= {"task": task} | ({} if "task" in values else _TASK_LAYERS[task]) | changes
    if vocabulary is not None:
        values["vocabulary"] = vocabulary
    return ModelConfig.from_dict(values)
