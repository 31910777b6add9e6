"""One training, the same for every task: open the run, prepare the data, resolve and record the settings, train."""

import inspect
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypedDict, cast

from torch import nn

from jumok.bundle import save_bundle
from jumok.data.examples import InputEncoder
from jumok.data.source_files import require_files
from jumok.display.opening import open_display
from jumok.engines.copying import NOTE
from jumok.errors import ChangedDataError, ConfigError, did_you_mean
from jumok.model.devices import deterministic
from jumok.model.summary import count_parameters
from jumok.recipes.planning import (
    Plan,
    choose_hardware,
    chosen,
    make_optimizer,
    new_model,
    plan_training,
    recorded_plan,
    resolve_settings,
    validated_examples,
)
from jumok.recipes.recipe import PathLike, Recipe
from jumok.recipes.resuming import (
    already_finished,
    best_before,
    changed_data_explained,
    described_data,
    kept_encoder,
    require_same,
    require_same_data_settings,
    require_same_meaning,
    require_same_sizes,
    sizes_of_the_model,
    with_recorded_stages,
)
from jumok.system import keep_freed_memory
from jumok.tasks import resolve, task_named
from jumok.training.auto import require_one_length
from jumok.training.checkpoint import newest_step
from jumok.training.compiling import compile_layers
from jumok.training.distributed import RESTART_COUNT, ProcessGroup, join_process_group
from jumok.training.environment import limit_threads, versions
from jumok.training.events import Event, EventCallback, ignore_event
from jumok.training.length import Length
from jumok.training.progress import TrainingOptions, Validation
from jumok.training.records import FIRST_STAGE
from jumok.training.run_directory import RunDirectory
from jumok.training.schedule import make_schedule
from jumok.training.settings import Settings
from jumok.training.trainer import Trainer


class TrainRequest(TypedDict, total=False):
    """What every training can be asked for, beside its files."""

    settings: Settings | Mapping[str, Any] | None  # all settings, or dotted names and values
    preset: str | None
    minutes: float | None  # one of these three
    steps: int | None
    epochs: float | None
    fresh: bool  # delete what was trained in `out`, and start again
    continue_with_changes: bool  # resume although settings or files changed
    skip_unusable: bool  # train although more than a third of a file cannot be used
    shard: bool  # several processes share one model's weights; for a model too large for one
    note: str  # free text, kept with the model
    progress: bool  # show it, on standard error or in the notebook; True, unless given
    on_event: EventCallback  # called with everything that happens; see training/events.py
    stop_requested: Callable[[], bool]  # asked after every step: True saves and stops
    began: float  # time.perf_counter() when the minutes asked for began; now, if not given


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended."""

    run: Path
    model: Path  # the bundle of the best weights
    steps: int
    score: float | None  # of the best validation


def plan(task: str, *data: PathLike, valid: Sequence[PathLike] | None = None, **options: Any) -> Plan:
    """What `train` with these arguments would do. Nothing is trained, and nothing is left on the disk."""
    recipe, request = _recipe_and_request(task, data, valid, options)
    return plan_training(recipe, asked_settings(task, request), skip_unusable=request.get("skip_unusable", False))


def train(
    task: str, *data: PathLike, out: PathLike, valid: Sequence[PathLike] | None = None, **options: Any
) -> TrainingResult:
    """Train a model of that task in the run directory `out`, from the last checkpoint (or the start) to the end.
    Called again with the same arguments it resumes. `options` are those of `TrainRequest` and of the task's recipe."""
    recipe, request = _recipe_and_request(task, data, valid, options)
    asked = asked_settings(task, request)
    request.setdefault("began", time.perf_counter())
    keep_freed_memory()
    limit_threads()
    hardware = choose_hardware(asked)
    device, precision = hardware.device, hardware.name
    with (
        deterministic(device),
        join_process_group(shard=request.get("shard", False), device=device, precision=precision) as group,
        open_run(Path(out), recipe, group) as run,
        _progress_shown(request, group, f"{task_named(task).title} → {out}") as on_event,
    ):
        return _Job(recipe, run, group, asked, request, on_event).run_to_the_end()


@contextmanager
def _progress_shown(request: TrainRequest, group: ProcessGroup, title: str) -> Iterator[EventCallback]:
    """What is to be called with every event: a display, unless it is not wanted, and the callback of the request."""
    callback = request.get("on_event", ignore_event)
    if group.rank != 0:
        yield ignore_event
    elif not request.get("progress", True):
        yield callback
    else:
        with open_display(title) as display:

            def on_event(event: Event) -> None:
                display(event)
                callback(event)

            yield on_event


def asked_settings(task: str, request: TrainRequest) -> Settings:
    """All settings asked for. An impossible preset, model, length or device is refused before anything is written."""
    given = request.get("settings")
    settings = given if isinstance(given, Settings) else Settings.from_dict({}).changed(given or {})
    names = {"preset": "preset", "minutes": "stop.minutes", "steps": "stop.steps", "epochs": "stop.epochs"}
    asked = settings.changed(
        {names[key]: value for key, value in request.items() if key in names and value is not None}
    )
    require_one_length(asked.stop)
    resolve(task_named(task).recipe).check_settings(asked)
    choose_hardware(asked)
    return asked


def _recipe_and_request(
    task: str, data: Sequence[PathLike], valid: Sequence[PathLike] | None, options: Mapping[str, Any]
) -> tuple[Recipe, TrainRequest]:
    """Options of the recipe's constructor go there, the others are the request."""
    recipe_type = resolve(task_named(task).recipe)
    own = [name for name in inspect.signature(recipe_type).parameters if name not in ("data", "valid")]
    known = [*TrainRequest.__annotations__, *own]
    for name in options:
        if name not in known:
            raise ConfigError(f'Unknown option "{name}".{did_you_mean(name, known)}')
    recipe = recipe_type(data, valid, **{name: options[name] for name in own if name in options})
    return recipe, cast(TrainRequest, {name: value for name, value in options.items() if name not in own})


def open_run(out: Path, recipe: Recipe, group: ProcessGroup) -> RunDirectory:
    """The run directory. Rank 0 locks and opens it; the others only read in it."""
    if group.rank == 0:  # a misspelt file name must leave no directory behind
        require_files([*recipe.data, *(recipe.valid or ())], f"Give {recipe.kind.files}.")
    run = RunDirectory.open(out, recipe.task) if group.rank == 0 else None
    group.barrier()
    return run or RunDirectory.follow(out, recipe.task)


class _Job:
    """One call of `train`: what its steps share, and the steps."""

    def __init__(
        self,
        recipe: Recipe,
        run: RunDirectory,
        group: ProcessGroup,
        asked: Settings,
        request: TrainRequest,
        on_event: EventCallback,
        second_stage: "_Job | None" = None,
    ) -> None:
        self.second_stage = second_stage
        self.recipe, self.run, self.group, self.asked, self.request = recipe, run, group, asked, request
        self.began, self.on_event = request["began"], on_event
        self.stop_requested = request.get("stop_requested", lambda: False)
        self.changes_allowed = request.get("continue_with_changes", False)
        self.skip_unusable = request.get("skip_unusable", False)
        # torchrun repeats the same command when a process had died: what was trained so far must stay.
        self.fresh = request.get("fresh", False) and os.environ.get(RESTART_COUNT, "0") == "0"
        self.before = None if self.fresh else run.read()
        self.note = request.get("note") or (self.before or {}).get("note")
        self.unchanged = self.before is not None and Settings.from_dict(self.before["asked"]).same_training(asked)
        self.keeps_encoder = bool(self.before and self.before["keeps_vocabulary"])
        self.elapsed = 0.0  # seconds of this training, of earlier processes too; known at its end

    def run_to_the_end(self) -> TrainingResult:
        """Prepare, resolve, record, train, export."""
        if self.before is not None:
            require = require_same_data_settings if self.changes_allowed else require_same
            require(self.run.path, self.before["asked"], self.asked)
        facts = self.prepare()
        self.on_event(cast(Any, {"event": "corpus", **facts}))
        plan, length = self.resolve()
        if self.fresh:  # only now: a corpus or a setting that cannot be used must not cost the model that is there
            self.clear_run()
        self.best_before = best_before(self.run.path, self.before, resumed=not self.unchanged)
        self.record(plan, length)
        self.on_event({"event": "settings", "settings": plan.settings.to_dict(), "steps": length.changes[-1][1]})
        finished = already_finished(self.run.path, _limits(plan.settings))
        if finished is not None:
            self.on_event({"event": "already_done", "step": finished["step"]})
            steps, score, self.elapsed = finished["step"], finished["best_score"], finished["seconds"]
        else:
            trainer = self.make_trainer(plan, length)
            progress = trainer.train()
            steps, score, self.elapsed = progress.step, progress.best_score, trainer.elapsed()
        if self.group.rank == 0:
            self.on_event(cast(Any, {"event": "finished", **self.recipe.export(self.run.model, self.on_event)}))
        return TrainingResult(self.run.path, self.run.model, steps, score)

    def prepare(self) -> dict[str, Any]:
        """Read the corpus, on rank 0, or find it ready in the run; returns the facts about it."""
        self.on_event({"event": "reading"})
        facts = self._prepare_on_rank_0() if self.group.rank == 0 else {}
        fingerprint = self.group.broadcast(facts.get("fingerprint"))
        facts = facts or self.recipe.reopen(self.run.store, fingerprint)
        for finding in facts.get("findings", ()) if self.before is None else ():
            self.on_event(cast(Any, {"event": "finding", **finding}))
        for layout in facts.get("layouts", ()):
            self.on_event(cast(Any, {"event": "file", **layout}))
        if (first := self.recipe.first_stage(with_recorded_stages(self.asked, self.before))) is not None:
            self._train_first_stage(*first)
            facts = self.recipe.corpus.facts
        if self.before is not None:
            require_same_meaning(self.run.path, self.before.get("fixed", {}), self.recipe.fixed())
            if self.before["inputs"] and self.before["fingerprint"] == facts["fingerprint"]:
                self.recipe.inputs = self.before["inputs"]  # the same contents, now perhaps under other names
        return facts

    def _train_first_stage(self, stage: Recipe, asked: Settings) -> None:
        """Train or resume the first stage in a run directory of its own inside this one. Its time counts here too."""
        self.on_event({"event": "stage", "number": 1, "title": stage.title})
        group = self.group.unsharded()
        with open_run(self.run.path / FIRST_STAGE, stage, group) as run:
            job = _Job(stage, run, group, asked, self.request, self.on_event, second_stage=self)
            job.run_to_the_end()
        if newest_step(self.run.checkpoints) is None:  # else the time is in the checkpoint
            self.began = min(self.began, time.perf_counter() - job.elapsed)
        if self.group.rank == 0:
            self.recipe.use_first_stage(stage, run.model, self.run.store, self.on_event)
        self.group.barrier()
        if self.group.rank != 0:
            self.recipe.use_first_stage(stage, run.model, self.run.store)
        self.on_event({"event": "stage", "number": 2, "title": self.recipe.title})

    def _prepare_on_rank_0(self) -> dict[str, Any]:
        """The data as it was or, if changes are allowed, as it is now: then with the encoder that the model knows."""

        def on_phase(name: str) -> None:
            self.on_event(cast(Any, {"event": name}))

        def keep_encoder() -> InputEncoder | None:
            encoder = self._kept_encoder()
            self.keeps_encoder = encoder is not None
            return encoder

        try:
            return self.recipe.prepare(
                self.run.store,
                self.asked,
                expected=self.before["fingerprint"] if self.before else None,
                encoder=self._kept_encoder() if self.keeps_encoder else None,
                if_changed=keep_encoder if self.changes_allowed else None,
                skip_unusable=self.skip_unusable,
                on_phase=on_phase,
            )
        except ChangedDataError as error:
            assert self.before is not None
            raise changed_data_explained(self.run.path, self.before, error, self.recipe.why_read_otherwise) from None

    def _kept_encoder(self) -> InputEncoder | None:
        return kept_encoder(self.run, self.recipe.kind.encoder)

    def clear_run(self) -> None:
        """Delete what was trained here before, and what a second stage has made of it."""
        if self.second_stage is not None:
            self.second_stage.clear_run()
        if self.group.rank == 0:
            self.run.clear()
        self.group.barrier()

    def resolve(self) -> tuple[Plan, Length]:
        """The plan as it was recorded, or a new one; the same in every process."""
        if self.before is not None and self.unchanged:
            settings = Settings.from_dict(self.before["settings"]).on_hardware_of(self.asked)
            changes = self.before["length"] or [[0, chosen(settings.stop.steps)]]
            plan = recorded_plan(self.recipe, settings, changes[0][1])
        else:
            plan = self._new_plan()
            recorded = self.before["length"] if self.before and plan.settings.stop.steps is None else None
            changes = recorded or [[0, plan.steps]]
        values, changes = self.group.broadcast([plan.settings.to_dict(), changes])
        plan = replace(plan, settings=Settings.from_dict(values), steps=changes[0][1])
        length = Length(changes, warmup=chosen(plan.settings.schedule.warmup))
        _schedule(plan.settings, length)  # an impossible one is refused here, before anything is written
        return plan, length

    def _new_plan(self) -> Plan:
        asked = self.asked
        if self.before is not None:
            recorded, predicts = self.before["settings"], self.recipe.predicted is not None
            config = self.recipe.config(Settings.from_dict(recorded)).to_dict()
            asked = sizes_of_the_model(asked, recorded, config, predicts_tokens=predicts)
        plan = resolve_settings(self.recipe, asked, began=self.began, group=self.group, on_event=self.on_event)
        if self.before is not None:
            old = Settings.from_dict(self.before["settings"])
            require_same_sizes(self.run.path, self.recipe.config(old), self.recipe.config(plan.settings))
        self.on_event({"event": "plan", "choices": [asdict(choice) for choice in plan.choices]})
        return plan

    def record(self, plan: Plan, length: Length) -> None:
        """Write run.json, if anything in it changed."""
        if self.group.rank == 0:
            record = {
                "asked": self.asked.to_dict(),
                "settings": plan.settings.to_dict(),
                "length": length.changes,
                "inputs": list(self.recipe.inputs),
                "fingerprint": plan.facts["fingerprint"],
                "data": described_data(plan.facts, self.before),
                "keeps_vocabulary": self.keeps_encoder,
                "fixed": dict(self.recipe.fixed()),
                "best_before": self.best_before,
                "first_epoch": 1 if self.before is None else self.before["first_epoch"],
                "note": self.note,
            }
            if self.before is None or any(self.before.get(name) != value for name, value in record.items()):
                self.run.write({**record, "versions": versions()})
        self.group.barrier()

    def make_trainer(self, plan: Plan, length: Length) -> Trainer:
        """The trainer, with everything it needs."""
        recipe, settings, group = self.recipe, plan.settings, self.group
        recipe.fit(settings)
        model = new_model(recipe, settings)
        group.start_alike(model)
        if settings.compile:
            compile_layers(model, group)
        full_model = new_model(recipe, settings) if group.sharded and group.rank == 0 else model
        loss = group.shard(model, recipe.loss(model, settings), choose_hardware(settings).dtype)
        count = validated_examples(recipe, settings)
        return Trainer(
            model=model,
            full_model=full_model,
            after_update=lambda step: recipe.after_update(model, settings, step),
            optimizer=make_optimizer(model, settings, group),
            schedule=_schedule(settings, length),
            length=length,
            loss=loss,
            epochs=recipe.epochs(settings),
            validate=lambda: recipe.validate(full_model, count),
            publish=lambda validation, step: self.publish(plan, full_model, validation, step),
            options=self._options(plan),
            run=self.run,
            on_event=self.on_event,
            stop_requested=self.stop_requested,
            group=group,
            precision=choose_hardware(settings),
            began=self.began,
        )

    def _options(self, plan: Plan) -> TrainingOptions:
        settings = plan.settings
        minutes = settings.stop.minutes if settings.stop.steps is None else None
        return TrainingOptions(
            seed=settings.seed,
            accumulate=chosen(settings.batch.accumulate),
            clip=settings.optimizer.clip,
            log_every=settings.log.every,
            validate_every=settings.validation.every,
            validations=plan.validations,
            checkpoint_every=settings.checkpoint.every,
            patience=settings.stop.patience,
            average=settings.checkpoint.average,
            new_order_allowed=self.changes_allowed,
            best_before=self.best_before,
            highest_score=self.recipe.highest_score,
            limits=_limits(settings),
            seconds=None if minutes is None else 60 * minutes,
            validation_seconds=plan.validation_seconds,
            validation_steps=plan.work.validation_steps,
            export_validations=plan.export_validations,
        )

    def publish(self, plan: Plan, model: nn.Module, validation: Validation, step: int) -> None:
        """Write the bundle of the best model so far. It can be used while the training continues."""
        tensors = {**model.state_dict(), **validation.weights}
        card = {
            "task": self.recipe.task,
            "created": datetime.now(UTC).isoformat(timespec="seconds"),
            **({NOTE: self.note} if self.note else {}),
            "inputs": list(self.recipe.inputs),
            "fingerprint": plan.facts["fingerprint"],
            "seed": plan.settings.seed,
            "step": step,
            "metrics": {name: value for name, value in validation.metrics.items() if name != "samples"},
            "parameters": count_parameters(model),
            **self.recipe.card(),
            **validation.card,
            "versions": versions(),
        }
        save_bundle(
            self.run.model,
            config=self.recipe.config(plan.settings).to_dict(),
            weights={name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()},
            encoder=(self.recipe.kind.encoder, self.recipe.corpus.encoder.to_bytes()),
            card=card,
        )


def _schedule(settings: Settings, length: Length) -> Callable[[int], float]:
    given = settings.schedule
    return make_schedule(
        chosen(given.name), peak=chosen(settings.optimizer.lr), warmup=chosen(given.warmup), length=length
    )


def _limits(settings: Settings) -> dict[str, Any]:
    """What ends the training: a finished one is finished for the same limits only."""
    stop = settings.stop
    length = {"minutes": stop.minutes} if stop.steps is None else {"steps": stop.steps}
    return {**length, "patience": stop.patience}
