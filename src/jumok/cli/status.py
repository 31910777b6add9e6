"""Where a training stands, gathered from its events, and the same in words."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jumok.cli.metrics import named_metrics

Event = Mapping[str, Any]


UNBALANCED = 1.5  # times as many texts in one class as in another


@dataclass
class Status:
    """Everything a watcher shows. `take` is given every event."""

    clock: Callable[[], float] = time.monotonic
    total: int = 0  # steps
    step: int = 0
    epoch: int = 0
    loss: float | None = None
    rate: float | None = None  # the learning rate
    speed: float | None = None  # in `learned` a second
    learned: str = "tokens"  # what there are answers to: of a classifier, texts
    metrics: dict[str, str] = field(default_factory=dict)  # of the last validation, by name
    best: dict[str, str] = field(default_factory=dict)  # the same of the best one
    samples: list[Mapping[str, str]] = field(default_factory=list)
    started: float = 0.0
    _begin: tuple[float, int] | None = None  # when this process began to train, and at which step
    _expected: float | None = None  # seconds, as planned
    _last: tuple[int, float] = (0, 0.0)  # tokens and seconds of the last entry
    _best_score: float = -math.inf

    def __post_init__(self) -> None:
        self.started = self.clock()

    def take(self, event: Event) -> None:
        """Learns what the event says."""
        kind = event["event"]
        if kind == "corpus" and event["classes"]:
            self.learned = "texts"
        elif kind == "plan":
            self._expected = event["expected_seconds"]
        elif kind == "settings":
            self.total = event["settings"]["stop"]["steps"]
            self._begin = (self.clock(), 0)
        elif kind == "resumed":
            self.step = event["step"]
            self._begin, self._expected, self._last = (self.clock(), event["step"]), None, (0, 0.0)
        elif kind == "train":
            self._learn_speed(event)
            self.step, self.epoch = event["step"], event["epoch"] + 1
            self.loss, self.rate = event["loss"], event["lr"]
        elif kind == "checkpoint":
            self.step = event["step"]
        elif kind == "valid":
            self.metrics, self.samples = named_metrics(event), event["samples"]
            if event["score"] > self._best_score:
                self.best, self._best_score = self.metrics, event["score"]

    def _learn_speed(self, event: Event) -> None:
        tokens, seconds = event["tokens"] - self._last[0], event["seconds"] - self._last[1]
        if self._last[1] or not self._begin or not self._begin[1]:  # the first entry after a resume has no beginning
            self.speed = tokens / seconds if seconds > 0 else None
        self._last = (event["tokens"], event["seconds"])

    @property
    def elapsed(self) -> float:
        """Seconds since this process began."""
        return self.clock() - self.started

    @property
    def remaining(self) -> float | None:
        """Seconds to go, from what was measured in this process; before that, from the plan."""
        if self._begin is None:
            return None
        since, first = self.clock() - self._begin[0], self._begin[1]
        if self.step > first:
            return since / (self.step - first) * (self.total - self.step)
        return None if self._expected is None else max(0.0, self._expected - since)


def duration(seconds: float | None) -> str:
    """3:07 or 2:15:00; a dash if it is not known."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def describe_corpus(event: Event) -> Iterator[str]:
    """What was found in the files."""
    yield (
        f"corpus: {event['examples']:,} {event['kind']} to learn from, {event['valid_examples']:,} to measure on, "
        f"{event['tokens']:,} tokens to learn"
    )
    vocabulary = event["tokenizer"]
    yield f"vocabulary: {vocabulary['size']:,} pieces ({vocabulary['why']})"
    if event["classes"]:
        yield "classes: " + ", ".join(f"{name} {count:,}" for name, count in event["classes"].items())
        if max(event["classes"].values()) > UNBALANCED * min(event["classes"].values()):
            yield "  they are not balanced: the rare ones count for more in training, by the root of how rare they are"


def describe_rejections(event: Event) -> Iterator[str]:
    """What could not be used, most frequent first, and where."""
    reasons = event["rejected"]["reasons"]
    if reasons:
        yield f"left out: {event['rejected']['total']:,} {event['kind']}"
    for reason, found in sorted(reasons.items(), key=lambda item: -item[1]["count"]):
        more = ", …" if found["count"] > len(found["examples"]) else ""
        yield f"  {found['count']:,} × {reason}: {', '.join(found['examples'])}{more}"


def describe_plan(event: Event) -> Iterator[str]:
    """What was chosen and why, and how long it will take."""
    for choice in event["choices"]:
        yield f"{choice['name']} = {choice['value']}  ({choice['why']})"
    yield f"This will take about {duration(event['expected_seconds'])}, from a few seconds measured on this machine."


def describe_warning(event: Event) -> str | None:
    """What a watcher must be told at once; None for all other events."""
    if event["event"] == "rejected":
        return f"a checkpoint cannot be used and is passed over: {event['path']}: {event['reason']}"
    if event["event"] == "restarted":
        return (
            f"{event['path']}: there is no checkpoint, though the log had come to step {event['step']:,}: "
            "the training starts again from the beginning, and its first validation replaces the model"
        )
    if event["event"] == "memory":
        return f"memory was not enough: from step {event['step'] + 1:,} on, batches go in {event['pieces']} parts"
    if event["event"] == "finished" and "not_exported" in event:
        return f"the model is not exported to CTranslate2: {event['not_exported']}"
    if event["event"] == "resumed" and event["changed"]:
        changes = ", ".join(f"{name} {old} → {new}" for name, (old, new) in event["changed"].items())
        return f"the result will not be the same bits as without the stop: {changes}"
    return None


def describe_step(status: Status) -> str:
    """One line about the training."""
    speed = "" if status.speed is None else f"  {status.speed:,.0f} {status.learned}/s"
    return (
        f"step {status.step:,}/{status.total:,}  epoch {status.epoch}  loss {status.loss:.3f}  lr {status.rate:.2e}"
        f"{speed}  time left {duration(status.remaining)}"
    )


def describe_validation(event: Event) -> Iterator[str]:
    """Scores, and a translation to look at."""
    which = f" (average of the {event['averaged']} checkpoints)" if "averaged" in event else ""
    scores = "  ".join(f"{name} {value}" for name, value in named_metrics(event).items())
    yield f"validation at step {event['step']:,}{which}: {scores}  loss {event['loss']:.3f}"
    for sample in event["samples"][:1]:
        yield f"  {sample['source']}  →  {sample['output']}"
