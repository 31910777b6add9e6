"""One training from what was asked for to the model, the same for every task.

What is particular to a task stands in a `Task`: its data, its model, its loss, and what it is judged by.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jumok.bundle import save_bundle
from jumok.errors import ChangedDataError
from jumok.model.summary import count_parameters
from jumok.recipes.continuing import (
    already_finished,
    best_before,
    kept_tokenizer,
    require_same,
    require_same_data_settings,
    require_same_meaning,
    require_same_sizes,
)
from jumok.recipes.planning import Plan, filled, make_optimizer, new_model, validated_examples
from jumok.recipes.request import Request, Watch, asked_settings
from jumok.recipes.task import Task
from jumok.system import keep_freed_memory
from jumok.training.auto import forecast
from jumok.training.circumstances import versions
from jumok.training.distributed import RESTART_COUNT, World, join_world
from jumok.training.progress import TrainingOptions, Validation
from jumok.training.run_directory import RunDirectory
from jumok.training.schedule import Schedule, make_schedule
from jumok.training.settings import Settings
from jumok.training.trainer import Event, Trainer


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended."""

    run: Path
    model: Path  # the bundle of the best weights
    steps: int
    score: float | None  # of the best validation


def train(task: Task, out: Path, request: Request) -> TrainingResult:
    """Trains in the run directory `out`, from wherever it stands to the end."""
    asked = asked_settings(request, task.name)
    keep_freed_memory()
    with join_world(shard=request.get("shard", False)) as world, _run_directory(out, task.name, world) as run:
        if request.get("fresh") and world.rank == 0 and not _is_restarted():
            run.clear()
        world.wait()
        watch: Watch = request.get("watch", _ignore) if world.rank == 0 else _ignore
        job = _Job(task, run, asked, watch, request.get("continue_with_changes", False), world)
        finished = already_finished(run.path, job.settings)
        if finished is not None:
            watch({"event": "already_done", "step": finished["step"]})
            result = TrainingResult(run.path, run.model, finished["step"], finished["best_score"])
        else:
            progress = job.trainer(request.get("stop_requested", lambda: False)).train()
            result = TrainingResult(run.path, run.model, progress.step, progress.best_score)
        if world.rank == 0 and (said := task.finish(run.model)):
            watch({"event": "finished", **said})
        return result


def _run_directory(out: Path, task: str, world: World) -> RunDirectory:
    """Opened by the first process alone; the others come after it."""
    run = RunDirectory.open(out, task) if world.rank == 0 else None
    world.wait()
    return run or RunDirectory.follow(out, task)


def _is_restarted() -> bool:
    """Whether torchrun gives the same command once more, because a process had died: what it did so far shall stay."""
    return os.environ.get(RESTART_COUNT, "0") != "0"


def _ignore(_event: Event) -> None:
    """Nobody watches."""


class _Job:
    """What was asked for, resolved to numbers once and kept in run.json, and the trainer made of it."""

    def __init__(
        self, task: Task, run: RunDirectory, asked: Settings, watch: Watch, continue_with_changes: bool, world: World
    ) -> None:
        self.began = time.perf_counter()
        self.task, self.run, self.asked, self.watch, self.world = task, run, asked, watch, world
        self.changes_allowed = continue_with_changes
        self.before = run.read()
        if self.before is not None:
            require = require_same_data_settings if continue_with_changes else require_same
            require(run.path, self.before["asked"], asked)
        self.keeps_vocabulary = bool(self.before and self.before["keeps_vocabulary"])
        facts = self._prepare() if world.rank == 0 else {}
        fingerprint = world.from_first(facts.get("fingerprint"))
        self.facts = facts or task.reopen(run.store, fingerprint)
        if self.before is not None:
            require_same_meaning(run.path, self.before.get("fixed", {}), task.fixed())
        watch({"event": "corpus", **self.facts})
        for finding in self.facts.get("findings", ()) if self.before is None else ():
            watch({"event": "finding", **finding})
        unchanged = self.before is not None and Settings.from_dict(self.before["asked"]) == asked
        self.settings = Settings.from_dict(self.before["settings"]) if self.before and unchanged else self._resolve()
        self.settings = Settings.from_dict(world.from_first(self.settings.to_dict()))
        self.schedule = _schedule(self.settings)  # refused here if it cannot be, before anything is written
        self.best_before = best_before(run.path, self.before, going_on=not unchanged)
        if world.rank == 0:
            self._write_record()
        world.wait()
        watch({"event": "settings", "settings": self.settings.to_dict()})

    def _prepare(self) -> dict[str, Any]:
        """The data as it was, or, if that is allowed, as it is now: then with the vocabulary the model knows."""
        expected = self.before["fingerprint"] if self.before else None
        tokenizer = kept_tokenizer(self.run) if self.keeps_vocabulary else None
        try:
            return self.task.prepare(self.run.store, self.asked, expected=expected, tokenizer=tokenizer)
        except ChangedDataError:
            if not self.changes_allowed:
                raise
        tokenizer = kept_tokenizer(self.run)
        self.keeps_vocabulary = tokenizer is not None
        return self.task.prepare(self.run.store, self.asked, expected=None, tokenizer=tokenizer)

    def trainer(self, stop_requested: Callable[[], bool]) -> Trainer:
        """Everything put together."""
        settings = self.settings
        model = new_model(self.task, settings)
        self.shown = new_model(self.task, settings) if self.world.sharded and self.world.rank == 0 else model
        loss = self.world.shard(model, self.task.loss(model, settings))
        options = TrainingOptions(
            seed=settings.seed,
            steps=filled(settings.stop.steps),
            accumulate=filled(settings.batch.accumulate),
            clip=settings.optimizer.clip,
            log_every=settings.log.every,
            validate_every=filled(settings.validation.every),
            checkpoint_every=filled(settings.checkpoint.every),
            patience=settings.stop.patience,
            average=settings.checkpoint.average,
            new_order_allowed=self.changes_allowed,
            best_before=self.best_before,
        )
        return Trainer(
            model=model,
            shown=self.shown,
            optimizer=make_optimizer(model, settings),
            schedule=self.schedule,
            loss=loss,
            epochs=self.task.epochs(settings),
            validate=lambda: self.task.validate(self.shown, validated_examples(self.task, settings)),
            publish=self._publish,
            options=options,
            run=self.run,
            watch=self.watch,
            stop_requested=stop_requested,
            world=self.world,
        )

    def _resolve(self) -> Settings:
        """Fills in what was not given, from the corpus and a few seconds of real training."""
        asked = self._asked_of_this_model()
        plan = Plan(self.task, asked, self.facts["tokens"], self.world)
        if self.before:
            old = Settings.from_dict(self.before["settings"])
            require_same_sizes(self.run.path, self.task.config(old), self.task.config(plan.settings))
        settings, costs = plan.fit_to_machine(self.began)
        choices = [asdict(choice) for choice in plan.choices]
        self.watch({"event": "plan", "choices": choices, "expected_seconds": forecast(settings, costs)})
        return settings

    def _asked_of_this_model(self) -> Settings:
        """What was asked for; of a model that is there already, its sizes too, whatever the corpus has become."""
        asked = self.asked
        if self.before is None:
            return asked
        old = self.before["settings"]
        kept = {f"model.{name}": value for name, value in old["model"].items() if name != "dropout"}
        kept = {name: value for name, value in kept.items() if not asked.has(name)}
        return asked.changed(kept | ({"preset": old["preset"]} if asked.preset == "auto" else {}))

    def _write_record(self) -> None:
        record = {
            "asked": self.asked.to_dict(),
            "settings": self.settings.to_dict(),
            "inputs": list(self.task.inputs),
            "fingerprint": self.facts["fingerprint"],
            "keeps_vocabulary": self.keeps_vocabulary,
            "fixed": dict(self.task.fixed()),
            "best_before": self.best_before,
        }
        if self.before is None or any(self.before.get(name) != value for name, value in record.items()):
            self.run.write({**record, "versions": versions()})

    def _publish(self, validation: Validation, step: int) -> None:
        """The best weights so far as a bundle that anybody can use while the training goes on."""
        config = self.task.config(self.settings)
        weights = {name: weight.detach().numpy() for name, weight in self.shown.state_dict().items()}
        card = {
            "task": self.task.name,
            "inputs": list(self.task.inputs),
            "fingerprint": self.facts["fingerprint"],
            "seed": self.settings.seed,
            "step": step,
            "metrics": {name: value for name, value in validation.metrics.items() if name != "samples"},
            "parameters": count_parameters(self.shown),
            **self.task.card(),
            "versions": versions(),
        }
        encoder = "tokenizer", self.task.tokenizer.to_bytes()
        save_bundle(self.run.model, config=config.to_dict(), weights=weights, encoder=encoder, card=card)


def _schedule(settings: Settings) -> Schedule:
    chosen = settings.schedule
    peak, total = filled(settings.optimizer.lr), filled(settings.stop.steps)
    return make_schedule(filled(chosen.name), peak=peak, warmup=filled(chosen.warmup), total=total)
