"""The trace of a picture: which patches speak for a class, and everything that the encoder computed.

The scores of the classes are those of the mean state of all patches, a linear function, so they are sums over patches:
`patch_scores` [position, class] are the parts, without the bias of the last layer. They add up exactly."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.engines.image_classifier.torch import standardised
from jumok.lens.traces import Trace
from jumok.lens.tracing import CHANGES, Recording, torch_engine
from jumok.metrics.classification import probabilities
from jumok.model.image_classifier import ImageClassifier
from jumok.pictures import PictureSource


def trace(classifier: Any, picture: PictureSource) -> Trace:
    """The trace of a picture. Where mirrored pictures mean the same, scores are the mean over both, as in a prediction;
    what the encoder computed is that of the picture as it is."""
    engine = torch_engine(classifier)
    model: ImageClassifier = engine.model
    config = model.config
    pixels = classifier.pixels([picture])
    values = standardised(pixels, classifier.encoder, engine.device)
    recording, last = Recording(engine), config.rows * config.columns - 1
    parts = recording.run(lambda: _patch_scores(model, values), last)
    if config.mirror:
        with engine.evaluating(last):
            flipped = _patch_scores(model, values.flip(2)).view(config.rows, config.columns, -1).flip(1).flatten(0, 1)
        parts = (parts + flipped) / 2
    with torch.inference_mode():
        scores = (parts.sum(0) + model.head.bias).cpu().numpy()
    [shares] = probabilities(scores[None], classifier.temperature)
    recording.tensors |= {
        "picture": pixels[0],
        "patch_scores": parts.cpu().numpy(),
        "class_scores": scores,
        "class_probabilities": shares,
    }
    places = tuple(f"{row},{column}" for row in range(config.rows) for column in range(config.columns))
    name = str(picture) if isinstance(picture, str | Path) else "picture"
    label = classifier.classes[int(shares.argmax())]
    facts = {"config": config.to_dict(), "classes": classifier.classes, "changes": CHANGES.get(), "chosen": []}
    return Trace("image_classifier", name, label, recording.tensors, {"encoder": places}, None, facts)


def _patch_scores(model: ImageClassifier, values: Tensor) -> Tensor:
    """[S, C] What each patch of one picture adds to the score of each class."""
    [states] = model.encode(values)
    parts: Tensor = states @ model.head.weight.T / len(states)
    return parts
