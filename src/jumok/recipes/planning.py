"""What a training will be: all that was not asked for, chosen from the data and a few seconds of real training."""

from __future__ import annotations

import itertools
import time
from dataclasses import asdict, replace
from typing import TypeVar

import torch
from torch import nn

from jumok.recipes.task import Task
from jumok.training.auto import Choice, Costs, choose_length, choose_sizes, measure_step, smaller_preset
from jumok.training.distributed import World
from jumok.training.gradients import Gradients
from jumok.training.settings import Settings

MEASURED_EXAMPLES = 100  # for the forecast of what a validation takes

Setting = TypeVar("Setting")


class Plan:
    """Sizes first, from the data; then, when they are measured, the length. `choices` says what and why."""

    def __init__(self, task: Task, asked: Settings, tokens: int, world: World) -> None:
        self.task, self.asked, self.tokens, self.world = task, asked, tokens, world
        self._choose(asked)

    def _choose(self, asked: Settings, *first: Choice) -> None:
        """What the task would choose, then what `auto` would, of what was not asked for."""
        by_task = [self._shared(choice) for choice in self.task.choices(asked) if not asked.has(choice.name)]
        chosen = asked.changed({choice.name: choice.value for choice in by_task})
        self.choices = [*first, *by_task, *choose_sizes(chosen, self.tokens, self.world.size)]
        self.settings = asked.changed({choice.name: choice.value for choice in self.choices})

    def _shared(self, choice: Choice) -> Choice:
        """Several processes share what one would learn from."""
        return replace(choice, value=-(-choice.value // self.world.size)) if choice.name == "batch.tokens" else choice

    def fit_to_machine(self, began: float) -> tuple[Settings, Costs]:
        """All settings, and what they cost here. `began` is when the command did; that time counts too."""
        costs, steps_per_epoch = self._measure(began), self._steps_per_epoch()
        while self.asked.preset == "auto" and (smaller := smaller_preset(self.settings, steps_per_epoch, costs)):
            self._choose(self.asked.changed({smaller.name: smaller.value}), smaller)
            costs, steps_per_epoch = self._measure(began), self._steps_per_epoch()
        length = choose_length(self.settings, steps_per_epoch, self.tokens, costs)
        self.choices += length
        self.settings = self.settings.changed({choice.name: choice.value for choice in length})
        return self.settings, costs

    def _steps_per_epoch(self) -> int:
        return -(-self.task.epochs(self.settings).size(0) // filled(self.settings.batch.accumulate))

    def _measure(self, began: float) -> Costs:
        """What an update and a validation take here, on real examples, with a model that is thrown away."""
        settings = self.settings
        model = new_model(self.task, settings)
        shown = new_model(self.task, settings) if self.world.sharded else model
        loss = self.world.shard(model, self.task.loss(model, settings))
        optimizer, epochs = make_optimizer(model, settings), self.task.epochs(settings)
        gradients = Gradients(loss, optimizer, may_cut=not self.world.sharded)
        gradients.fill([epochs.largest()])  # what does not fit into memory is cut from here on
        batches = itertools.chain.from_iterable(
            epochs.batches(epoch, range(epochs.size(epoch))) for epoch in itertools.count()
        )

        def step() -> None:
            gradients.fill([next(batches)])
            nn.utils.clip_grad_norm_(model.parameters(), settings.optimizer.clip)
            optimizer.step()

        rounds = -(-filled(settings.batch.accumulate) // self.world.size)
        step_seconds = measure_step(step, settings.stop, self.world.from_first) * rounds
        everything = validated_examples(self.task, settings)
        some = min(everything, MEASURED_EXAMPLES)
        started = time.perf_counter()
        with torch.inference_mode():
            validation = self.task.validate(shown.eval(), some)
        validation_seconds = (time.perf_counter() - started) * everything / some / validation.effort
        costs = Costs(step_seconds, validation_seconds, time.perf_counter() - began)
        return Costs(**self.world.from_first(asdict(costs)))  # all must decide alike


def new_model(task: Task, settings: Settings) -> nn.Module:
    """A model that has learned nothing, always the same for a seed."""
    torch.manual_seed(settings.seed)
    return task.model(settings)


def make_optimizer(model: nn.Module, settings: Settings) -> torch.optim.Optimizer:
    """Adam; the schedule gives it its rate."""
    chosen = settings.optimizer
    betas = (chosen.beta1, chosen.beta2)
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=betas, eps=chosen.epsilon, fused=True)


def validated_examples(task: Task, settings: Settings) -> int:
    """How many examples a validation is about."""
    return min(task.valid_examples, settings.validation.sentences)


def filled(value: Setting | None) -> Setting:
    """A setting that `auto` has filled in by now."""
    if value is None:
        raise ValueError("a setting was used before it was chosen")
    return value
