"""What is particular to one kind of model; everything else about a training is the same for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor, nn

from jumok.model.config import ModelConfig
from jumok.tokenizer import Tokenizer
from jumok.training.auto import Choice
from jumok.training.progress import Epochs, Validation
from jumok.training.settings import Settings


class Task(Protocol):
    """What a training must know of its task. All but `name`, `inputs` and `prepare` is used after `prepare`."""

    @property
    def name(self) -> str:
        """Of the task, in run.json and the card."""

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the files, for run.json and the card."""

    def prepare(
        self, store: Path, settings: Settings, *, expected: str | None, tokenizer: Tokenizer | None
    ) -> dict[str, Any]:
        """Makes the data ready, or finds it ready in `store`, and returns the facts about it.

        Among them `fingerprint` and `tokens`, how many are learned from in an epoch. Raises ChangedDataError, before
        anything is written, if `expected` is given and is not the fingerprint. With a `tokenizer` none is learned.
        """

    def reopen(self, store: Path, fingerprint: str) -> dict[str, Any]:
        """Takes what another process of the same training has just prepared, and returns the facts about it."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary in use."""

    @property
    def valid_examples(self) -> int:
        """How many examples there are to validate on."""

    def card(self) -> Mapping[str, Any]:
        """What the model's card says beside what it says of every model."""

    def fixed(self) -> Mapping[str, Any]:
        """What the data must not change while a model goes on learning from it; kept in run.json."""

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """What suits this task and its data better than what suits most; used where nothing was asked for."""

    def config(self, settings: Settings) -> ModelConfig:
        """Sizes of the model."""

    def model(self, settings: Settings) -> nn.Module:
        """A model that has learned nothing."""

    def epochs(self, settings: Settings) -> Epochs:
        """The batches to learn from."""

    def loss(self, model: Any, settings: Settings) -> Callable[[Any], Tensor]:
        """Batch to the sum of the loss over its answers."""

    def finish(self, model: Path) -> Mapping[str, Any] | None:
        """What is done with the best model when the training has ended, and what there is to say about it."""

    def validate(self, model: Any, examples: int) -> Validation:
        """Judges the model on so many of the validation examples."""
