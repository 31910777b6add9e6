"""The training loop. It knows steps, gradients, checkpoints and validation, and nothing of what is being learned.

Everything a step depends on is a function of (seed, step) or stands in the checkpoint, so a training that was stopped,
however often and wherever, ends with the same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import CheckpointError, TrainingError
from jumok.seeds import derive_seed
from jumok.training.averaging import average_checkpoints
from jumok.training.checkpoint import flatten_optimizer, load_latest, restore_optimizer
from jumok.training.circumstances import circumstances
from jumok.training.distributed import ALONE, World
from jumok.training.gradients import Gradients
from jumok.training.progress import Epochs, Progress, TrainingBatch, TrainingOptions, Validation
from jumok.training.records import read_log
from jumok.training.run_directory import RunDirectory
from jumok.training.schedule import Schedule

Event = Mapping[str, Any]
"""What the trainer tells its watcher: the lines of log.jsonl, and `resumed`, `rejected` and `memory`."""


class StoppedEarly(Exception):
    """Raised after the checkpoint is written when somebody asked the training to stop."""


class Trainer:
    """Runs one training in one run directory, from wherever it stands to its end."""

    def __init__(
        self,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        loss: Callable[[Any], Tensor],
        epochs: Epochs,
        validate: Callable[[], Validation],
        publish: Callable[[Validation, int], None],
        options: TrainingOptions,
        run: RunDirectory,
        watch: Callable[[Event], None] = lambda _: None,
        stop_requested: Callable[[], bool] = lambda: False,
        world: World = ALONE,
        shown: nn.Module | None = None,
    ) -> None:
        self.model, self.optimizer, self.schedule = model, optimizer, schedule
        self.shown = shown or model  # what is validated and published: a whole model where `model` is in parts
        self.epochs, self.validate, self.publish = epochs, validate, publish
        self.options, self.run, self.watch, self.stop_requested = options, run, watch, stop_requested
        self.world, self.leads = world, world.rank == 0
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        self.progress = Progress()
        self.gradients = Gradients(loss, optimizer, self._tell_pieces, may_cut=not world.sharded)

    def train(self) -> Progress:
        """Goes on from the newest checkpoint, or from the start, until the end. Returns where it ended."""
        self._restore()
        if self.progress.step == 0:
            self._try_largest_batch()
        self.model.train()
        while not self._finished():
            self._train_epoch()
        self._finish()
        return self.progress

    def _finished(self) -> bool:
        out_of_patience = self.options.patience is not None and self.progress.stale >= self.options.patience
        return self.progress.step >= self.options.steps or out_of_patience

    def _train_epoch(self) -> None:
        progress = self.progress
        size = self.epochs.size(progress.epoch)
        mine = [place for place in range(progress.position, size) if self._is_mine(place)]
        batches = self.epochs.batches(progress.epoch, mine)
        started = time.perf_counter()
        while not self._finished() and progress.position < size:
            end = min(progress.position + self.options.accumulate, size)
            window = [(place, next(batches)) for place in range(progress.position, end) if self._is_mine(place)]
            stop = self._step(window, end - progress.position)
            progress.position = end
            progress.seconds += time.perf_counter() - started
            self._after_step(stop)
            started = time.perf_counter()
        if progress.position >= size:
            progress.epoch, progress.position = progress.epoch + 1, 0

    def _is_mine(self, place: int) -> bool:
        """The batches of an update are dealt out in turn. Updates begin at multiples of their number of batches."""
        return place % self.options.accumulate % self.world.size == self.world.rank

    def _step(self, window: list[tuple[int, TrainingBatch]], together: int) -> bool:
        """One update from the mean loss over all answers of all `together` batches, of which this process has `window`.

        True if somebody asked to stop.
        """
        progress = self.progress
        batches = [batch for _, batch in window]
        loss = self.gradients.fill(batches, lambda number: self._seed(window[number][0]))
        if self.world.sharded and len(window) < -(-together // self.world.size):
            self._compute_along()
        sums = (loss, sum(batch.tokens for batch in batches), float(self.stop_requested()))
        gradients = [_gradient(parameter) for parameter in self.parameters]
        loss, tokens, stop = self.world.add_up(gradients, sums)
        torch._foreach_mul_(gradients, 1 / tokens)
        norm = self.world.clip(self.parameters, self.options.clip)
        if not (math.isfinite(loss) and math.isfinite(norm)):
            examples = "; ".join(batch.describe() for batch in batches)
            raise TrainingError(
                f"The loss of step {progress.step + 1} is {loss / tokens}, its gradient norm {norm}: "
                f"no update was made. Batch: {examples}. Try a smaller optimizer.lr; the last checkpoint is intact."
            )
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule(progress.step + 1)
        self.optimizer.step()
        progress.step += 1
        progress.tokens += int(tokens)
        progress.loss_sum += loss
        progress.loss_tokens += int(tokens)
        return stop > 0

    def _compute_along(self) -> None:
        """Goes through a batch without learning from it, because the others go through one more than this process."""
        progress = self.progress
        batch = next(self.epochs.batches(progress.epoch, [progress.position]))
        (self.gradients.loss(batch) * 0).backward()  # type: ignore[no-untyped-call]

    def _seed(self, place: int) -> None:
        """A generator of its own for every batch of every step: nothing before it can disturb it.

        No validation, no resume, and not the number of processes either.
        """
        number = place % self.options.accumulate
        # Not torch.manual_seed: for devices that are not there it notes where it was called from, which takes longer.
        torch.default_generator.manual_seed(derive_seed(self.options.seed, "step", self.progress.step, number))

    def _try_largest_batch(self) -> None:
        """Better to run out of memory now than in three hours."""
        self.model.train()
        self.gradients.fill([self.epochs.largest()], lambda _: self._seed(0))
        self.optimizer.zero_grad()

    def _tell_pieces(self, pieces: int) -> None:
        self.watch({"event": "memory", "step": self.progress.step, "pieces": pieces})

    def _after_step(self, stop: bool) -> None:
        progress, options = self.progress, self.options
        last = progress.step >= options.steps
        if progress.step % options.log_every == 0 or last:
            self._log_training()
        validate = progress.step % options.validate_every == 0 or last
        if validate:
            self._validate()
        stop = stop and not last
        if validate or stop or progress.step % options.checkpoint_every == 0:
            self._save()
        if stop:
            raise StoppedEarly

    def _log_training(self) -> None:
        progress = self.progress
        loss = progress.loss_sum / progress.loss_tokens
        progress.loss_sum, progress.loss_tokens = 0.0, 0
        self._log("train", loss=loss, lr=self.schedule(progress.step))

    def _validate(self) -> None:
        """Validates, keeps the bundle of the best so far, and counts how long nothing got better."""
        if self.world.sharded:
            weights = self.world.whole(self.model.state_dict())
            if self.leads:
                self.shown.load_state_dict(weights)
        if self.leads:
            self._validate_here()
        for name, value in self.world.from_first(asdict(self.progress)).items():
            setattr(self.progress, name, value)

    def _validate_here(self) -> None:
        progress = self.progress
        validation = self._measure()
        progress.scores[str(progress.step)] = validation.score
        self._log("valid", score=validation.score, **validation.metrics)
        if self._publish_if_best(validation):
            progress.best_step, progress.stale = progress.step, 0
        else:
            progress.stale += 1

    def _publish_if_best(self, validation: Validation) -> bool:
        best = self.progress.best_score
        if best is not None and validation.score <= best:
            return False
        self.progress.best_score = validation.score
        self.publish(validation, self.progress.step)
        return True

    def _measure(self) -> Validation:
        self.shown.eval()
        try:
            self._require_sense()
            with torch.inference_mode():
                return self.validate()
        finally:
            self.shown.train()

    def _require_sense(self) -> None:
        """Weights may have diverged since the last loss was computed; a validation would not know what to say."""
        if self.world.sharded:
            return  # all processes would be needed, and only the first one is here
        batch = next(self.epochs.batches(self.progress.epoch, [0]))
        part, *_ = batch.halves() or (batch,)  # it may be that no whole one fits into memory
        with torch.no_grad():
            loss = float(self.gradients.loss(part))
        if not math.isfinite(loss):
            raise TrainingError(
                f"After step {self.progress.step} the loss is {loss / part.tokens}: the weights have diverged. Try a "
                "smaller optimizer.lr; the last checkpoint and the best model are intact."
            )

    def _finish(self) -> None:
        """Averages checkpoints, publishes the average if it is better than the best of them, and says goodbye."""
        if self.options.average > 1 and self.leads:
            self._try_averages()
        limits = {"steps": self.options.steps, "patience": self.options.patience}
        best_score, best_step = self.progress.best_score, self.progress.best_step
        self._log("done", best_score=best_score, best_step=best_step, limits=limits)

    def _try_averages(self) -> None:
        """The mean of the last few checkpoints, and that of the best few: noise cancels, what was learned stays."""
        trained = {name: weight.clone() for name, weight in self.shown.state_dict().items()}
        last, best = self._worth_averaging()
        candidates = {"last": last} if set(best) == set(last) else {"last": last, "best": best}
        for which, steps in candidates.items():
            average = average_checkpoints(self.run.checkpoints, steps)
            if average is not None:
                self.shown.load_state_dict(average)
                validation = self._measure()
                self._log("valid", averaged=which, score=validation.score, **validation.metrics)
                self._publish_if_best(validation)
        self.shown.load_state_dict(trained)

    def _worth_averaging(self) -> tuple[list[int], list[int]]:
        """The last few validated steps, and the best few."""
        scores, count = self.progress.scores, self.options.average
        last = sorted(map(int, scores))[-count:]
        best = sorted(map(int, scores), key=lambda step: scores[str(step)])[-count:]
        return last, best

    def _log(self, event: str, **values: Any) -> None:
        progress = self.progress
        where = {"step": progress.step, "epoch": progress.epoch, "tokens": progress.tokens}
        entry = {"event": event, **where, "seconds": round(progress.seconds, 3), **values}
        if self.leads:
            self.run.append_log(entry)
            self.watch(entry)

    def _save(self) -> None:
        optimizer_tensors, optimizer_state = flatten_optimizer(self.optimizer)
        progress = self.progress
        state = {
            "progress": asdict(progress),
            "optimizer": optimizer_state,
            "order": self.epochs.digest(progress.epoch),
            "pieces": self.gradients.pieces,
            **self._circumstances(),
        }
        groups = {"model": self.model.state_dict(), "optimizer": optimizer_tensors}
        tensors = {name: self.world.whole(group) for name, group in groups.items()}
        last, best = self._worth_averaging()
        self._log("checkpoint")
        if self.leads:
            self.run.save_checkpoint(progress.step, tensors, state, protect={*last, *best})
        self.world.wait()

    def _restore(self) -> None:
        checkpoint = load_latest(self.run.checkpoints, self._rejected)
        self.world.wait()  # until all have read the same: below the first one may write another
        if self.leads:
            logged = read_log(self.run.path)
            if checkpoint is None and logged:
                self.watch({"event": "restarted", "path": str(self.run.checkpoints), "step": logged[-1]["step"]})
            self.run.keep_log_until(checkpoint.step if checkpoint else None)
        if checkpoint is None:
            return
        state = checkpoint.state
        self.progress = Progress(**state["progress"])
        scores = [score for score in (self.progress.best_score, self.options.best_before) if score is not None]
        self.progress.best_score = max(scores, default=None)
        new_order = state["order"] != self.epochs.digest(self.progress.epoch)
        if new_order and not self.options.new_order_allowed:
            raise CheckpointError(
                f"{checkpoint.path}: the data is not what it was when this training began, so it cannot go on exactly. "
                "Bring back the old files, start again with --fresh, or go on with --continue-with-changes."
            )
        try:
            weights, own = checkpoint.tensors["model"], self.model.state_dict()
            parts = {name: self.world.part(weight, own.get(name, weight)) for name, weight in weights.items()}
            self.model.load_state_dict(parts)
        except RuntimeError as error:
            raise CheckpointError(
                f"{checkpoint.path}: was written by another version or for another model "
                f"({str(error).splitlines()[-1].strip()}). Go on with that version, or start again with --fresh."
            ) from error
        wanted = [{**group} for group in self.optimizer.param_groups]
        restore_optimizer(self.optimizer, checkpoint.tensors["optimizer"], state["optimizer"])
        for group, settings in zip(self.optimizer.param_groups, wanted, strict=True):
            group.update(settings)  # moments come from the checkpoint, settings from this training
        for parameter, moments in self.optimizer.state.items():
            moments.update({name: self.world.part(moment, parameter) for name, moment in moments.items()})
        self.gradients.pieces = state["pieces"] if self.gradients.may_cut else 1
        if new_order:  # the epoch that was begun cannot be continued; the next one can begin
            self.progress.epoch, self.progress.position = self.progress.epoch + 1, 0
            self._save()
        changed = {
            name: [state[name], now] for name, now in self._circumstances().items() if state.get(name, now) != now
        }
        self.watch({"event": "resumed", "step": checkpoint.step, "changed": changed})

    def _circumstances(self) -> dict[str, Any]:
        return circumstances(self.parameters[0], self.world.size)

    def _rejected(self, path: Path, reason: str) -> None:
        self.watch({"event": "rejected", "path": str(path), "reason": reason})


def _gradient(parameter: Tensor) -> Tensor:
    """Zeros where this process had no batch to learn from."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad
