"""Runs an image classifier in PyTorch. Axes: B pictures, H height, W width, C channels or classes, D d_model."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from jumok.data.pictures import PictureArray
from jumok.engines.batching import FloatMatrix, to_unit_length
from jumok.engines.torch_models import TorchEngine, computing
from jumok.metrics.classification import ClassScores
from jumok.model.devices import CPU, to_device
from jumok.model.image_classifier import ImageClassifier
from jumok.pictures import PictureEncoder

BATCH_PATCHES = 16_384


def standardised(pictures: PictureArray, encoder: PictureEncoder, device: torch.device = CPU) -> Tensor:
    """[B, H, W, C] The values of pictures, with the mean 0 and the deviation 1 over those that were trained on."""
    both = torch.tensor((encoder.mean, encoder.deviation)) * 255  # [2, C]
    mean, deviation = to_device(both, device)
    values = to_device(torch.from_numpy(np.ascontiguousarray(pictures)), device).float()
    return values.sub_(mean).div_(deviation)


class TorchImageClassifier(TorchEngine):
    """Scores of pictures. Each is independent of the others in the call."""

    model: ImageClassifier

    @property
    def classes(self) -> int:
        """C, the number of classes."""
        return self.model.config.classes

    @computing
    def scores(self, pictures: PictureArray, encoder: PictureEncoder) -> ClassScores:
        """Scores [B, C] of the classes, before the softmax. Where mirrored pictures mean the same, they are the mean of
        the scores of a picture and of its mirror image."""
        model = self.model

        def score(values: Tensor) -> Tensor:
            scores: Tensor = model(values)
            return (scores + model(values.flip(2))) / 2 if model.config.mirror else scores

        return self._for_all(score, pictures, encoder, self.classes)

    @computing
    def vectors(self, pictures: PictureArray, encoder: PictureEncoder) -> FloatMatrix:
        """A vector [B, D] of length 1 for every picture."""
        return to_unit_length(self._for_all(self.model.pooled, pictures, encoder, self.model.config.d_model))

    def _for_all(
        self, run: Callable[[Tensor], Tensor], pictures: PictureArray, encoder: PictureEncoder, width: int
    ) -> FloatMatrix:
        """[B, width] What `run` returns for all pictures, some at a time."""
        result = np.zeros((len(pictures), width), np.float32)
        patches = self.model.config.rows * self.model.config.columns
        at_a_time = max(1, BATCH_PATCHES // patches)
        with self.evaluating(patches - 1):
            for start in range(0, len(pictures), at_a_time):
                some = slice(start, start + at_a_time)
                result[some] = run(standardised(pictures[some], encoder, self.device)).cpu().numpy()
        return result
