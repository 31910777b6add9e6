"""A training small enough to run hundreds of times: a linear map, and batches that are a function of the epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from faulty_files import FaultyFiles
from jumok.bundle import save_bundle
from jumok.data.batch import load_batches
from jumok.model.dropout import Dropout
from jumok.training.distributed import SINGLE_PROCESS, ProcessGroup
from jumok.training.length import Length
from jumok.training.muon import Muon
from jumok.training.optimizer import Adam
from jumok.training.precision import Precision
from jumok.training.progress import Progress, TrainingOptions, Validation
from jumok.training.records import read_log, read_run
from jumok.training.run_directory import RunDirectory
from jumok.training.schedule import make_schedule
from jumok.training.trainer import StoppedEarly, Trainer

BATCHES, WIDTH = 7, 6


@dataclass(frozen=True)
class ToyBatch:
    inputs: Tensor

    @property
    def tokens(self) -> int:
        return len(self.inputs)

    def halves(self) -> tuple[ToyBatch, ToyBatch] | None:
        middle = len(self.inputs) // 2
        return (ToyBatch(self.inputs[:middle]), ToyBatch(self.inputs[middle:])) if middle else None

    def describe(self) -> str:
        return f"{len(self.inputs)} toy rows"


class ToyEpochs:
    """Seven batches of unequal sizes, other ones in every epoch."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def size(self, epoch: int) -> int:
        return BATCHES

    def digest(self, epoch: int) -> str:
        return f"{self.seed}-{epoch}"

    def batches(self, epoch: int, places: Sequence[int]) -> Iterator[ToyBatch]:
        return (self._batch(epoch, number) for number in places)

    def _batch(self, epoch: int, number: int) -> ToyBatch:
        draw = np.random.default_rng((self.seed, epoch, number))
        return ToyBatch(torch.from_numpy(draw.normal(size=(number + 2, WIDTH)).astype(np.float32)))

    def largest(self) -> ToyBatch:
        return list(self.batches(0, range(BATCHES)))[-1]


class BackgroundEpochs(ToyEpochs):
    """The same batches, made ahead of time in the background as those of a corpus are."""

    def batches(self, epoch: int, places: Sequence[int]) -> Iterator[ToyBatch]:
        return load_batches(range(BATCHES), lambda number, _: self._batch(epoch, number), places)


class ToyModel(nn.Module):
    """Learns to give its input back through dropout."""

    def __init__(self) -> None:
        super().__init__()
        torch.default_generator.manual_seed(1)
        self.norm = nn.LayerNorm(WIDTH)  # its gradients are summed in an order that depends on the number of threads
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.dropout = Dropout(0.2)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear(self.dropout(self.norm(x)))
        return result


class Toy:
    """A training in `path`, begun or continued by `go`. `published` collects what was published, by step."""

    def __init__(self, path: Path, **changes: Any) -> None:
        self.path = path
        self.stop_after: int | None = changes.pop("stop_after", None)
        self.loss_of: Callable[[ToyModel, ToyBatch], Tensor] = changes.pop("loss_of", squared_error)
        self.score_of: Callable[[ToyModel, int], float] = changes.pop("score_of", negative_error)
        self.epochs = changes.pop("epochs", ToyEpochs())
        self.after_update: Callable[[Toy], None] = changes.pop("after_update", lambda toy: None)
        self.fs: FaultyFiles | None = changes.pop("fs", None)  # given: models are published there, in bundles
        self.group: ProcessGroup = changes.pop("group", SINGLE_PROCESS)
        self.precision = Precision(changes.pop("precision", "float32"))
        self.by_muon: bool = changes.pop("by_muon", False)
        self.steps: int = changes.pop("steps", 30)
        self.peak: float = changes.pop("peak", 0.05)
        self.options = TrainingOptions(
            **{
                "seed": 3,
                "accumulate": 2,
                "log_every": 4,
                "validate_every": 6,
                "checkpoint_every": 5,
                "average": 3,
                "limits": {"steps": self.steps},
                **changes,
            }
        )
        self.published: dict[int, dict[str, Tensor]] = {}
        self.events: list[dict[str, Any]] = []

    def go(self) -> Progress | None:
        """Trains until the end, or until asked to stop: then None."""
        self.model = ToyModel()
        self.precision.prepare(self.model)
        with RunDirectory.open(self.path, "toy", fs=self.fs or FaultyFiles()) as run:  # quick: it waits for no disk
            if run.read() is None:
                run.write({"asked": {}, "settings": {}, "fingerprint": "", "keeps_vocabulary": False})
            warmup = min(5, self.steps)
            length = Length((run.read() or {})["length"] or [(0, self.steps)], warmup=warmup)
            loss = self.group.shard(self.model, lambda batch: self.loss_of(self.model, batch))
            optimizer = self._optimizer()
            optimizer.register_step_post_hook(lambda *_: self.after_update(self))
            self.trainer = Trainer(
                model=self.model,
                full_model=ToyModel() if self.group.sharded else self.model,
                optimizer=optimizer,
                schedule=make_schedule("linear", peak=self.peak, warmup=warmup, length=length),
                length=length,
                loss=loss,
                epochs=self.epochs,
                validate=self._validate,
                publish=self._publish,
                options=self.options,
                run=run,
                on_event=lambda event: self.events.append(dict(event)),
                stop_requested=self._stop,
                group=self.group,
                precision=self.precision,
            )
            try:
                return self.trainer.train()
            except StoppedEarly:
                return None

    def _optimizer(self) -> torch.optim.Optimizer:
        if not self.by_muon:
            return Adam(self.model.parameters(), (0.9, 0.999), 1e-8)
        matrix = self.model.linear.weight
        others = [weight for weight in self.model.parameters() if weight is not matrix]
        options: dict[str, Any] = {"group": self.group, "product": self.precision.dtype}
        return Muon({matrix: (WIDTH,)}, others, betas=(0.9, 0.999), eps=1e-8, **options)

    def length_record(self) -> list[list[int]]:
        """How the number of steps was changed, as run.json tells it."""
        changes: list[list[int]] = (read_run(self.path) or {})["length"]
        return changes

    def log(self) -> list[dict[str, Any]]:
        """The log without times, and without the checkpoints that only an interruption makes."""
        entries = [{k: v for k, v in entry.items() if k != "seconds"} for entry in read_log(self.path)]
        return [entry for entry in entries if entry["event"] != "checkpoint"]

    def _stop(self) -> bool:
        return self.stop_after is not None and self.trainer.progress.step + 1 >= self.stop_after

    def _validate(self) -> Validation:
        torch.default_generator.manual_seed(99)  # a validation that disturbs the random numbers must not matter
        score = self.score_of(self.trainer.full_model, self.trainer.progress.step)
        return Validation(score, {"toy": score})

    def _publish(self, validation: Validation, step: int) -> None:
        weights = self.trainer.full_model.state_dict()
        if self.fs is not None:
            arrays = {name: weight.numpy() for name, weight in weights.items()}
            save_bundle(self.path / "model", config={}, weights=arrays, encoder=("tokenizer", b""), card={}, fs=self.fs)
        self.published[step] = {name: weight.clone() for name, weight in weights.items()}


def squared_error(model: ToyModel, batch: ToyBatch) -> Tensor:
    return ((model(batch.inputs) - batch.inputs) ** 2).mean(1).sum()


def negative_error(model: ToyModel, step: int) -> float:
    inputs = torch.linspace(-1, 1, 5 * WIDTH).view(5, WIDTH)
    return -float(((model(inputs) - inputs) ** 2).mean())
