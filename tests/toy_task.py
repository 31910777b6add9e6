"""A task that Jumok does not know: sorting digits. Everything it needs stands here, and nothing in `src/` knows of it.

Line "3 1 2" in, 1 2 3 out. The inputs are lists of numbers, not texts, and the encoder is no tokenizer. CONTRIBUTING.md
walks through this file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from jumok.bundle import Bundle
from jumok.data.batch import TextBatch, make_text_batch
from jumok.data.epochs import CorpusEpochs
from jumok.data.examples import Example, ExampleKind, Rejections
from jumok.data.store import Indices
from jumok.engines.torch_models import load_model, padded
from jumok.errors import BundleError
from jumok.model.config import ModelConfig
from jumok.model.masks import padding_mask
from jumok.model.stacks import Encoder
from jumok.model.translator import make_embedder, stack_options
from jumok.recipes.evaluating.evaluation import Evaluation
from jumok.recipes.recipe import Recipe
from jumok.tasks import EncoderEntry, Task, register, register_encoder
from jumok.training.progress import Validation
from jumok.training.settings import Settings

FIRST_DIGIT = 4  # after <pad>, <unk>, <s> and </s>


# 1. What it learns from: a reader, an encoder, and how examples become batches.


def read_digits(paths: Sequence[str | Path], rejections: Rejections) -> Iterator[Example]:
    """Lists of digits, one a line."""
    for path in paths:
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            words = line.split()
            if words and all(word.isdigit() and len(word) == 1 for word in words):
                yield Example(([int(word) for word in words],), f"{path}:{number}")
            else:
                rejections.add("not a list of digits", f"{path}:{number}")


class DigitEncoder:
    """An `InputEncoder`: digit d has the id 4 + d."""

    size = FIRST_DIGIT + 10

    @classmethod
    def from_bytes(cls, data: bytes, origin: str) -> Self:
        """Read what `to_bytes` wrote."""
        if data != b'{"digits": 10}':
            raise BundleError(f"{origin}: is not an encoder of digits.")
        return cls()

    def to_bytes(self) -> bytes:
        """The encoder as the content of a file."""
        return json.dumps({"digits": 10}).encode()

    def encode(self, inputs: Sequence[list[int]], /) -> list[list[int]]:
        """The ids of each list of digits."""
        return [[FIRST_DIGIT + digit for digit in digits] for digits in inputs]


DIGITS = ExampleKind(
    name="lists",
    columns=("text",),
    files="text files with digits in each line",
    read=read_digits,
    learn_encoder=lambda _examples, _size, _seed: (DigitEncoder(), "ten digits"),
    encoder="digits",
)


class DigitEpochs(CorpusEpochs):
    """Batches of lists."""

    columns = ("text",)

    def _make(self, texts: Sequence[Any], indices: Indices) -> TextBatch:
        return make_text_batch(*texts[0], self._column("line", indices))


# 2. The model, made of parts that are there.


@dataclass(frozen=True, kw_only=True)
class SorterConfig(ModelConfig):
    """The shared description of a stack, and how many layers."""

    task: str = "sorter"
    encoder_layers: int = 2


class Sorter(nn.Module):
    """Ids in, scores of the digit at each position of the sorted list out."""

    def __init__(self, config: SorterConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = make_embedder(config)
        self.encoder = Encoder(config.encoder_layers, **stack_options(config))

    def forward(self, digits: Tensor) -> Tensor:
        """Scores [B, S, V]."""
        states = self.encoder(self.embed(digits), padding_mask(digits))
        return self.embed.tokens.logits(states)


def sort_ids(model: Sorter, rows: Sequence[Sequence[int]]) -> list[list[int]]:
    """The digits that the model finds most probable at each position."""
    with torch.no_grad():
        best = model(padded(rows)).argmax(-1)
    return [[int(token) - FIRST_DIGIT for token in found[: len(row)]] for row, found in zip(rows, best, strict=True)]


# 3. How it is trained and validated.


class SorterRecipe(Recipe):
    """Cross-entropy at each position; the best model is the one that sorts most lists right."""

    task, kind, epochs_type = "sorter", DIGITS, DigitEpochs

    def loss(self, model: Sorter, settings: Settings) -> Callable[[TextBatch], Tensor]:
        """The sum over all positions."""
        del settings

        def loss(batch: TextBatch) -> Tensor:
            digits = np.where(batch.target_out >= FIRST_DIGIT, batch.target_out, 0)
            last = np.where(digits > 0, digits, FIRST_DIGIT + 10)  # padding sorts behind all digits
            targets = np.sort(last, 1) * (digits > 0)
            scores = model(torch.from_numpy(digits)).flatten(0, 1)
            return nn.functional.cross_entropy(
                scores, torch.from_numpy(targets).flatten(), ignore_index=0, reduction="sum"
            )

        return loss

    def validate(self, model: Sorter, count: int) -> Validation:
        """The share of lists that are sorted right."""
        lists = [example.inputs[0] for example in self.validation_examples(count)]
        outputs = sort_ids(model, self.corpus.encoder.encode(lists))
        accuracy = share_sorted(lists, outputs)
        samples = [{"source": str(lists[0]), "reference": str(sorted(lists[0])), "output": str(outputs[0])}]
        return Validation(accuracy, {"loss": 1 - accuracy, "accuracy": accuracy, "samples": samples})


def share_sorted(lists: Sequence[list[int]], outputs: Sequence[list[int]]) -> float:
    """How many of the outputs are the sorted lists."""
    return sum(sorted(digits) == found for digits, found in zip(lists, outputs, strict=True)) / len(lists)


# 4. How it is used and evaluated.


class DigitSorter:
    """What `jumok.load` returns."""

    task: ClassVar[str] = "sorter"

    def __init__(self, model: Sorter, encoder: DigitEncoder, card: dict[str, Any]) -> None:
        self.model, self.encoder, self.card = model, encoder, card

    @classmethod
    def open(cls, bundle: Bundle, encoder: DigitEncoder, engine: str = "auto") -> Self:
        """The sorter of a bundle."""
        del engine
        return cls(load_model(bundle, Sorter), encoder, bundle.card)

    def sort(self, lists: Sequence[list[int]]) -> list[list[int]]:
        """Each list, sorted."""
        return sort_ids(self.model, self.encoder.encode(lists))


def evaluate(model: DigitSorter, files: Sequence[Path]) -> Evaluation:
    """The share of the lists in a file that are sorted right."""
    lists = [example.inputs[0] for example in read_digits(files, Rejections())]
    accuracy = share_sorted(lists, model.sort(lists))
    return Evaluation({"accuracy": accuracy, "lists": len(lists)}, [f"accuracy  {accuracy:.1%}  of {len(lists)} lists"])


# 5. Its entries in the tables.

SORTER = Task(
    name="sorter",
    title="sorter of digits",
    train_command="sorter",
    usage="echo {text} | sort",
    encoder="digits",
    config="toy_task:SorterConfig",
    model="toy_task:Sorter",
    recipe="toy_task:SorterRecipe",
    facade="toy_task:DigitSorter",
    evaluation="toy_task:evaluate",
)


def register_sorter() -> None:
    """Make the task known, as a plug-in would when it is imported."""
    register_encoder(EncoderEntry("digits", "digits.json", "toy_task:DigitEncoder"))
    register(SORTER)
