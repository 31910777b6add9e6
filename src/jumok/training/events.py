"""Everything that can happen in a training, one type an event: plain dictionaries, which are also the lines of
log.jsonl (those with a `step` and `seconds`) and of `jumok train --json`. An `EventCallback` receives them."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NotRequired, TypedDict

Phase = Literal[
    "reading", "vocabulary", "encoding", "measuring", "training", "validating", "averaging", "exporting", "certifying"
]
# A part of the work begins that says nothing while it lasts.
PhaseEvent = TypedDict("PhaseEvent", {"event": Phase})
# The check of the corpus found something suspicious: how often, where first, and what to do about it.
FindingEvent = TypedDict("FindingEvent", {"event": Literal["finding"], "what": str, "where": str, "advice": str})
# How a file was read, as far as it was found out: columns, separator, sheet, encoding; `what` says it in a line.
FileEvent = TypedDict("FileEvent", {"event": Literal["file"], "file": str, "columns": Mapping[str, Any], "what": str})
# A training in several stages comes to one of them: its number, and what it trains.
StageEvent = TypedDict("StageEvent", {"event": Literal["stage"], "number": int, "title": str})
# What was chosen for this training, and why: each a name, a value and a reason.
PlanEvent = TypedDict("PlanEvent", {"event": Literal["plan"], "choices": list[dict[str, Any]]})
# All settings, resolved. The number of steps is a forecast if minutes were asked for.
SettingsEvent = TypedDict("SettingsEvent", {"event": Literal["settings"], "settings": dict[str, Any], "steps": int})
# There is a log, but no checkpoint: training starts again.
RestartedEvent = TypedDict("RestartedEvent", {"event": Literal["restarted"], "path": str, "step": int})
# A damaged checkpoint is skipped.
RejectedEvent = TypedDict("RejectedEvent", {"event": Literal["rejected"], "path": str, "reason": str})
# What the explorer replays cannot be written. The training goes on without it, and says so once.
UnsavedEvent = TypedDict("UnsavedEvent", {"event": Literal["unsaved"], "path": str, "reason": str})
# A batch did not fit into memory: from the next step on, batches are split into so many parts.
MemoryEvent = TypedDict("MemoryEvent", {"event": Literal["memory"], "step": int, "parts": int})
# This training was finished before.
AlreadyDoneEvent = TypedDict("AlreadyDoneEvent", {"event": Literal["already_done"], "step": int})


class ResumedEvent(TypedDict):
    """Training continues from a checkpoint."""

    event: Literal["resumed"]
    step: int
    changed: Mapping[str, list[Any]]  # versions, threads … whose change costs the same bits
    losses: list[float]  # of the log so far, so that a learning curve goes on
    validations: list[dict[str, Any]]  # of the log so far, without samples


class TranslatingEvent(TypedDict):
    """What a first stage has trained translates the corpus for the second."""

    event: Literal["translating"]
    done: int  # pairs so far
    pairs: int  # in all
    new: NotRequired[int]  # pairs that came out, at the end


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


class LoggedEvent(TypedDict):
    """What every line of log.jsonl says."""

    step: int
    epoch: int  # from 1 on
    tokens: int  # targets trained on so far
    seconds: float  # spent training so far, without validation and checkpoints


class StepEvent(LoggedEvent):
    """How far the training is: after the first step of this process, then about once a second. Not in log.jsonl."""

    event: Literal["step"]
    seconds_left: float  # until the very end, estimated: validations to come, averaging and export included


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
    best: bool  # whether it is better than all before, so that it becomes the model
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


class FinishedEvent(TypedDict):
    """The very end. `certificate` or `not_exported` (the reason), if an export was tried."""

    event: Literal["finished"]
    certificate: NotRequired[Mapping[str, Any]]
    not_exported: NotRequired[str]


_Data = PhaseEvent | StageEvent | TranslatingEvent | FindingEvent | FileEvent | CorpusEvent
_BeforeTraining = _Data | PlanEvent | SettingsEvent | AlreadyDoneEvent
_OfTheRun = ResumedEvent | RestartedEvent | RejectedEvent | UnsavedEvent | MemoryEvent | FinishedEvent
Event = _BeforeTraining | _OfTheRun | StepEvent | TrainEvent | ValidEvent | CheckpointEvent | ScheduleEvent | DoneEvent
EventCallback = Callable[[Event], None]


def ignore_event(_event: Event) -> None:
    """The callback of whoever does not want to know."""
