"""The state of a training, gathered from its events, and the events in words."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jumok.cli.flags import with_flags
from jumok.data.examples import describe_reasons

Event = Mapping[str, Any]

UNBALANCED = 1.5  # ratio of the largest class to the smallest
# What the program does after an event, until the next one.
PHASES = {
    "reading": "Reading and checking the corpus",
    "vocabulary": "Learning the vocabulary",
    "encoding": "Encoding the corpus",
    "measuring": "Measuring this machine",
    "settings": "Preparing the model",
    "training": "Training",
    "validating": "Validating",
    "averaging": "Averaging checkpoints",
    "done": "Finishing",
    "exporting": "Exporting to CTranslate2",
    "certifying": "Certifying the export",
    "finished": "Finishing",
}

# Key in the log, name, format. The first one that a task has is the metric the best model is chosen by.
METRICS = (
    ("bleu", "BLEU", ".1f"),
    ("chrf", "chrF", ".1f"),
    ("macro_f1", "macro-F1", ".1%"),
    ("accuracy", "accuracy", ".1%"),
    ("bits_per_byte", "bits/byte", ".3f"),
    ("perplexity", "perplexity", ".1f"),
)


@dataclass
class Status:
    """Everything that a display shows. `update` is called with every event."""

    clock: Callable[[], float] = time.monotonic
    phase: str = PHASES["reading"]
    done: bool = False  # all steps are made; the model may still have to be exported
    total: int = 0  # steps
    step: int = 0
    epoch: int = 0
    loss: float | None = None
    learning_rate: float | None = None
    speed: float | None = None  # `unit` per second
    unit: str = "tokens"  # what the loss is a mean of; texts for a classifier
    metrics: dict[str, str] = field(default_factory=dict)  # of the last validation, by name
    best: dict[str, str] = field(default_factory=dict)  # of the best validation
    samples: list[Mapping[str, str]] = field(default_factory=list)
    started: float = 0.0
    _begin: tuple[float, int] | None = None  # when this process began to train, and at which step
    _last: tuple[int, float] = (0, 0.0)  # tokens and seconds of the last entry
    _best_score: float = -math.inf

    def __post_init__(self) -> None:
        self.started = self.clock()

    def update(self, event: Event) -> None:
        """Take over what the event says."""
        kind = event["event"]
        if kind == "corpus" and event.get("classes"):
            self.unit = "texts"
        elif kind == "settings":
            self.total = event["steps"]
            self._begin = (self.clock(), 0)
        elif kind == "schedule":
            self.total = event["last_step"]
        elif kind == "resumed":
            self.step = event["step"]
            self._begin, self._last = (self.clock(), event["step"]), (0, 0.0)
        elif kind == "train":
            self._update_speed(event)
            self.step, self.epoch = event["step"], event["epoch"] + 1
            self.loss, self.learning_rate = event["loss"], event["lr"]
        elif kind == "checkpoint":
            self.step = event["step"]
        elif kind == "valid":
            self.metrics, self.samples = named_metrics(event), event.get("samples", [])
            if event["score"] > self._best_score:
                self.best, self._best_score = self.metrics, event["score"]
        self.done = self.done or kind in ("done", "already_done")
        self.phase = PHASES.get(kind, self.phase)
        if self.phase == "Training" and 0 < self.total <= self.step:
            self.phase = "Finishing"

    def _update_speed(self, event: Event) -> None:
        tokens, seconds = event["tokens"] - self._last[0], event["seconds"] - self._last[1]
        if self._last[1] or not self._begin or not self._begin[1]:  # not the first after a resume
            self.speed = tokens / seconds if seconds > 0 else None
        self._last = (event["tokens"], event["seconds"])

    @property
    def elapsed(self) -> float:
        """Seconds since this process began."""
        return self.clock() - self.started

    @property
    def remaining(self) -> float | None:
        """Seconds left, extrapolated from the steps of this process; None before the first."""
        if self._begin is None:
            return None
        since, first = self.clock() - self._begin[0], self._begin[1]
        return since / (self.step - first) * (self.total - self.step) if self.step > first else None


def named_metrics(event: Event) -> dict[str, str]:
    """The metrics of a validation, formatted, by name, most important first: {"BLEU": "31.2", "chrF": "55.0"}."""
    return {name: format(event[key], form) for key, name, form in METRICS if key in event}


def describe_metrics(event: Event) -> str:
    """The metrics of a validation in one line."""
    return "  ".join(f"{name} {value}" for name, value in named_metrics(event).items())


def duration(seconds: float | None) -> str:
    """3:07 or 2:15:00; a dash if it is not known."""
    if seconds is None:
        return "–"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def describe(event: Event, status: Status) -> Iterator[str]:
    """An event in lines of text; no lines for one that needs none."""
    kind = event["event"]
    if kind == "corpus":
        yield from _describe_corpus(event)
    elif kind == "plan":  # the settings that were chosen, and why
        yield from (f"{choice['name']} = {choice['value']}  ({choice['why']})" for choice in event["choices"])
    elif kind == "resumed":
        yield f"continuing from step {event['step']:,} of {status.total:,}"
    elif kind == "already_done":
        yield f"This training is already finished, at step {event['step']:,}. --fresh starts again."
    elif kind == "train":
        yield describe_step(status)
    elif kind == "valid":
        which = f" (average of the {event['averaged']} checkpoints)" if "averaged" in event else ""
        yield f"validation at step {event['step']:,}{which}: {describe_metrics(event)}  loss {event['loss']:.3f}"
        yield from (f"  {sample['source']}  →  {sample['output']}" for sample in event.get("samples", [])[:1])
    elif kind in ("averaging", "exporting", "certifying"):
        yield f"{status.phase} …"
    elif kind == "finished" and "certificate" in event:
        equal, probes = event["certificate"]["equal"], event["certificate"]["sources"]
        yield f"exported to CTranslate2; {equal} of {probes} probes have the same output as PyTorch"


def _describe_corpus(event: Event) -> Iterator[str]:
    """Its size, vocabulary and classes; and the examples that were left out, the most frequent reason first."""
    yield (
        f"corpus: {event['examples']:,} {event['kind']} to train on, {event['valid_examples']:,} to validate on, "
        f"{event['tokens']:,} tokens to train on"
    )
    yield f"vocabulary: {event['tokenizer']['size']:,} tokens ({event['tokenizer']['why']})"
    if classes := event["classes"]:
        yield "classes: " + ", ".join(f"{name} {count:,}" for name, count in classes.items())
        if max(classes.values()) > UNBALANCED * min(classes.values()):
            yield "  unbalanced: in the loss, classes are weighted by 1 / √frequency"
    if reasons := event["rejected"]["reasons"]:
        yield f"left out: {event['rejected']['total']:,} {event['kind']}"
        yield from (f"  {line}" for line in describe_reasons(reasons))


def describe_warning(event: Event) -> str | None:
    """A warning that is printed even with --quiet; None for most events."""
    kind = event["event"]
    if kind == "finding":
        first = f", first at {event['where']}" if event.get("where") else ""
        return with_flags(f"{event['what']}{first}. `jumok check` shows more.")
    if kind == "rejected":
        return with_flags(f"a checkpoint cannot be used and is skipped: {event['path']}: {event['reason']}")
    if kind == "restarted":
        return (
            f"{event['path']}: there is no checkpoint, though the log had come to step {event['step']:,}: "
            "the training starts again from the beginning, and its first validation replaces the model"
        )
    if kind == "memory":
        return (
            f"not enough memory: from step {event['step'] + 1:,} on, every batch is computed in {event['parts']} parts"
        )
    if kind == "finished" and "not_exported" in event:
        return with_flags(f"the model is not exported to CTranslate2: {event['not_exported']}")
    if kind == "resumed" and event["changed"]:
        changes = ", ".join(f"{name} {old} → {new}" for name, (old, new) in event["changed"].items())
        return f"the result will not be bit-identical to an uninterrupted training: {changes}"
    return None


def describe_step(status: Status) -> str:
    """One line about the progress of the training."""
    speed = "" if status.speed is None else f"  {status.speed:,.0f} {status.unit}/s"
    return (
        f"step {status.step:,}/{status.total:,}  epoch {status.epoch}  loss {status.loss:.3f}  "
        f"lr {status.learning_rate:.2e}{speed}  time left {duration(status.remaining)}"
    )
