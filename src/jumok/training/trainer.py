"""The training loop. It knows steps, gradients, checkpoints and validation, and nothing of what is being learned.

Everything a step depends on is a function of (seed, step) or stands in the checkpoint, so a training that was stopped,
however often and wherever, ends with the same bits as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from jumok.errors import CheckpointError, TrainingError
from jumok.seeds import derive_seed
from jumok.training.averaging import average_checkpoints
from jumok.training.checkpoint import flatten_optimizer, load_latest, restore_optimizer
from jumok.training.progress import Epochs, Progress, TrainingBatch, TrainingOptions, Validation
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
    ) -> None:
        self.model, self.optimizer, self.schedule = model, optimizer, schedule
        self.loss, self.epochs, self.validate, self.publish = loss, epochs, validate, publish
        self.options, self.run, self.watch, self.stop_requested = options, run, watch, stop_requested
        self.progress = Progress()
        self.pieces = 1  # into how many parts a batch is cut because it did not fit into memory

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
        batches = self.epochs.batches(progress.epoch, progress.position)
        started = time.perf_counter()
        while not self._finished() and (window := list(islice(batches, self.options.accumulate))):
            self._step(window)
            progress.seconds += time.perf_counter() - started
            self._after_step()
            started = time.perf_counter()
        if progress.position >= self.epochs.size(progress.epoch):
            progress.epoch, progress.position = progress.epoch + 1, 0

    def _step(self, window: list[TrainingBatch]) -> None:
        """One update from the mean loss over all answers of the window, however they are spread over its batches."""
        progress = self.progress
        tokens = sum(batch.tokens for batch in window)
        loss = self._gradients(window, tokens)
        norm = float(nn.utils.clip_grad_norm_(self.model.parameters(), self.options.clip))
        if not (math.isfinite(loss) and math.isfinite(norm)):
            examples = "; ".join(batch.describe() for batch in window)
            raise TrainingError(
                f"The loss of step {progress.step + 1} is {loss}, its gradient norm {norm}: no update was made. "
                f"Batch: {examples}. Try a smaller optimizer.lr; the last checkpoint is intact."
            )
        for group in self.optimizer.param_groups:
            group["lr"] = self.schedule(progress.step + 1)
        self.optimizer.step()
        progress.step += 1
        progress.position += len(window)
        progress.tokens += tokens
        progress.loss_sum += loss * tokens
        progress.loss_tokens += tokens

    def _gradients(self, window: list[TrainingBatch], tokens: int) -> float:
        """Fills the gradients of the mean loss; cuts batches in parts when memory does not suffice."""
        while True:
            # A generator of its own for every step: nothing before it, no validation, no resume, can disturb it.
            torch.manual_seed(derive_seed(self.options.seed, "step", self.progress.step))
            self.optimizer.zero_grad()
            total = 0.0
            try:
                for part in self._parts(window):
                    loss = self.loss(part) / tokens
                    loss.backward()  # type: ignore[no-untyped-call]
                    total += float(loss.detach())
                return total
            except (RuntimeError, MemoryError) as error:
                if not _is_out_of_memory(error) or not any(part.halves() for part in self._parts(window)):
                    raise
            self.pieces *= 2
            self.watch({"event": "memory", "step": self.progress.step, "pieces": self.pieces})

    def _parts(self, window: list[TrainingBatch]) -> list[TrainingBatch]:
        parts = list(window)
        for _ in range(self.pieces.bit_length() - 1):
            parts = [half for part in parts for half in (part.halves() or (part,))]
        return parts

    def _try_largest_batch(self) -> None:
        """Better to run out of memory now than in three hours."""
        batch = self.epochs.largest()
        self.model.train()
        self._gradients([batch], batch.tokens)
        self.optimizer.zero_grad()

    def _after_step(self) -> None:
        progress, options = self.progress, self.options
        last = progress.step >= options.steps
        if progress.step % options.log_every == 0 or last:
            self._log_training()
        validate = progress.step % options.validate_every == 0 or last
        if validate:
            self._validate()
        stop = self.stop_requested() and not last
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
        self.model.eval()
        try:
            with torch.inference_mode():
                return self.validate()
        finally:
            self.model.train()

    def _finish(self) -> None:
        """Averages checkpoints, publishes the average if it is better than the best of them, and says goodbye."""
        if self.options.average > 1:
            self._try_averages()
        limits = {"steps": self.options.steps, "patience": self.options.patience}
        best_score, best_step = self.progress.best_score, self.progress.best_step
        self._log("done", best_score=best_score, best_step=best_step, limits=limits)

    def _try_averages(self) -> None:
        """The mean of the last few checkpoints, and that of the best few: noise cancels, what was learned stays."""
        trained = {name: weight.clone() for name, weight in self.model.state_dict().items()}
        last, best = self._worth_averaging()
        candidates = {"last": last} if set(best) == set(last) else {"last": last, "best": best}
        for which, steps in candidates.items():
            average = average_checkpoints(self.run.checkpoints, steps)
            if average is not None:
                self.model.load_state_dict(average)
                validation = self._measure()
                self._log("valid", averaged=which, score=validation.score, **validation.metrics)
                self._publish_if_best(validation)
        self.model.load_state_dict(trained)

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
        self.run.append_log(entry)
        self.watch(entry)

    def _save(self) -> None:
        optimizer_tensors, optimizer_state = flatten_optimizer(self.optimizer)
        progress = self.progress
        state = {
            "progress": asdict(progress),
            "optimizer": optimizer_state,
            "order": self.epochs.digest(progress.epoch),
            "pieces": self.pieces,
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
        }
        tensors = {"model": self.model.state_dict(), "optimizer": optimizer_tensors}
        last, best = self._worth_averaging()
        self._log("checkpoint")
        self.run.save_checkpoint(progress.step, tensors, state, protect={*last, *best})

    def _restore(self) -> None:
        checkpoint = load_latest(self.run.checkpoints, self._rejected)
        self.run.keep_log_until(checkpoint.step if checkpoint else None)
        if checkpoint is None:
            return
        state = checkpoint.state
        self.progress = Progress(**state["progress"])
        new_order = state["order"] != self.epochs.digest(self.progress.epoch)
        if new_order and not self.options.new_order_allowed:
            raise CheckpointError(
                f"{checkpoint.path}: the data is not what it was when this training began, so it cannot go on exactly. "
                "Bring back the old files, start again with --fresh, or go on with --continue-with-changes."
            )
        self.model.load_state_dict(checkpoint.tensors["model"])
        wanted = [{**group} for group in self.optimizer.param_groups]
        restore_optimizer(self.optimizer, checkpoint.tensors["optimizer"], state["optimizer"])
        for group, settings in zip(self.optimizer.param_groups, wanted, strict=True):
            group.update(settings)  # moments come from the checkpoint, settings from this training
        self.pieces = state["pieces"]
        if new_order:  # the epoch that was begun cannot be continued; the next one can begin
            self.progress.epoch, self.progress.position = self.progress.epoch + 1, 0
            self._save()
        changed = {
            name: [state[name], now]
            for name, now in (("torch", torch.__version__), ("threads", torch.get_num_threads()))
            if state[name] != now
        }
        self.watch({"event": "resumed", "step": checkpoint.step, "changed": changed})

    def _rejected(self, path: Path, reason: str) -> None:
        self.watch({"event": "rejected", "path": str(path), "reason": reason})


def _is_out_of_memory(error: BaseException) -> bool:
    return isinstance(error, (MemoryError, torch.OutOfMemoryError)) or "can't allocate memory" in str(error)
