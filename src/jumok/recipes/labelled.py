"""What the training of all classifiers shares, whatever they classify."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumok.data.examples import Example
from jumok.metrics.classification import ClassScores, Labels, classification_scores, fit_temperature
from jumok.recipes.recipe import Recipe

SAMPLES = 3  # predictions shown after each validation


class LabelledRecipe(Recipe):
    """Trains on examples with labels."""

    def card(self) -> dict[str, Any]:
        """The names of the classes, in the order of the scores, and the number of training examples of each."""
        return {"classes": self.corpus.facts["classes"]}

    def fixed(self) -> dict[str, Any]:
        """The classes: their numbers are in the weights."""
        return {"classes": self.corpus.classes}

    def class_weights(self) -> Tensor:
        """[C] Rare classes count for more, by the square root of how rare they are. The mean over all examples is 1."""
        counts = torch.tensor(list(self.corpus.facts["classes"].values()), dtype=torch.float32)
        weights = (counts.sum() / counts).sqrt()
        return weights * counts.sum() / (weights * counts).sum()

    def labels(self, examples: Sequence[Example]) -> Labels:
        """[B] The class numbers of some examples."""
        numbers = {name: number for number, name in enumerate(self.corpus.classes)}
        return np.array([numbers[example.label] for example in examples])

    def metrics(self, scores: ClassScores, examples: Sequence[Example]) -> dict[str, Any]:
        """Accuracy, macro-F1, calibration, the temperature that calibrates, and a few predictions to look at."""
        labels = self.labels(examples)
        temperature = fit_temperature(scores, labels)
        samples = [
            {**self.sample(example), "reference": example.label, "output": self.corpus.classes[int(row.argmax())]}
            for example, row in zip(examples[:SAMPLES], scores, strict=False)
        ]
        return {
            **classification_scores(scores, labels, temperature),
            "temperature": temperature,
            "samples": samples,
        }

    def sample(self, example: Example) -> dict[str, Any]:
        """An example as it is shown after a validation."""
        return {"source": example.inputs[0]}
