"""Two files in, a translator out."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from jumok.bundle import save_bundle
from jumok.data.batch import Batch
from jumok.data.parallel import TranslationEpochs, prepare
from jumok.errors import CheckpointError
from jumok.model.config import ModelConfig
from jumok.model.config import preset as preset_config
from jumok.model.summary import count_parameters
from jumok.model.translator import Translator
from jumok.recipes.validation import translate_and_score
from jumok.training.auto import (
    Costs,
    choose_length,
    choose_sizes,
    forecast,
    measure_step,
    require_one_length,
)
from jumok.training.memory import keep_freed_memory
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.progress import TrainingOptions, Validation
from jumok.training.run_directory import RunDirectory, diff_settings, read_log
from jumok.training.schedule import make_schedule
from jumok.training.settings import Settings
from jumok.training.trainer import Event, Trainer

MEASURED_SENTENCES = 100  # for the forecast of what a validation takes

Setting = TypeVar("Setting")
PathLike = str | Path
Watch = Callable[[Event], None]


@dataclass(frozen=True)
class TrainingResult:
    """How a training ended."""

    run: Path
    model: Path  # the bundle of the best weights
    steps: int
    score: float | None  # of the best validation


def train_translator(
    source: PathLike,
    target: PathLike | None = None,
    *,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    fresh: bool = False,
    continue_with_changes: bool = False,
    watch: Watch = lambda _: None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> TrainingResult:
    """Trains a translator on two aligned files, or one file with both sides, in the run directory `out`.

    Called again with the same arguments it goes on where it stopped. `settings` are dotted names and values, or a
    `Settings`; `watch` receives everything that happens as dictionaries (see training/trainer.py).
    """
    lengths = {"preset": preset, "stop.minutes": minutes, "stop.steps": steps, "stop.epochs": epochs}
    given = settings if isinstance(settings, Settings) else Settings.from_dict({}).changed(settings or {})
    asked = given.changed({name: value for name, value in lengths.items() if value is not None})
    _require_possible(asked)
    paths = [source] if target is None else [source, target]
    keep_freed_memory()
    with RunDirectory.open(Path(out), "translator") as run:
        if fresh:
            run.clear()
        job = _TranslatorJob(run, asked, paths, valid, watch, continue_with_changes)
        finished = _already_finished(run, job.settings)
        if finished is not None:
            watch({"event": "already_done", "step": finished["step"]})
            return TrainingResult(run.path, run.model, finished["step"], finished["best_score"])
        progress = job.trainer(stop_requested).train()
        return TrainingResult(run.path, run.model, progress.step, progress.best_score)


def _require_possible(settings: Settings) -> None:
    """Refuses a preset, a model or lengths that cannot be, before anything is read or written."""
    require_one_length(settings.stop)
    preset_config("tiny" if settings.preset == "auto" else settings.preset, vocabulary=1, **settings.model)


def _already_finished(run: RunDirectory, settings: Settings) -> Mapping[str, Any] | None:
    last = read_log(run.path)[-1:]
    done = last and last[0].get("event") == "done" and last[0]["step"] >= (settings.stop.steps or 0)
    return last[0] if done else None


class _TranslatorJob:
    """One training of a translator: what was asked for, resolved to numbers once and kept in run.json."""

    def __init__(
        self,
        run: RunDirectory,
        asked: Settings,
        paths: Sequence[PathLike],
        valid: Sequence[PathLike] | None,
        watch: Watch,
        continue_with_changes: bool,
    ) -> None:
        self.began = time.perf_counter()
        self.run, self.asked, self.watch = run, asked, watch
        self.names = [Path(path).name for path in paths]
        before = run.read()
        if before is not None and not continue_with_changes:
            _require_same(run, before["asked"], asked)
        self.corpus = prepare(run.store, paths, valid=valid, size=asked.tokenizer.size, seed=asked.seed)
        watch({"event": "corpus", **self.corpus.facts})
        if before is not None and not continue_with_changes:
            self._require_same_data(before["fingerprint"])
        if before is not None and before["asked"] == asked.to_dict():
            self.settings = Settings.from_dict(before["settings"])
        else:
            self.settings = self._resolve()
        self.watch({"event": "settings", "settings": self.settings.to_dict()})

    def _require_same_data(self, fingerprint: str) -> None:
        if fingerprint != self.corpus.facts["fingerprint"]:
            raise CheckpointError(
                f"{self.run.path}: {', '.join(self.names)} changed since this training began. Bring back the old "
                "files, start again with --fresh, or accept the new ones with --continue-with-changes."
            )

    def trainer(self, stop_requested: Callable[[], bool]) -> Trainer:
        """Everything put together."""
        settings = self.settings
        self.model = self._model(settings)
        steps = _filled(settings.stop.steps)
        warmup, peak = _filled(settings.schedule.warmup), _filled(settings.optimizer.lr)
        options = TrainingOptions(
            seed=settings.seed,
            steps=steps,
            accumulate=settings.batch.accumulate,
            clip=settings.optimizer.clip,
            log_every=settings.log.every,
            validate_every=_filled(settings.validation.every),
            checkpoint_every=_filled(settings.checkpoint.every),
            patience=settings.stop.patience,
            average=settings.checkpoint.average,
        )
        return Trainer(
            model=self.model,
            optimizer=_optimizer(self.model, settings),
            schedule=make_schedule(_filled(settings.schedule.name), peak=peak, warmup=warmup, total=steps),
            loss=_loss(self.model, settings.loss.smoothing),
            epochs=self._epochs(settings),
            validate=self._validate,
            publish=self._publish,
            options=options,
            run=self.run,
            watch=self.watch,
            stop_requested=stop_requested,
        )

    def _resolve(self) -> Settings:
        """Fills in what was not given, from the corpus and a few seconds of real training, and keeps it in run.json."""
        tokens = self.corpus.facts["target_tokens"]
        choices = choose_sizes(self.asked, tokens)
        settings = self.asked.changed({choice.name: choice.value for choice in choices})
        costs = self._measure(settings)
        steps_per_epoch = -(-self._epochs(settings).size(0) // settings.batch.accumulate)
        length = choose_length(settings, steps_per_epoch, tokens, costs)
        settings = settings.changed({choice.name: choice.value for choice in length})
        plan = [asdict(choice) for choice in choices + length]
        self.watch({"event": "plan", "choices": plan, "expected_seconds": forecast(settings, costs)})
        record = {"asked": self.asked.to_dict(), "settings": settings.to_dict(), "inputs": self.names}
        self.run.write({**record, "fingerprint": self.corpus.facts["fingerprint"], "versions": _versions()})
        return settings

    def _measure(self, settings: Settings) -> Costs:
        """What an update and a validation take here, on real sentences, with a model that is thrown away."""
        model = self._model(settings)
        optimizer, loss = _optimizer(model, settings), _loss(model, settings.loss.smoothing)
        batches = itertools.chain.from_iterable(self._epochs(settings).batches(epoch, 0) for epoch in itertools.count())

        def step() -> None:
            batch = next(batches)
            optimizer.zero_grad()
            (loss(batch) / batch.tokens).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

        step_seconds = measure_step(step, settings.stop) * settings.batch.accumulate
        everything = self.corpus.valid[: settings.validation.sentences]
        some = everything[:MEASURED_SENTENCES]
        started = time.perf_counter()
        with torch.inference_mode():
            translate_and_score(model.eval(), self.corpus.tokenizer, some)
        validation_seconds = (time.perf_counter() - started) * len(everything) / len(some)
        return Costs(step_seconds, validation_seconds, time.perf_counter() - self.began)

    def _model(self, settings: Settings) -> Translator:
        torch.manual_seed(settings.seed)
        return Translator(self._config(settings))

    def _config(self, settings: Settings) -> ModelConfig:
        return preset_config(settings.preset, vocabulary=self.corpus.tokenizer.size, **settings.model)

    def _epochs(self, settings: Settings) -> TranslationEpochs:
        tokens, sampling = _filled(settings.batch.tokens), settings.tokenizer.sampling
        return TranslationEpochs(self.corpus, tokens=tokens, seed=settings.seed, sampling=sampling)

    def _validate(self) -> Validation:
        pairs = self.corpus.valid[: self.settings.validation.sentences]
        return translate_and_score(self.model, self.corpus.tokenizer, pairs)

    def _publish(self, validation: Validation, step: int) -> None:
        """The best weights so far as a bundle that anybody can use while the training goes on."""
        config = self._config(self.settings)
        weights = {name: weight.detach().numpy() for name, weight in self.model.state_dict().items()}
        card = {
            "task": "translator",
            "inputs": self.names,
            "fingerprint": self.corpus.facts["fingerprint"],
            "seed": self.settings.seed,
            "step": step,
            "metrics": {name: value for name, value in validation.metrics.items() if name != "samples"},
            "parameters": count_parameters(self.model),
            "versions": _versions(),
        }
        tokenizer = self.corpus.tokenizer.to_bytes()
        save_bundle(self.run.model, config=config.to_dict(), weights=weights, tokenizer=tokenizer, card=card)


def _filled(value: Setting | None) -> Setting:
    """A setting that `auto` has filled in by now."""
    if value is None:
        raise ValueError("a setting was used before it was chosen")
    return value


def _require_same(run: RunDirectory, before: Mapping[str, Any], asked: Settings) -> None:
    changes = diff_settings(before, asked.to_dict())
    if changes:
        raise CheckpointError(
            f"{run.path}: this training was begun with other settings:\n  " + "\n  ".join(changes) + "\n"
            "Give the old ones to go on, --fresh to start again, or --continue-with-changes to go on with the new ones."
        )


def _optimizer(model: Translator, settings: Settings) -> torch.optim.Optimizer:
    chosen = settings.optimizer
    betas = (chosen.beta1, chosen.beta2)
    return torch.optim.Adam(model.parameters(), lr=0.0, betas=betas, eps=chosen.epsilon, fused=True)


def _loss(model: Translator, smoothing: float) -> Callable[[Batch], Tensor]:
    """Teacher forcing: the whole target at once, each token given the true ones before it."""

    def loss(batch: Batch) -> Tensor:
        source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target_in)
        states = model.states(source, target).flatten(0, 1)
        answers = torch.from_numpy(batch.target_out).flatten()
        return smoothed_cross_entropy(states, model.embed.tokens.weight, answers, smoothing)

    return loss


def _versions() -> dict[str, str]:
    return {name: version(name) for name in ("jumok", "torch", "sentencepiece", "numpy")}
