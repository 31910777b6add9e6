"""What the trainer is given and what it keeps: the data, the options, and its progress."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self


class TrainingBatch(Protocol):
    """What the trainer must know of a batch."""

    @property
    def tokens(self) -> int:
        """How many targets the loss is summed over."""

    def halves(self) -> tuple[Self, Self] | None:
        """The batch split in two, or None if it is a single example."""

    def describe(self) -> str:
        """Which examples these are, so that a user finds them in the files."""


class Epochs(Protocol):
    """The training data: batches in an order that depends on the number of the epoch alone."""

    def size(self, epoch: int) -> int:
        """How many batches the epoch has."""

    def digest(self, epoch: int) -> str:
        """A fingerprint of that epoch's batches and their order."""

    def batches(self, epoch: int, indices: Sequence[int]) -> Iterator[Any]:
        """The batches of that epoch with these indices, one after another."""

    def largest(self) -> Any:
        """The batch that needs the most memory."""


@dataclass(frozen=True)
class Validation:
    """What a validation found."""

    score: float  # what the best model is chosen by; more is better
    metrics: Mapping[str, Any]  # for the log, as they are
    weights: Mapping[str, Any] = field(default_factory=dict)  # tensors by name that the published model gets
    card: Mapping[str, Any] = field(default_factory=dict)  # what the card of the published model says of it
    attention: bytes = b""  # of a few sentences, as a safetensors file, to be watched over the course of the training
    effort: float = 1.0  # times the work with a trained model: outputs of an untrained one may not end


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How long to train and how, with every setting resolved."""

    seed: int
    accumulate: int = 1  # batches in one update
    clip: float = 1.0  # largest gradient norm
    log_every: int = 50
    validate_every: int | None = 500  # steps; None: `validations` times, evenly spread
    validations: int = 1
    checkpoint_every: int | None = 500  # steps; None: every five minutes
    patience: int | None = None  # validations without a better score before stopping; None: never stop early
    average: int = 4  # how many checkpoints are averaged at the end; 1: none
    new_order_allowed: bool = False  # resume with other data or batches than those of the checkpoint
    best_before: float | None = None  # a score to beat that is in no checkpoint
    highest_score: float = math.inf  # no validation has more; a checkpoint that says so measured something else
    limits: Mapping[str, Any] = field(default_factory=dict)  # what ends the training, for the log's last line
    seconds: float | None = None  # the time asked for, if it was; then also …
    validation_seconds: float = 0.0  # … how long a validation takes, until one was measured
    validation_steps: float = 0.0  # or, without a time: as long as so many updates
    export_validations: float = 0.0  # the export takes as long as so many validations


@dataclass
class Progress:
    """The state of a training beside weights and optimizer. Saved with every checkpoint."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    tokens: int = 0
    seconds: float = 0.0  # spent training, without validation and checkpoints
    elapsed: float = 0.0  # all seconds used so far: preparation, validation and checkpoints too
    validation_seconds: float = 0.0  # of the last validation
    loss_sum: float = 0.0  # since the last log entry
    loss_tokens: int = 0
    best_score: float | None = None
    best_step: int | None = None
    stale: int = 0  # validations since the best one
    scores: dict[str, float] = field(default_factory=dict)  # of each validation, by step
