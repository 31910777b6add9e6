"""What the trainer is given and what it keeps: the data, the options, where a training stands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self


class TrainingBatch(Protocol):
    """What the trainer must know of a batch."""

    @property
    def tokens(self) -> int:
        """How many answers the loss is summed over."""

    def halves(self) -> tuple[Self, Self] | None:
        """The batch in two parts, or None if it is a single example."""

    def describe(self) -> str:
        """Which examples these are, in words a user can follow back to the files."""


class Epochs(Protocol):
    """The data: for every epoch an order that depends on nothing but its number."""

    def size(self, epoch: int) -> int:
        """How many batches the epoch has."""

    def digest(self, epoch: int) -> str:
        """A fingerprint of the order of that epoch."""

    def batches(self, epoch: int, places: Sequence[int]) -> Iterator[Any]:
        """The batches of that epoch at these places, one after another."""

    def largest(self) -> Any:
        """The batch that needs the most memory."""


@dataclass(frozen=True)
class Validation:
    """What a validation found. `score` is the number to maximise; `metrics` go into the log as they are."""

    score: float
    metrics: Mapping[str, Any]
    effort: float = (
        1.0  # times the work that a trained model takes: one that has learned nothing may not come to an end
    )


@dataclass(frozen=True, kw_only=True)
class TrainingOptions:
    """How long and how. Every number is decided before the training starts."""

    seed: int
    steps: int
    accumulate: int = 1  # batches in one update
    clip: float = 1.0  # largest gradient norm
    log_every: int = 50
    validate_every: int = 500
    checkpoint_every: int = 500
    patience: int | None = None  # validations without a better score before stopping; None: never stop early
    average: int = 4  # how many checkpoints are averaged at the end; 1: none
    new_order_allowed: bool = False  # go on with other data or batches than those of the checkpoint
    best_before: float | None = None  # a score to beat that the checkpoint need not know of


@dataclass
class Progress:
    """Where a training stands. Saved with every checkpoint; together with the weights it is all there is to know."""

    step: int = 0
    epoch: int = 0
    position: int = 0  # batches of this epoch already used
    tokens: int = 0
    seconds: float = 0.0  # spent training, without validation and checkpoints
    loss_sum: float = 0.0  # since the last line in the log
    loss_tokens: int = 0
    best_score: float | None = None
    best_step: int | None = None
    stale: int = 0  # validations since then
    scores: dict[str, float] = field(default_factory=dict)  # by step, of the validations whose checkpoints may remain
