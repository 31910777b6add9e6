"""What a training will do: everything that was not asked for is decided here, once, with a reason for each choice.
A plan is a function of the corpus and the request; only for minutes a few seconds of training are measured too."""

import itertools
import json
import os
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import nn

from jumok.model.config import PRESETS, preset_table
from jumok.model.devices import choose_device, explain_lack_of_memory, free_memory
from jumok.model.matrices import hidden_matrices
from jumok.model.summary import count_parameters
from jumok.recipes.recipe import PROBES, Recipe
from jumok.system import usable_cores
from jumok.tasks import resolve, task_of_config
from jumok.training.auto import (
    PRESET_TOKENS,
    Choice,
    Workload,
    choose_length,
    choose_rate,
    choose_sizes,
    choose_validations,
    measure_step,
    smaller_preset,
)
from jumok.training.distributed import SINGLE_PROCESS, ProcessGroup
from jumok.training.events import EventCallback, ignore_event
from jumok.training.gradients import Gradients
from jumok.training.muon import Muon
from jumok.training.optimizer import Adam
from jumok.training.precision import Precision, choose_precision
from jumok.training.settings import Settings
from jumok.training.trainer import FINAL_VALIDATIONS

Setting = TypeVar("Setting")
WIDE = ("small", "base", "big")  # presets that gain from bfloat16 on a CPU; see benchmarks/precision.md
LARGE_PRODUCT = 1 << 17  # so do others from so many numbers in the states of an update on: 1,024 tokens, 128 wide
BYTES_TO_TRAIN = 16  # of a parameter: itself, its gradient, and two moments


@dataclass(frozen=True)
class Plan:
    """All settings of a training, and why they are what they are."""

    settings: Settings
    choices: tuple[Choice, ...]
    facts: Mapping[str, Any]  # of the corpus
    work: Workload
    steps: int  # with minutes, an estimate
    step_seconds: float | None = None  # measured, with minutes only
    export_validations: float = 0.0  # the export takes about as long as so many validations

    @property
    def validations(self) -> int:
        """How often to validate, if `validate.every` does not say it."""
        return choose_validations(self.steps, self.work)

    @property
    def validation_seconds(self) -> float:
        """How long a validation takes, estimated from the measured speed."""
        return self.work.validation_steps * (self.step_seconds or 0.0)

    def to_toml(self) -> str:
        """All settings as TOML for `--config`, each choice with its reason as a comment."""
        reasons = {choice.name: choice.why for choice in self.choices}
        lines = _toml_lines(self.settings.to_dict(), reasons)
        if self.settings.tokenizer.size is None:  # to ask for as many tokens as came out would change them
            vocabulary = self.facts["tokenizer"]
            lines.append(f"# tokenizer.size is left to the corpus: {vocabulary['why']}; {vocabulary['size']:,} tokens")
        return "\n".join([*lines, "", "# What the presets are; model.* overrides their values:", *_preset_lines()])


def _preset_lines() -> list[str]:
    """The table of presets as comments, in columns."""
    rows = preset_table()
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    aligned = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return [f"# {line}".rstrip() for line in aligned]


def _toml_lines(values: Mapping[str, Any], reasons: Mapping[str, str], prefix: str = "") -> list[str]:
    lines = []
    for name, value in values.items():
        dotted = prefix + name
        if isinstance(value, dict):
            lines += _toml_lines(value, reasons, f"{dotted}.")
        elif value is not None and dotted != "stop.epochs":  # they became stop.steps
            why = f"  # {reasons[dotted]}" if dotted in reasons else ""
            lines.append(f"{dotted} = {json.dumps(value, ensure_ascii=False)}{why}")
    return lines


def plan_training(recipe: Recipe, asked: Settings, *, skip_unusable: bool = False) -> Plan:
    """The plan of a training that is not started: the corpus is read into a directory that is removed again."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="jumok-") as directory:
        recipe.prepare(Path(directory), asked, expected=None, encoder=None, skip_unusable=skip_unusable)
        if (first := recipe.first_stage(asked)) is not None:
            stage, settings = first
            recipe.use_first_stage(stage, None, Path(directory))
            began -= 60 * (settings.stop.minutes or 0.0)
        return resolve_settings(recipe, asked, began=began)


def resolve_settings(
    recipe: Recipe,
    asked: Settings,
    *,
    began: float,
    group: ProcessGroup = SINGLE_PROCESS,
    on_event: EventCallback = ignore_event,
) -> Plan:
    """Choose everything that was not asked for. `began` is when the command did: that time counts too."""
    plan = _choose_sizes(recipe, asked, group)
    while True:
        if asked.stop.minutes is not None:
            on_event({"event": "measuring"})
            plan = replace(plan, step_seconds=_measure(recipe, plan.settings, group))
        smaller = smaller_preset(plan.settings, plan.work, usable_cores(), plan.step_seconds)
        if asked.preset != "auto" or smaller is None:
            break
        plan = _choose_sizes(recipe, asked.changed({smaller.name: smaller.value}), group, smaller)
    return _choose_length(recipe, plan, began)


def recorded_plan(recipe: Recipe, settings: Settings, steps: int) -> Plan:
    """The plan of a training that is resumed, from its resolved settings and its (estimated) number of steps."""
    exportable = task_of_config(recipe.config(settings).to_dict()).conversion is not None
    each = recipe.export_cost if exportable else 0.0
    cost = each * min(PROBES, len(recipe.corpus.valid)) / validated_examples(recipe, settings)
    return Plan(settings, (), recipe.corpus.facts, _workload(recipe, settings), steps, export_validations=cost)


def _choose_sizes(recipe: Recipe, asked: Settings, group: ProcessGroup, *first: Choice) -> Plan:
    """The choices of the task, then those of `auto`, then of the task with that preset, of what was not asked for."""
    by_task = [_shared(choice, group.size) for choice in recipe.choices(asked) if not asked.has(choice.name)]
    chosen = asked.changed({choice.name: choice.value for choice in by_task})
    sizes = choose_sizes(chosen, recipe.corpus.facts["tokens"], group.size)
    chosen = chosen.changed({choice.name: choice.value for choice in sizes})
    suited = [choice for choice in recipe.choices_for(chosen) if not chosen.has(choice.name)]
    chosen = chosen.changed({choice.name: choice.value for choice in suited})
    choices = (*first, *_hardware_choices(chosen), *by_task, *sizes, *suited, *choose_rate(chosen))
    settings = asked.changed({choice.name: choice.value for choice in choices})
    return replace(recorded_plan(recipe, settings, 0), choices=choices)


def _hardware_choices(asked: Settings) -> list[Choice]:
    """The card that `auto` found, and the number format that suits it. A CPU and float32 are not worth mentioning."""
    hardware, choices = choose_hardware(asked), []
    if asked.device == "auto" and hardware.device.type != "cpu":
        choices.append(Choice("device", hardware.device.type, "the card that is there"))
    if asked.precision == "auto" and hardware.name != "float32":
        choices.append(Choice("precision", hardware.name, f"the {hardware.device.type} is fast at it"))
    return choices


def _shared(choice: Choice, processes: int) -> Choice:
    """Several processes share the batch that one would have."""
    return replace(choice, value=-(-choice.value // processes)) if choice.name == "batch.tokens" else choice


def _workload(recipe: Recipe, settings: Settings) -> Workload:
    facts, accumulate = recipe.corpus.facts, chosen(settings.batch.accumulate)
    steps_per_epoch = -(-recipe.epochs(settings).size(0) // accumulate)
    examples = len(recipe.corpus.train)  # to which a first stage may have added some
    share = validated_examples(recipe, settings) / examples  # of an epoch
    tokens = facts["tokens"] * examples // facts["examples"]
    return Workload(tokens, steps_per_epoch, recipe.validation_cost * share * steps_per_epoch)


def _choose_length(recipe: Recipe, plan: Plan, began: float) -> Plan:
    settings, work = plan.settings, plan.work
    estimate = None
    if settings.stop.minutes is not None and settings.stop.steps is None:
        assert plan.step_seconds is not None
        updates = (settings.stop.minutes * 60 - (time.perf_counter() - began)) / plan.step_seconds
        validations = choose_validations(max(1, int(updates)), work) + FINAL_VALIDATIONS + plan.export_validations
        estimate = max(1, int(updates / 2), int(updates - validations * work.validation_steps))
    choices = choose_length(settings, work, recipe.config(settings).to_dict(), estimate)
    steps = estimate or next(choice.value for choice in choices if choice.name == "stop.steps")
    suited = recipe.choices_for_length(settings, steps / work.steps_per_epoch)
    choices += [choice for choice in suited if not settings.has(choice.name)]
    settings = settings.changed({choice.name: choice.value for choice in choices})
    return replace(plan, settings=settings, choices=(*plan.choices, *choices), steps=steps)


def _measure(recipe: Recipe, settings: Settings, group: ProcessGroup) -> float:
    """Seconds of one update, on real examples, with a model that is thrown away."""
    model = new_model(recipe, settings)
    loss = group.shard(model, recipe.loss(model, settings), choose_hardware(settings).dtype)
    optimizer, epochs = make_optimizer(model, settings, group), recipe.epochs(settings)
    gradients = Gradients(loss, optimizer, may_split=not group.sharded, precision=choose_hardware(settings))
    gradients.fill([epochs.largest()])  # batches that do not fit into memory are split from here on
    batches = itertools.chain.from_iterable(
        epochs.batches(epoch, range(epochs.size(epoch))) for epoch in itertools.count()
    )

    def step() -> None:
        loss = gradients.fill([next(batches)])
        nn.utils.clip_grad_norm_(model.parameters(), settings.optimizer.clip)
        optimizer.step()
        float(loss)  # waits for a card

    rounds = -(-chosen(settings.batch.accumulate) // group.size)
    seconds = measure_step(step, chosen(settings.stop.minutes), group.broadcast) * rounds
    return float(group.broadcast(seconds))  # all processes must decide alike


def new_model(recipe: Recipe, settings: Settings) -> nn.Module:
    """A new model, always the same for a seed, whatever the device."""
    torch.manual_seed(settings.seed)
    model, hardware = recipe.model(settings), choose_hardware(settings)
    device, size = hardware.device, count_parameters(model)
    hardware.prepare(model)
    what = f"A model of {size:,} parameters, which needs {BYTES_TO_TRAIN * size / 1e9:.2f} GB for training,"
    with explain_lack_of_memory(device, what, lambda: _what_would_fit(recipe, settings, device)):
        return model.to(device)


def _what_would_fit(recipe: Recipe, settings: Settings, device: torch.device) -> str:
    """The largest preset that the free memory of a card is enough for."""
    memory, fitting = free_memory(device), {}
    for name, _ in PRESET_TOKENS if memory else ():
        config = recipe.config(settings.changed({"preset": name}))
        with torch.device("meta"):  # shapes without memory
            size = count_parameters(resolve(task_of_config(config.to_dict()).model)(config))
        if memory and BYTES_TO_TRAIN * size < memory[0]:
            fitting[name] = size
    best = max(fitting, key=fitting.__getitem__, default=None)
    preset = (
        "No preset would fit" if best is None else f'`preset="{best}"` would fit, with {fitting[best]:,} parameters'
    )
    return f'{preset}; or train with `device="cpu"`, or on several cards with `shard=True`.'


def choose_hardware(settings: Settings) -> Precision:
    """The device and the number format that the settings ask for; of several cards the one of this process."""
    device = choose_device(settings.device)
    if device.type != "cpu" and device.index is None:
        number = int(os.environ.get("LOCAL_RANK", "0")) % torch.get_device_module(device).device_count()
        device = torch.device(device.type, number)
    return Precision(choose_precision(settings.precision, device, wide=_has_large_products(settings)), device)


def _has_large_products(settings: Settings) -> bool:
    """Whether products of the model's states gain more from bfloat16 on a CPU than rounding their factors takes. What
    several processes share counts as a whole: they compute in the same format as one."""
    if settings.preset in WIDE:
        return True
    width: int = settings.model.get("d_model") or PRESETS.get(settings.preset, {}).get("d_model", 0)
    return width * (settings.batch.tokens or 0) * (settings.batch.accumulate or 1) >= LARGE_PRODUCT


def make_optimizer(model: nn.Module, settings: Settings, group: ProcessGroup) -> torch.optim.Optimizer:
    """Adam or Muon; the schedule sets the learning rate. Runs that do not name one are older than Muon."""
    given = settings.optimizer
    betas, weights = (given.beta1, given.beta2), list(model.parameters())
    matrices = hidden_matrices(model) if given.name == "muon" else {}
    if not matrices:
        return Adam(weights, betas, given.epsilon)
    others = [weight for weight in weights if weight not in matrices]
    # In float16 squares of small numbers would be zeros.
    product = torch.bfloat16 if choose_hardware(settings).name == "bfloat16" else torch.float32
    return Muon(matrices, others, betas=betas, eps=given.epsilon, every=given.every or 1, group=group, product=product)


def validated_examples(recipe: Recipe, settings: Settings) -> int:
    """How many examples a validation uses."""
    return min(len(recipe.corpus.valid), settings.validation.sentences)


def chosen(value: Setting | None) -> Setting:
    """A setting that has a value by now."""
    if value is None:
        raise ValueError("a setting was used before it was chosen")
    return value
