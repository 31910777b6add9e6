"""What the explorer can be asked: traces, arrays, the importance of heads, the log of a training. Requests are checked
before anything runs; a request names models by their number, never by a path."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from jumok.errors import ConfigError, InputError
from jumok.lens.decisions import attribution
from jumok.lens.importance import measure_for, rank_heads, require_rankable
from jumok.lens.interventions import Means, changed, mean_outputs
from jumok.lens.page import document, encoded
from jumok.lens.replay import recorded_attention, recorded_steps
from jumok.lens.traces import Trace
from jumok.lens.tracing import lens_module, torch_engine, trace
from jumok.tasks import task_named, task_of_config
from jumok.training.records import read_log, read_run

LONGEST_TEXT = 4_000  # characters
KEPT_TRACES = 16
FARTHEST_SHIFT = 10_000  # of positions: the table of a model grows to the farthest one
Way = Literal["zero", "uniform", "mean"]


class Request(BaseModel):
    """A request of the page; an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Changes(Request):
    """Changes of the model; see `jumok.lens.interventions.changed`."""

    heads: list[tuple[str, int, Way]] = Field(default_factory=list, max_length=1_000)
    beta: float | None = Field(default=None, ge=0, le=1e6, allow_inf_nan=False)
    hard: bool = False
    attention: str | None = None
    positions: Literal["removed", "shuffled"] | Annotated[int, Field(ge=0, le=FARTHEST_SHIFT)] | None = None
    seed: int = Field(default=0, ge=0, le=2**31)


class TraceRequest(Request):
    """A text, and how it is traced."""

    model: int = 0
    text: str = Field(max_length=LONGEST_TEXT)  # of a classifier of pictures: the name of one
    picture: str | None = None  # the file of a picture that the page was given, as base64
    seed: int | None = Field(default=None, ge=0, le=2**31)  # of a picture that is painted
    guidance: float | None = Field(default=None, ge=0, le=100)
    target: str | None = Field(default=None, max_length=LONGEST_TEXT)
    target_ids: list[int] | None = Field(default=None, max_length=1_000)  # the same by ids
    force: list[int] | None = Field(default=None, max_length=1_000)  # ids that the output begins with
    sentence: int = Field(default=0, ge=0, le=10_000)  # of a text of several
    replace: dict[int, str] = Field(default_factory=dict, max_length=100)
    beam: int = Field(default=5, ge=1, le=20)
    length_penalty: float = Field(default=1.0, ge=0, le=5)
    continue_by: int = Field(default=0, ge=0, le=200)
    changes: Changes = Field(default_factory=lambda: Changes())


class RankRequest(Request):
    """Heads are ranked by the log-probability of `target`, or of the model's own output."""

    model: int = 0
    text: str = Field(max_length=LONGEST_TEXT)
    target: str | None = Field(default=None, max_length=LONGEST_TEXT)
    way: Way = "zero"


class AttributionRequest(Request):
    """Which tokens of a text speak for `label` rather than for `other`; see `jumok.lens.decisions.attribution`."""

    model: int = 0
    text: str = Field(max_length=LONGEST_TEXT)
    label: str | None = None
    other: str | None = None


@dataclass(frozen=True)
class Entry:
    """A model that the page may choose."""

    title: str
    load: Callable[[], Any]  # the loaded model, with PyTorch
    code: str = ""  # lines of Python that load it as `model`


class Session:
    """Loaded models and the traces that a page has seen. For several threads: one model runs at a time."""

    def __init__(
        self, entries: Sequence[Entry], run: Path | None = None, pictures: Mapping[str, Path] | None = None
    ) -> None:
        self.entries, self.run, self.pictures = list(entries), run, pictures or {}  # by the names that the page uses
        self._loaded: dict[int, Any] = {}
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._running = threading.RLock()
        self._count = 0

    def model(self, number: int) -> Any:
        """A model by its number, loaded when it is first asked for, with PyTorch."""
        if not 0 <= number < len(self.entries):
            raise InputError(f"There is no model {number}: they are numbered from 0 to {len(self.entries) - 1}.")
        with self._running:
            if number not in self._loaded:
                self._loaded[number] = _require_transformer(self.entries[number].load())
            return self._loaded[number]

    def models(self) -> list[dict[str, Any]]:
        """What the picker shows."""
        found = []
        for number, entry in enumerate(self.entries):
            model = self.model(number) if number == 0 or number in self._loaded else None
            facts = {"task": model.task, "card": model.card} if model else {}
            config = torch_engine(model).model.config.to_dict() if model else {}
            found.append({"id": number, "title": entry.title, "code": entry.code, "config": config, **facts})
        return found

    def trace(
        self, contents: dict[str, Any], *, room: int | None = None, check: Callable[[], None] = lambda: None
    ) -> dict[str, Any]:
        """The document of a text's trace; its arrays can be asked for by its id. `room` is for a saved page. `check` is
        called before the model runs and in every step of a search: it raises if nobody waits for the trace any more."""
        request = parse(TraceRequest, contents)
        with self._running:
            check()
            model = self.model(request.model)
            source, options = self._requested(request, model, check)
            with _changes(model, request.changes, lambda: _means(model, source, options)):
                found = trace(model, source, **options)
            found = found if isinstance(source, str) else replace(found, text=request.text)
            self._count += 1
            identity = f"t{self._count}"
            self._traces[identity] = found
            while len(self._traces) > KEPT_TRACES:
                self._traces.popitem(last=False)
        return document(found, identity=identity, room=room)

    def _requested(self, request: TraceRequest, model: Any, check: Callable[[], None]) -> tuple[Any, dict[str, Any]]:
        """What is traced, and the options of `trace`. Tasks of pictures say it themselves."""
        of_task = getattr(lens_module(model.task), "requested", None)
        return of_task(request, self.pictures) if of_task else (request.text, _options(request, model, check))

    def array(self, identity: str, name: str) -> bytes:
        """The values of an array of a trace, as float32."""
        found = self._traces.get(identity)
        if found is None:
            raise InputError("This trace is no longer kept: ask for it again.")
        return encoded(found[name])

    def rank(self, contents: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Every head, as soon as it is measured. Stop taking from it to cancel."""
        request = parse(RankRequest, contents)
        with self._running:
            model = self.model(request.model)
            require_rankable(model)  # before the text is traced: of a picture it would be the path of a file
            target = request.target if request.target is not None else trace(model, request.text).output
            measure = measure_for(model, [(request.text, target)], score=False)
            found = rank_heads(model, measure, request.way)
        while True:
            with self._running:  # between two heads others may run
                head = next(found, None)
            if head is None:
                return
            yield asdict(head)

    def attribution(self, contents: dict[str, Any]) -> dict[str, Any]:
        """What each token of a text adds to the decision of a classifier."""
        request = parse(AttributionRequest, contents)
        with self._running:
            model = self.model(request.model)
            return attribution(model, request.text, label=request.label, other=request.other).to_dict()

    def replay(self, step: int | None) -> Any:
        """The steps whose attention the training recorded; with a step, the attention of that validation."""
        if step is None:
            return recorded_steps(self.run, self.log()) if self.run else []
        if self.run is None:
            raise InputError("This model has no run directory.")
        return recorded_attention(self.run, step, self.model(0).tokenizer)

    def training(self) -> dict[str, Any] | None:
        """Schedule of the learning rate, as run.json has it, of the training whose run directory this is; None without
        one."""
        if self.run is None:
            return None
        settings = (read_run(self.run) or {}).get("settings", {})
        return {**settings.get("schedule", {}), "lr": settings.get("optimizer", {}).get("lr")}

    def log(self) -> list[dict[str, Any]]:
        """The log of the training whose run directory this is, which may be writing it; empty without one."""
        return read_log(self.run) if self.run else []


def _require_transformer(model: Any) -> Any:
    """The model, if the page can show it: it is made of the parts of a Transformer."""
    lens_module(model.task)  # fails if the task has none
    task = task_of_config(torch_engine(model).model.config.to_dict())
    if task != task_named(model.task):
        raise ConfigError(
            f"The explorer shows the parts of a Transformer; this is a {task.title}. `jumok plot attention` draws what "
            "it attends to, if it has attention."
        )
    return model


def parse(kind: Any, contents: dict[str, Any]) -> Any:
    """A checked request; what is wrong with it is one InputError."""
    try:
        return kind.model_validate_json(json.dumps(contents))  # as JSON: there a list may be a tuple
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        if first["type"] == "string_too_long":
            length, most = len(first["input"]), first["ctx"]["max_length"]
            advice = f"at most {most:,} can be looked at. Take a part of it."
            raise InputError(f"The {where} has {length:,} characters; {advice}") from error
        raise InputError(f"{where}: {first['msg']}") from error


def _options(request: TraceRequest, model: Any, check: Callable[[], None]) -> dict[str, Any]:
    """The options of `trace` for the task of the model."""
    if model.task == "language_model":
        return {"continue_by": request.continue_by, "temperature": 0.0} if request.continue_by else {}
    if model.task != "translator":
        return {}
    options: dict[str, Any] = {"target": request.target, "target_ids": request.target_ids}
    options |= {"force": request.force, "replace": request.replace, "sentence": request.sentence}
    return options | {"beam": request.beam, "length_penalty": request.length_penalty, "on_step": check}


def _changes(model: Any, changes: Changes, measure: Callable[[], Means]) -> AbstractContextManager[None]:
    """The changes of a request; `measure` computes the mean output of every head, if one is replaced by it."""
    if changes == Changes():
        return nullcontext()
    heads = {(name, head): way for name, head, way in changes.heads}
    means = measure() if "mean" in heads.values() else None
    return changed(model, heads=heads, means=means, **changes.model_dump(exclude={"heads"}))


def _means(model: Any, source: Any, options: dict[str, Any]) -> Means:
    """The mean output of every head over the positions of a text, and of the output that the unchanged model gives it;
    not over what else a search tried."""
    if model.task == "translator":
        output = trace(model, source, **options).facts["chosen"][:-1]
        options = options | {"target": None, "target_ids": output}
    with mean_outputs(model) as means:
        trace(model, source, **options)
    return means
