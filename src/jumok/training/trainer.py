"""The training loop: steps, gradients, checkpoints and validation; it knows nothing of what is being learned.
Everything a step depends on is a function of (seed, step), is in the checkpoint, or is recorded in run.json before it
takes effect. So a training that was stopped anywhere ends with the same bits as one that was not."""

import math
import time
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from jumok.errors import TrainingError, WriteError
from jumok.model.devices import seed_device
from jumok.seeds import derive_seed
from jumok.training.averaging import average_checkpoints
from jumok.training.checkpoint import Checkpoint, flatten_optimizer, load_latest
from jumok.training.distributed import SINGLE_PROCESS, ProcessGroup
from jumok.training.environment import environment
from jumok.training.events import Event, EventCallback, LoggedEvent, ignore_event
from jumok.training.gradients import Gradients
from jumok.training.length import Length, TimeLimit
from jumok.training.precision import Precision
from jumok.training.progress import Epochs, Progress, TrainingBatch, TrainingOptions, Validation
from jumok.training.records import ATTENTION, past_results, read_log
from jumok.training.restoring import (
    agree_on_checkpoint,
    require_same_order,
    restore_optimizer_state,
    restore_progress,
    restore_weights,
)
from jumok.training.run_directory import RunDirectory
from jumok.training.schedule import Schedule
from jumok.training.updates import Updates

CHECKPOINT_SECONDS = 300.0  # between two checkpoints, if `checkpoint.every` is not given
REPORT_SECONDS = 1.0  # between two `step` events
MOST_LONGER = 2.0  # than the one before: what a validation is believed to take
FINAL_VALIDATIONS = 1.5  # of the averages: one, or two if the last checkpoints are not the best


class StoppedEarly(Exception):
    """Raised after the checkpoint is written when somebody asked the training to stop."""


class Trainer:
    """Runs one training in one run directory, from the newest checkpoint (or the start) to its end."""

    def __init__(
        self,
        *,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        length: Length,
        loss: Callable[[Any], Tensor],
        epochs: Epochs,
        validate: Callable[[], Validation],
        publish: Callable[[Validation, int], None],
        options: TrainingOptions,
        run: RunDirectory,
        on_event: EventCallback = ignore_event,
        stop_requested: Callable[[], bool] = lambda: False,
        group: ProcessGroup = SINGLE_PROCESS,
        precision: Precision | None = None,
        full_model: nn.Module | None = None,
        after_update: Callable[[int], None] = lambda _: None,
        began: float | None = None,
    ) -> None:
        self.model, self.optimizer, self.schedule, self.length = model, optimizer, schedule, length
        self.full_model = full_model or model  # what is validated and published: not sharded
        self.epochs, self.validate, self.publish, self.after_update = epochs, validate, publish, after_update
        self.options, self.run, self.on_event, self.stop_requested = options, run, on_event, stop_requested
        self.group, self.leads = group, group.rank == 0
        self.parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        group.use_parameters(self.parameters)
        self.progress = Progress(validation_seconds=options.validation_seconds)
        self.precision = precision or Precision()
        may_split = not group.sharded
        self.gradients = Gradients(loss, optimizer, self._report_split, may_split=may_split, precision=self.precision)
        self.updates = Updates(self.parameters, optimizer, clip=options.clip, precision=self.precision, group=group)
        self._environment = environment(self.precision, group.size)
        self._began = time.perf_counter() if began is None else began  # of this process's part of the training
        self._elapsed_before = 0.0  # seconds that earlier processes used
        self._saved = time.perf_counter()
        self._reported = -math.inf
        self._attention_unsaved = False  # whether it was said
        self._first = (0, 0.0)  # step and seconds of training when this process began to train
        self._time_limit = options.seconds and TimeLimit(options.seconds, self.elapsed, self._overhead)

    def train(self) -> Progress:
        """Train until the end. Returns the final progress."""
        self._restore()
        if self.progress.step == 0:
            self._try_largest_batch()
        self._extend_length()
        self.model.train()
        self._first = (self.progress.step, self.progress.seconds)
        self.on_event({"event": "training"})
        while not self._finished():
            self._train_epoch()
        self._finish()
        return self.progress

    def elapsed(self) -> float:
        """All seconds of this training so far. Time in which it was stopped does not count."""
        return self._elapsed_before + time.perf_counter() - self._began

    def _finished(self) -> bool:
        out_of_patience = self.options.patience is not None and self.progress.stale >= self.options.patience
        return self._at_last_step() or out_of_patience

    def _at_last_step(self) -> bool:
        return self.progress.step >= self.length.last_step(self.progress.step)

    def _train_epoch(self) -> None:
        progress = self.progress
        size = self.epochs.size(progress.epoch)
        mine = [index for index in range(progress.position, size) if self._is_mine(index)]
        batches = self.epochs.batches(progress.epoch, mine)
        started = time.perf_counter()
        while not self._finished() and progress.position < size:
            end = min(progress.position + self.options.accumulate, size)
            window = [(index, next(batches)) for index in range(progress.position, end) if self._is_mine(index)]
            stop, save = self._step(window, end - progress.position)
            progress.position = end
            seconds = time.perf_counter() - started
            progress.seconds += seconds
            if self._time_limit:
                self._time_limit.add_step(seconds)
            self._after_step(stop, save)
            started = time.perf_counter()
        if progress.position >= size:
            progress.epoch, progress.position = progress.epoch + 1, 0

    def _is_mine(self, index: int) -> bool:
        """The batches of an update are dealt out in turn. Updates begin at multiples of their number of batches."""
        return index % self.options.accumulate % self.group.size == self.group.rank

    def _step(self, window: list[tuple[int, TrainingBatch]], together: int) -> tuple[bool, bool]:
        """One update from the mean loss over the targets of all `together` batches, of which this process has `window`.
        Returns whether somebody asked to stop, and whether it is time for a checkpoint."""
        progress = self.progress
        batches = [batch for _, batch in window]
        before_last = self.group.before_last_backward
        loss = self.gradients.fill(batches, lambda number: self._seed(window[number][0]), before_last)
        if self.group.sharded and len(window) < -(-together // self.group.size):
            self._join_collectives()
        self.group.send_gradients()
        own_tokens = sum(batch.tokens for batch in batches)
        numbers = [own_tokens, float(self.stop_requested()), *self._rank_0_decides()]
        tokens, stop, last_step, save = self.group.sum_numbers(numbers)
        self._change_length(int(last_step))
        self.updates.make(progress.step + 1, self.schedule(progress.step + 1), loss, int(tokens), batches)
        progress.step += 1
        progress.tokens += int(tokens)
        self.after_update(progress.step)
        return stop > 0, save > 0

    def _read_results(self) -> None:
        """Add the losses of the last updates to the progress; an error if one of them was not finite."""
        started = time.perf_counter()
        loss, tokens = self.updates.read()
        waited = time.perf_counter() - started  # until a card had computed the last steps: they took that long too
        self.progress.seconds += waited
        if self._time_limit:
            self._time_limit.add_wait(waited)
        self.progress.loss_sum += loss
        self.progress.loss_tokens += tokens

    def _join_collectives(self) -> None:
        """Dummy forward and backward pass, so that this rank joins FSDP's collectives."""
        progress = self.progress
        batch = next(self.epochs.batches(progress.epoch, [progress.position]))
        with self.precision.computing():
            loss = self.gradients.loss(batch)
        (loss * 0).backward()  # type: ignore[no-untyped-call]

    def _seed(self, index: int) -> None:
        """Seed each batch of each step anew: it depends on no validation, no resume and no number of processes."""
        number = index % self.options.accumulate
        seed_device(self.precision.device, derive_seed(self.options.seed, "step", self.progress.step, number))

    def _try_largest_batch(self) -> None:
        """Better to run out of memory now than in three hours."""
        self.model.train()
        self.gradients.fill([self.epochs.largest()], lambda _: self._seed(0))
        self.optimizer.zero_grad()

    def _report_split(self, parts: int) -> None:
        self.on_event({"event": "memory", "step": self.progress.step, "parts": parts})

    # What rank 0 decides from its clock. Sent with the loss of every step, so that all processes do the same.

    def _rank_0_decides(self) -> tuple[float, float]:
        """The last step, and whether it is time for a checkpoint (1 or 0)."""
        if not self.leads:
            return 0.0, 0.0
        by_clock = self.options.checkpoint_every is None
        save = by_clock and time.perf_counter() - self._saved >= CHECKPOINT_SECONDS
        return float(self._forecast_last_step()), float(save)

    def _forecast_last_step(self) -> int:
        step = self.progress.step
        last = self.length.last_step(step)
        if not self._time_limit or step < self.length.last_change:  # a resumed training repeats recorded changes first
            return last
        forecast = self._time_limit.forecast(step, last)
        if forecast != last:
            self.run.record(length=[*self.length.changes, [step, forecast]])
        return forecast

    def _extend_length(self) -> None:
        """Add the steps of time that was added since the last step was made."""
        progress = self.progress
        if self._time_limit and progress.step and self._at_last_step():
            more = self._time_limit.steps_in_rest(progress.seconds / progress.step) if self.leads else 0
            last_step = progress.step + self.group.broadcast(more)
            if last_step > progress.step:
                self.length.change(progress.step, last_step)
                if self.leads:
                    self.run.record(length=self.length.changes)

    def _change_length(self, last_step: int) -> None:
        step = self.progress.step
        if last_step != self.length.last_step(step):
            self.length.change(step, last_step)
        if step and last_step != self.length.last_step(step - 1):
            self._log({"event": "schedule", "last_step": last_step})

    def _overhead(self) -> float:
        """Seconds for the validations to come, and for what follows the last step."""
        return self._validations_to_come() * self.progress.validation_seconds

    def _validations_to_come(self) -> float:
        """How many there will be; what follows the last step takes as long as some more."""
        options, step = self.options, self.progress.step
        if options.validate_every is None:
            to_come = math.ceil(options.validations * self.length.remaining(step + 1))
        else:
            to_come = -(-(self.length.last_step(step) - step) // options.validate_every)
        averages = FINAL_VALIDATIONS if options.average > 1 and to_come + len(self.progress.scores) > 1 else 0
        return to_come + averages + options.export_validations

    def _after_step(self, stop: bool, save: bool) -> None:
        progress, options = self.progress, self.options
        last = self._at_last_step()
        self._report_step()
        if progress.step % options.log_every == 0 or last:
            self._log_training()
        if options.validate_every is None:
            validate = self.length.passes(progress.step, options.validations)
        else:
            validate = progress.step % options.validate_every == 0 or last
        if validate:
            self._validate()
        stop = stop and not last
        every = options.checkpoint_every
        if validate or stop or save or (every is not None and progress.step % every == 0):
            self._save()
        if stop:
            raise StoppedEarly

    def _report_step(self) -> None:
        """Say how far the training is, if that was not said within the last second."""
        now = time.perf_counter()
        if self.leads and now - self._reported >= REPORT_SECONDS:
            self._reported = now
            self.on_event({"event": "step", **self._position(), "seconds_left": self._seconds_left()})

    def _seconds_left(self) -> float:
        """Until the end, as the clock decides it, or at the mean speed of this process."""
        if self.options.seconds:
            return max(0.0, self.options.seconds - self.elapsed())
        progress, (step, seconds) = self.progress, self._first
        each = (progress.seconds - seconds) / (progress.step - step)
        validation = progress.validation_seconds or self.options.validation_steps * each
        return each * (self.length.last_step(progress.step) - progress.step) + self._validations_to_come() * validation

    def _position(self) -> LoggedEvent:
        """What every entry of the log says. Between two epochs it is the one that has ended."""
        progress = self.progress
        return {
            "step": progress.step,
            "epoch": progress.epoch + (progress.position > 0) or 1,
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 3),
        }

    def _log_training(self) -> None:
        self._read_results()
        progress = self.progress
        if not progress.loss_tokens:  # in float16, the losses of all these steps may have overflowed
            return
        loss = progress.loss_sum / progress.loss_tokens
        progress.loss_sum, progress.loss_tokens = 0.0, 0
        self._log({"event": "train", "loss": loss, "lr": self.schedule(progress.step)})

    def _validate(self) -> None:
        """Validate, publish the model if it is the best so far, and count the validations since the best one."""
        started = time.perf_counter()
        self._require_finite_state()
        self.on_event({"event": "validating"})
        if self.group.sharded:
            weights = self.group.gather(self.model.state_dict())
            if self.leads:
                self.full_model.load_state_dict(weights)
        if self.leads:
            effort = self._validate_on_rank_0()
            seconds, before = (time.perf_counter() - started) / effort, self.progress.validation_seconds
            # One that took far longer than the one before was disturbed: those to come must not be given all the time.
            self.progress.validation_seconds = min(seconds, MOST_LONGER * before) if before else seconds
        for name, value in self.group.broadcast(asdict(self.progress)).items():
            setattr(self.progress, name, value)
        self.on_event({"event": "training"})

    def _validate_on_rank_0(self) -> float:
        """Returns the effort of the validation."""
        progress = self.progress
        validation = self._measure()
        progress.scores[str(progress.step)] = validation.score
        self._log_validation(validation)
        if validation.attention:
            self._save_attention(validation.attention)
        if self._publish_if_best(validation):
            progress.best_step, progress.stale = progress.step, 0
        else:
            progress.stale += 1
        return validation.effort

    def _save_attention(self, data: bytes) -> None:
        """A training does not fail because this cannot be written: it says so once and goes on."""
        try:
            self.run.save_attention(self.progress.step, data)
        except (OSError, WriteError) as error:
            cause = error.__cause__ if isinstance(error, WriteError) else error
            reason = getattr(cause, "strerror", None) or str(error)
            if not self._attention_unsaved:
                self.on_event({"event": "unsaved", "path": str(self.run.path / ATTENTION), "reason": reason})
            self._attention_unsaved = True

    def _log_validation(self, validation: Validation, **which: str) -> None:
        best = self._is_best(validation)
        self._log({"event": "valid", **which, "score": validation.score, "best": best, **validation.metrics})

    def _is_best(self, validation: Validation) -> bool:
        best = self.progress.best_score
        return best is None or validation.score > best

    def _publish_if_best(self, validation: Validation) -> bool:
        if not self._is_best(validation):
            return False
        self.progress.best_score = validation.score
        self.publish(validation, self.progress.step)
        return True

    def _measure(self) -> Validation:
        self.full_model.eval()
        try:
            with torch.inference_mode():
                validation = self.validate()
        finally:
            self.full_model.train()
        numbers = [value for value in (validation.score, *validation.metrics.values()) if isinstance(value, float)]
        if not all(map(math.isfinite, numbers)):
            raise self._diverged(f"validation gives {dict(validation.metrics)}")
        return validation

    def _require_finite_state(self) -> None:
        """Fail, in all processes alike, if the last update has left anything that is not finite: the loss of a batch,
        a weight, trained or not, or a moment. The loss of the step itself was that of the weights before the update."""
        self._read_results()
        batch = next(self.epochs.batches(self.progress.epoch, [0]))
        part = self.gradients.split(batch)[0]  # a full batch may not fit into memory
        part, *_ = part.halves() or (part,)
        self.model.eval()
        with torch.no_grad(), self.precision.computing():
            loss = float(self.gradients.loss(part)) / part.tokens
        self.model.train()
        moments = [value for state in self.optimizer.state.values() for value in state.values()]
        saved = [*self.model.state_dict().values(), *(value for value in moments if isinstance(value, Tensor))]
        finite = self.group.all_finite([tensor for tensor in saved if tensor.is_floating_point()])
        loss, damaged = self.group.sum_numbers([loss / self.group.size, float(not finite)])
        if not math.isfinite(loss):
            raise self._diverged(f"the loss is {loss}")
        if damaged:
            raise self._diverged("weights or moments of the optimizer are NaN or infinite")

    def _diverged(self, symptom: str) -> TrainingError:
        return TrainingError(
            f"After step {self.progress.step} {symptom}: the weights have diverged and were not saved. Try a smaller "
            "optimizer.lr; the last checkpoint and the best model are intact."
        )

    def _finish(self) -> None:
        """Average checkpoints, publish the average if it is the best model, and log the end."""
        if self.options.average > 1 and self.leads:
            self.on_event({"event": "averaging"})
            self._try_averages()
        best_score, best_step = self.progress.best_score, self.progress.best_step
        self._log({"event": "done", "best_score": best_score, "best_step": best_step, "limits": self.options.limits})

    def _try_averages(self) -> None:
        """The mean of the last few checkpoints, and that of the best few, each validated."""
        trained = {name: weight.clone() for name, weight in self.full_model.state_dict().items()}
        last, best = self._steps_to_average()
        candidates = {"last": last} if set(best) == set(last) else {"last": last, "best": best}
        for which, steps in candidates.items():
            average = average_checkpoints(self.run.checkpoints, steps)
            if average is not None:
                self.full_model.load_state_dict(average)
                validation = self._measure()
                self._log_validation(validation, averaged=which)
                self._publish_if_best(validation)
        self.full_model.load_state_dict(trained)

    def _steps_to_average(self) -> tuple[list[int], list[int]]:
        """The last few validated steps, and the best few."""
        scores, count = self.progress.scores, self.options.average
        last = sorted(map(int, scores))[-count:]
        best = sorted(map(int, scores), key=lambda step: scores[str(step)])[-count:]
        return last, best

    def _log(self, entry: dict[str, Any]) -> None:
        """Add what every entry says, write it to log.jsonl, and report it."""
        logged = {"event": entry["event"], **self._position(), **entry}
        if self.leads:
            self.run.append_log(logged)
            self.on_event(cast(Event, logged))

    def _save(self) -> None:
        self._require_finite_state()
        optimizer_tensors, optimizer_state = flatten_optimizer(self.optimizer)
        progress = self.progress
        progress.elapsed = self.elapsed()
        state = {
            "progress": asdict(progress),
            "optimizer": optimizer_state,
            "order": self.epochs.digest(progress.epoch),
            "pieces": self.gradients.parts,
            "loss_scale": self.precision.scale and self.precision.scale.to_state(),
            **self._environment,
        }
        groups = {"model": self.model.state_dict(), "optimizer": optimizer_tensors}
        tensors = {name: self.group.gather(group) for name, group in groups.items()}
        last, best = self._steps_to_average()
        self._log({"event": "checkpoint"})
        if self.leads:
            blocks = self.group.sharded  # each process reads only its part again
            self.run.save_checkpoint(progress.step, tensors, state, protect={*last, *best}, with_blocks=blocks)
        self._saved = time.perf_counter()
        self.group.barrier()

    def _restore(self) -> None:
        """Load the newest checkpoint, if there is one."""
        rows = self.group.rows_to_read(self.model, self.optimizer)
        # Nobody may go on before all have read it: rank 0 may write another one below.
        agree = partial(agree_on_checkpoint, self.group)
        checkpoint = load_latest(self.run.checkpoints, self._report_rejected, rows, agree)
        if checkpoint is None:
            agree(None)
        if self.leads:
            self._cut_log(checkpoint)
        if checkpoint is None:
            return
        self.progress = restore_progress(checkpoint, self.options.best_before, self.options.highest_score)
        self._elapsed_before = self.progress.elapsed
        is_same_order = require_same_order(checkpoint, self.epochs, allowed=self.options.new_order_allowed)
        restore_weights(self.model, checkpoint, self.group)
        restore_optimizer_state(self.optimizer, checkpoint, self.group)
        self.gradients.parts = checkpoint.state["pieces"] if self.gradients.may_split else 1
        if self.precision.scale is not None and checkpoint.state.get("loss_scale"):
            self.precision.scale.restore(checkpoint.state["loss_scale"])
        if not is_same_order:  # the epoch that was begun cannot be continued; the next one can begin
            self.progress.epoch, self.progress.position = self.progress.epoch + 1, 0
            self._save()
        before = checkpoint.state
        changed = {name: [before[name], now] for name, now in self._environment.items() if before.get(name, now) != now}
        losses, validations = past_results(self.run.path)
        self.on_event(
            {
                "event": "resumed",
                "step": checkpoint.step,
                "changed": changed,
                "losses": losses,
                "validations": validations,
            }
        )

    def _cut_log(self, checkpoint: Checkpoint | None) -> None:
        """Drop the log entries of steps that will be made again."""
        logged = read_log(self.run.path)
        if checkpoint is None and logged:
            self.on_event({"event": "restarted", "path": str(self.run.checkpoints), "step": logged[-1]["step"]})
        self.run.keep_log_until(checkpoint.step if checkpoint else None)

    def _report_rejected(self, path: Path, reason: str) -> None:
        self.on_event({"event": "rejected", "path": str(path), "reason": reason})
