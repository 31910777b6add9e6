"""Every setting of a training, with its dotted name: the same in `--set`, in a TOML file and in run.json.
One that is None is chosen by `auto` from the corpus (with minutes also from the machine), with a reason."""

import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from jumok.errors import ConfigError, did_you_mean
from jumok.training.schedule import SCHEDULES

# Far beyond what anybody waits for, and nothing overflows on the way.
_MOST_STEPS, _MOST_EPOCHS, _MOST_MINUTES = 10**15, 1e8, 1e8
_LARGEST_SEED = 2**63 - 1
PRECISIONS = ("float32", "bfloat16", "float16")
OPTIMIZERS = ("adam", "muon")
EMBEDDINGS = ("random", "cooccurrence")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


def _known_name(noun: str, known: Iterable[str]) -> Callable[[str | None], str | None]:
    """A check that a name, if it is given, is one of those known."""
    names = tuple(known)

    def check(name: str | None) -> str | None:
        if name is not None and name not in names:
            raise ValueError(f'Unknown {noun} "{name}".{did_you_mean(name, names)}')
        return name

    return check


class TokenizerSettings(_Section):
    """The subword vocabulary."""

    size: int | None = Field(default=None, ge=300, description="tokens in the joint vocabulary")
    sampling: float = Field(
        default=0.0, ge=0, le=1, description="subword sampling while training; 0 is off, 0.1 is usual"
    )


class AugmentSettings(_Section):
    """Variants of the training examples. Without a value, the task chooses."""

    case: float | None = Field(
        default=None, ge=0, le=1, description="share of the source sentences that are trained on in small letters"
    )
    token_dropout: float | None = Field(
        default=None, ge=0, lt=1, description="share of the tokens of both sides that a translator does not see"
    )
    diversify: bool | None = Field(
        default=None, description="a translator of both directions comes first; its translations are learned from too"
    )
    shift: int | None = Field(default=None, ge=0, le=64, description="pictures are moved by up to so many pixels")
    mirror: bool | None = Field(default=None, description="half of the pictures are mirrored")
    erase: float | None = Field(default=None, ge=0, le=1, description="share of the pictures with a part hidden")
    mixup: float | None = Field(
        default=None, ge=0, le=1, description="pictures are mixed in pairs, by shares of Beta(mixup, mixup); 0 is off"
    )


class BatchSettings(_Section):
    """How many tokens one update is computed from."""

    tokens: int | None = Field(default=None, ge=1, description="tokens in a batch, padding included; or pictures")
    accumulate: int | None = Field(default=None, ge=1, description="batches in one update")


class OptimizerSettings(_Section):
    """Adam with the paper's moments, or Muon for the matrices between states and Adam for everything else."""

    name: str | None = Field(default=None, description=" | ".join(OPTIMIZERS))
    lr: float | None = Field(default=None, gt=0, description="peak learning rate")
    every: int | None = Field(
        default=None, ge=1, description="Muon updates each matrix only in every N-th step, by N times as much"
    )
    beta1: float = Field(default=0.9, ge=0, lt=1)
    beta2: float = Field(default=0.98, ge=0, lt=1)
    epsilon: float = Field(default=1e-9, gt=0)
    clip: float = Field(default=1.0, gt=0, description="largest gradient norm")

    _known = field_validator("name")(_known_name("optimizer", OPTIMIZERS))


class InitSettings(_Section):
    """The weights before the first update."""

    embeddings: str = Field(default="random", description=" | ".join(EMBEDDINGS))

    _known = field_validator("embeddings")(_known_name("way to begin", EMBEDDINGS))


class LossSettings(_Section):
    """Cross-entropy."""

    smoothing: float = Field(default=0.1, ge=0, lt=1, description="label smoothing")
    candidates: int | None = Field(
        default=None, ge=2, description="about how many tokens the loss compares with the targets; else all"
    )


class ScheduleSettings(_Section):
    """The learning rate over time."""

    name: str | None = Field(default=None, description=" | ".join(SCHEDULES))
    warmup: int | None = Field(default=None, ge=1, description="steps until the peak")

    _known = field_validator("name")(_known_name("schedule", SCHEDULES))


class StopSettings(_Section):
    """When the training ends. At most one of the three lengths is given."""

    steps: int | None = Field(default=None, ge=1, le=_MOST_STEPS)
    epochs: float | None = Field(default=None, gt=0, le=_MOST_EPOCHS)
    minutes: float | None = Field(default=None, gt=0, le=_MOST_MINUTES)
    patience: int | None = Field(default=None, ge=1, description="validations without a better score")


class CheckpointSettings(_Section):
    """What is kept on disk."""

    every: int | None = Field(
        default=None, ge=1, description="steps; else every 5 minutes. There is also one after every validation"
    )
    average: int = Field(default=4, ge=1, description="checkpoints averaged at the end; 1 is none")


class ValidateSettings(_Section):
    """Validation on examples that are not trained on."""

    every: int | None = Field(default=None, ge=1, description="steps; else up to 15 times, evenly spread")
    sentences: int = Field(default=1000, ge=1, description="at most this many examples are used")


class LogSettings(_Section):
    """log.jsonl."""

    every: int = Field(default=50, ge=1, description="steps")


class Settings(_Section):
    """All settings. `model` holds fields of the model's config that differ from the preset's."""

    seed: int = Field(default=1, ge=0, le=_LARGEST_SEED)
    device: str = Field(default="auto", description="cpu | cuda | cuda:N | mps | xpu; auto: a card if there is one")
    precision: str = Field(default="auto", description=" | ".join(PRECISIONS))
    compile: bool = Field(default=False, description="compile the layers with torch.compile: a later start")
    preset: str = "auto"
    model: dict[str, Any] = Field(default_factory=dict)
    tokenizer: TokenizerSettings = TokenizerSettings()
    augment: AugmentSettings = AugmentSettings()
    batch: BatchSettings = BatchSettings()
    optimizer: OptimizerSettings = OptimizerSettings()
    init: InitSettings = InitSettings()
    loss: LossSettings = LossSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    stop: StopSettings = StopSettings()
    checkpoint: CheckpointSettings = CheckpointSettings()
    validation: ValidateSettings = Field(default=ValidateSettings(), alias="validate")  # pydantic owns the name
    log: LogSettings = LogSettings()

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Settings from nested values. A wrong one is named with its dotted name and what would be right."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise ConfigError(_explain(error.errors()[0])) from error

    def to_dict(self) -> dict[str, Any]:
        """Nested values, ready for JSON."""
        return self.model_dump(by_alias=True)

    def same_training(self, other: Self) -> bool:
        """Whether both describe the same training, on whatever hardware."""
        return self.on_hardware_of(other) == other

    def on_hardware_of(self, other: Self) -> Self:
        """A copy for other hardware."""
        return self.changed({name: getattr(other, name) for name in ("device", "precision", "compile")})

    def has(self, name: str) -> bool:
        """Whether the setting of that dotted name was given a value, so that `auto` must not choose one."""
        value: Any = self._given()
        for part in name.split("."):
            value = value.get(part, {})
        return value not in (None, {})

    def _given(self) -> dict[str, Any]:
        """Nested values of the settings that were given explicitly."""
        return self.model_dump(by_alias=True, exclude_unset=True)

    def changed(self, dotted: Mapping[str, Any]) -> Self:
        """A copy with some settings changed, given by dotted name."""
        values = self._given()
        for name, value in dotted.items():
            section, known = values, self.to_dict()
            *path, last = name.split(".")
            for part in path:
                known, section = known.get(part, {}), section.setdefault(part, {})
                if not (isinstance(known, dict) and isinstance(section, dict)):
                    raise ConfigError(f'Unknown setting "{name}": "{part}" is a single value.')
            section[last] = value
        return self.from_dict(values)


def parse_assignments(assignments: Iterable[str]) -> dict[str, Any]:
    """`["batch.tokens=1024", "model.norm=pre"]` to names and values. A value is JSON where it can be, else text."""
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise ConfigError(
                f'"{assignment}" is not a setting. Write it as name=value, for example batch.tokens=2048.'
            )
        try:
            values[name.strip()] = json.loads(text)
        except ValueError:
            values[name.strip()] = text
    return values


def read_settings_file(path: Path) -> dict[str, Any]:
    """The nested values of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read ({error.strerror}).") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}") from error


def _explain(error: Any) -> str:
    name = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        section: Any = Settings
        for part in error["loc"][:-1]:
            section = section.model_fields["validation" if part == "validate" else part].annotation
        fields = [field.alias or plain for plain, field in section.model_fields.items()]
        known = [".".join((*map(str, error["loc"][:-1]), field)) for field in fields]
        return f'Unknown setting "{name}".{did_you_mean(name, known)}'
    reason = error["msg"].removeprefix("Value error, ").rstrip(".")
    return f"{name}={error['input']!r} cannot be used: {reason}{'' if reason.endswith('?') else '.'}"
