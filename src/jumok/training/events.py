"""Everything that can happen in a training: one type an event.

Events are plain dictionaries, so that they are also the lines of log.jsonl (`train`, `valid`, `checkpoint`, `schedule`,
`done`) and of `jumok train --json`. Whoever wants to follow a training passes an `EventCallback`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NotRequired, TypedDict


class PhaseEvent(TypedDict):
    """A part of the work begins that says nothing while it lasts."""

    event: (
        Literal["reading", "vocabulary", "encoding", "measuring"]
        | Literal["training", "validating", "averaging", "exporting", "certifying"]
    )


class CorpusEvent(TypedDict):
    """The corpus is ready: the facts of `data.corpus.Corpus`."""

    event: Literal["corpus"]
    kind: str  # what its examples are called: "pairs", "texts", "passages"
    examples: int
    valid_examples: int
    tokens: int
    tokenizer: Mapping[str, Any]
    classes: Mapping[str, int]
    rejected: Mapping[str, Any]


class FindingEvent(TypedDict):
    """The check of the corpus found something suspicious: how often, where first, and what to do about it."""

    event: Literal["finding"]
    what: str
    where: str
    advice: str


class PlanEvent(TypedDict):
    """What was chosen for this training, and why."""

    event: Literal["plan"]
    choices: list[dict[str, Any]]  # name, value, why


class SettingsEvent(TypedDict):
    """All settings, resolved; training begins now. `steps` is an estimate if minutes were asked for."""

    event: Literal["settings"]
    settings: dict[str, Any]
    steps: int


class ResumedEvent(TypedDict):
    """Training continues from a checkpoint. `changed`: versions, threads … whose change costs the same bits."""

    event: Literal["resumed"]
    step: int
    changed: Mapping[str, list[Any]]


class RestartedEvent(TypedDict):
    """There is a log, but no checkpoint: training starts again."""

    event: Literal["restarted"]
    path: str
    step: int


class RejectedEvent(TypedDict):
    """A damaged checkpoint is skipped."""

    event: Literal["rejected"]
    path: str
    reason: str


class MemoryEvent(TypedDict):
    """A batch did not fit into memory: from the next step on, batches are split into `parts`."""

    event: Literal["memory"]
    step: int
    parts: int


class LoggedEvent(TypedDict):
    """What every line of log.jsonl says."""

    step: int
    epoch: int
    tokens: int  # targets trained on so far
    seconds: float  # spent training so far, without validation and checkpoints


class TrainEvent(LoggedEvent):
    """The mean loss since the last such event."""

    event: Literal["train"]
    loss: float
    lr: float


class ValidEvent(LoggedEvent):
    """A validation. The metrics of the task stand beside these fields, by name (`bleu`, `accuracy` …)."""

    event: Literal["valid"]
    score: float  # what the best model is chosen by; more is better
    loss: NotRequired[float]
    samples: NotRequired[list[dict[str, str]]]
    averaged: NotRequired[str]  # of the average of the "last" or the "best" checkpoints


class CheckpointEvent(LoggedEvent):
    """A checkpoint is about to be saved."""

    event: Literal["checkpoint"]


class ScheduleEvent(LoggedEvent):
    """The number of steps that fit into the minutes asked for is forecast anew."""

    event: Literal["schedule"]
    last_step: int


class DoneEvent(LoggedEvent):
    """The last step is done, checkpoints are averaged."""

    event: Literal["done"]
    best_score: float | None
    best_step: int | None
    limits: dict[str, Any]


class AlreadyDoneEvent(TypedDict):
    """This training was finished before."""

    event: Literal["already_done"]
    step: int


class FinishedEvent(TypedDict):
    """The very end. `certificate` or `not_exported` (the reason), if an export was tried."""

    event: Literal["finished"]
    certificate: NotRequired[Mapping[str, Any]]
    not_exported: NotRequired[str]


Event = (
    PhaseEvent
    | CorpusEvent
    | FindingEvent
    | PlanEvent
    | SettingsEvent
    | ResumedEvent
    | RestartedEvent
    | RejectedEvent
    | MemoryEvent
    | TrainEvent
    | ValidEvent
    | CheckpointEvent
    | ScheduleEvent
    | DoneEvent
    | AlreadyDoneEvent
    | FinishedEvent
)
EventCallback = Callable[[Event], None]


def ignore_event(_event: Event) -> None:
    """The callback of whoever does not want to know."""
