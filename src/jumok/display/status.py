"""The state of a training, gathered from its events."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

Event = Mapping[str, Any]

SPEED_SECONDS = 10.0  # the speed is that of so many seconds of training
# What the program does after an event, until the next one.
PHASES = {
    "reading": "Reading and checking the corpus",
    "vocabulary": "Learning the vocabulary",
    "encoding": "Encoding the corpus",
    "translating": "Translating the corpus",
    "measuring": "Measuring the speed of this machine",
    "settings": "Preparing the model",
    "training": "Training",
    "step": "Training",
    "train": "Training",
    "validating": "Validating",
    "checkpoint": "Saving a checkpoint",
    "averaging": "Averaging checkpoints",
    "exporting": "Exporting to CTranslate2",
    "certifying": "Certifying the export",
    "finished": "Done",
}

# Key in the log, name, format. The first one that a task has is the metric the best model is chosen by.
METRICS = (
    ("bleu", "BLEU", ".1f"),
    ("chrf", "chrF", ".1f"),
    ("macro_f1", "macro-F1", ".1%"),
    ("accuracy", "accuracy", ".1%"),
    ("bits_per_byte", "bits/byte", ".3f"),
    ("perplexity", "perplexity", ".1f"),
    ("psnr", "PSNR", ".1f"),
    ("codes_used", "codes used", ".0%"),
    ("bits_per_token", "bits/image token", ".3f"),
)


@dataclass
class Status:
    """Everything that a display shows. `update` is called with every event."""

    clock: Callable[[], float] = time.monotonic
    stage: str = ""  # of a training in stages
    phase: str = PHASES["reading"]
    total: int = 0  # steps
    step: int = 0
    epoch: int = 0  # from 1 on; 0 before the first step
    loss: float | None = None
    learning_rate: float | None = None
    unit: str = "tokens"  # what the loss is a mean of; texts for a classifier
    metrics: dict[str, str] = field(default_factory=dict)  # of the last validation, by name
    best: dict[str, str] = field(default_factory=dict)  # of the best validation
    losses: list[float] = field(default_factory=list)  # of every log entry
    scores: list[float] = field(default_factory=list)  # of every validation, averages left out: by the first metric
    samples: list[Mapping[str, str]] = field(default_factory=list)
    started: float = 0.0
    _forecast: tuple[float, float] | None = None  # seconds left, and when that was said
    _recent: deque[tuple[int, float]] = field(default_factory=deque)  # tokens and seconds of training, the last few
    _best_score: float = -math.inf

    def __post_init__(self) -> None:
        self.started = self.clock()

    def update(self, event: Event) -> None:
        """Take over what the event says."""
        kind = event["event"]
        if kind == "stage":
            self._start_stage(f"Stage {event['number']} of 2: {event['title']}")
        elif kind == "corpus" and event.get("classes"):
            self.unit = event.get("kind", "texts")
        elif kind == "settings":
            self.total = event["steps"]
            self._recent.append((0, 0.0))
        elif kind == "schedule":
            self.total = event["last_step"]
        elif kind == "resumed":
            self.step = event["step"]
            self._recent = deque()  # the speed before the stop is not that of this process
            self.losses = list(event["losses"])
            for validation in event["validations"]:
                self._update_scores(validation)
        elif kind in ("step", "train", "checkpoint"):
            self._update_progress(event)
        elif kind == "valid":
            self._update_scores(event)
        elif kind == "finished":
            self._forecast = (0.0, self.clock())
        self.phase = PHASES.get(kind, self.phase)

    def _start_stage(self, title: str) -> None:
        """Forget the numbers of the stage before; the time goes on."""
        fresh = Status(self.clock, stage=title)
        self.__dict__.update(fresh.__dict__ | {"started": self.started})

    def _update_progress(self, event: Event) -> None:
        self.step, self.epoch = event["step"], event["epoch"]
        if event["event"] == "step":
            self._forecast = (event["seconds_left"], self.clock())
        elif event["event"] == "train":
            self.loss, self.learning_rate = event["loss"], event["lr"]
            self.losses.append(event["loss"])
        self._recent.append((event["tokens"], event["seconds"]))
        while len(self._recent) > 2 and event["seconds"] - self._recent[1][1] >= SPEED_SECONDS:
            self._recent.popleft()

    def _update_scores(self, event: Event) -> None:
        if "averaged" in event and not event.get("best", True):  # logs of older versions do not say it
            return  # it is not used: what is shown stays
        self.metrics, self.samples = named_metrics(event), event.get("samples", [])
        if event.get("best", event["score"] > self._best_score):
            self.best, self._best_score = self.metrics, event["score"]
        if "averaged" not in event:
            self.scores += [event[key] for key, _, _ in METRICS if key in event][:1]

    @property
    def speed(self) -> float | None:
        """`unit` per second of training, of the last few seconds; None before the first step of this process."""
        recent = self._recent  # another thread may draw while this one is replaced
        if not recent:
            return None
        tokens, seconds = (last - first for first, last in zip(recent[0], recent[-1], strict=True))
        return tokens / seconds if seconds > 0 else None

    @property
    def elapsed(self) -> float:
        """Seconds since this process began."""
        return self.clock() - self.started

    @property
    def seconds_left(self) -> float | None:
        """Until the end, as the training last forecast it, less the time since; None before the first step."""
        if self._forecast is None:
            return None
        seconds, since = self._forecast
        return max(0.0, seconds - (self.clock() - since))


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
