"""What configs share: how values are checked, and the description of a stack of Transformer layers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar, Self, TypeVar

from jumok.errors import ConfigError, did_you_mean, require_at_least, require_choice
from jumok.tasks import resolve, task_of_config

ACTIVATIONS = ("relu", "gelu")
NORMS = ("post", "pre")
POSITIONS = ("sinusoidal", "learned")
MOST_LAYERS, MOST = 256, 1 << 24  # beyond any model of use; a config may come from anybody

# Once every config had the fields of all tasks. Those of other tasks held these values and still stand in old files.
_UNUSED_BY_OTHER_TASKS: dict[str, Any] = {
    "encoder_layers": 0,
    "decoder_layers": 0,
    "classes": 0,
    "pooling": "mean",
    "window": 0,
    "ngrams": 0,
    "ngram_unit": "token",
}


@dataclass(frozen=True, kw_only=True)
class BaseConfig:
    """What all models have, whatever their architecture."""

    task: str  # a key of TASKS; each task's config has its own name as the default
    vocabulary: int  # V: rows of the one embedding shared by source, target and output
    d_model: int = 512  # D: width of every vector between two layers
    dropout: float = 0.1  # after each layer or sublayer, and after the embedding

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    may_be_zero: ClassVar[frozenset[str]] = frozenset()  # other integers are at least 1

    def __post_init__(self) -> None:
        if not isinstance(self, resolve(task_of_config(vars(self)).config)):
            raise ConfigError(f"task={self.task!r} does not fit a {type(self).__name__}.")
        self._check_types()
        for name, known in self.choices.items():
            require_choice(name, getattr(self, name), known)

    @property
    def longest(self) -> int | None:
        """The most tokens of a text, with `<s>` or `</s>`; None: no limit."""
        return None

    def _check_types(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.type == "float":
                if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1:
                    raise ConfigError(f"{field.name}={value!r} is not a rate. It must be at least 0 and below 1.")
            elif field.type == "int" or (field.type == "int | None" and value is not None):
                low = 0 if field.name in self.may_be_zero else 1
                high = MOST_LAYERS if field.name.endswith(("_layers", "_blocks")) else MOST
                require_at_least(low, **{field.name: value})
                if value > high:
                    raise ConfigError(f"{field.name} is too large; at most {high:,} is allowed.")
            elif field.type == "bool" and not isinstance(value, bool):
                raise ConfigError(f"{field.name}={value!r} must be true or false.")

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config those values describe. An unknown or missing key is an error that names it."""
        known = {field.name: field for field in fields(cls)}
        own = {}
        for key, value in values.items():
            if key in known:
                own[key] = value
            elif key not in _UNUSED_BY_OTHER_TASKS:
                raise ConfigError(f'Unknown model setting "{key}".{did_you_mean(key, known)}')
            elif value != _UNUSED_BY_OTHER_TASKS[key]:
                raise ConfigError(f"{key}={value!r} is a setting of another task; a {cls.__name__} has none.")
        for name, field in known.items():
            if name not in own and field.default is MISSING:
                raise ConfigError(f'The model setting "{name}" is missing.')
        return cls(**own)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(BaseConfig):
    """A Transformer: one stack of layers, or several of the same shape. The defaults are the paper's base model."""

    heads: int = 8  # H
    d_k: int | None = None  # K: width of a query and a key in one head; None is d_model / heads
    d_v: int | None = None  # Dv: width of a value in one head; None is d_model / heads
    d_ff: int = 2048  # width inside the feed-forward sublayer
    attention_dropout: float = 0.0  # on the attention weights (the paper has none)
    attention_bias: bool = False  # the paper's W^Q, W^K, W^V, W^O are plain matrices
    activation: str = "relu"  # relu | gelu
    norm: str = "post"  # post: LayerNorm(x + Sublayer(x)), the paper | pre: x + Sublayer(LayerNorm(x))
    positions: str = "sinusoidal"  # sinusoidal (any length) | learned (up to max_length)
    max_length: int = 1024  # only learned positions have a limit
    rotary: bool = False  # from the second layer on, queries and keys are rotated by their positions too (RoPE)

    choices = {"activation": ACTIVATIONS, "norm": NORMS, "positions": POSITIONS}  # noqa: RUF012 (ClassVar above)

    def __post_init__(self) -> None:
        super().__post_init__()
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
        if self.rotary and not self.may_rotate:
            raise ConfigError(
                "rotary=true turns pairs of numbers from the second layer on: it needs two layers, and queries and "
                f"keys of an even width. This model has {self._most_layers}, and they are {self.key_width} wide."
            )

    @property
    def key_width(self) -> int:
        """K, the width of a query and of a key in one head."""
        return self.d_k if self.d_k is not None else self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """Dv, the width of a value in one head."""
        return self.d_v if self.d_v is not None else self.d_model // self.heads

    @property
    def may_rotate(self) -> bool:
        """Whether there are queries and keys that could be rotated."""
        return self._most_layers > 1 and self.key_width % 2 == 0

    @property
    def _most_layers(self) -> int:
        return max(getattr(self, f"{stack}_layers", 0) for stack in ("encoder", "decoder"))

    @property
    def longest(self) -> int | None:
        """The most tokens of a text, with `<s>` or `</s>`; None: no limit."""
        return self.max_length if self.positions == "learned" else None


ConfigT = TypeVar("ConfigT", bound=BaseConfig)


def require_config(config: BaseConfig, wanted: type[ConfigT]) -> ConfigT:
    """The config itself, or an error if it is one of another task."""
    if not isinstance(config, wanted):
        raise ConfigError(f"This model needs a {wanted.__name__}, not a {type(config).__name__}.")
    return config
