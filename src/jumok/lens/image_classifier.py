"""The trace of a picture: which patches speak for a class, and everything that the encoder computed.

The scores of the classes are those of the mean state of all patches, a linear function, so they are sums over patches:
`patch_scores` [position, class] are the parts, without the bias of the last layer. They add up exactly. But the state
of a patch knows of the others; `hidden_scores` [position, class] are the scores of the picture with this patch hidden,
all of it in the mean colour of the pictures of the training: what the model says if it does not see it."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumok.data.pictures import PictureArray
from jumok.engines.image_classifier.torch import standardised
from jumok.errors import InputError
from jumok.lens.glossary import Meaning
from jumok.lens.traces import Trace
from jumok.lens.tracing import CHANGES, Recording, torch_engine
from jumok.metrics.classification import probabilities
from jumok.model.image_classifier import ImageClassifier
from jumok.pictures import PictureEncoder, PictureSource

MEANINGS = {
    "embedding": Meaning("patch · W + b", "jumok.model.patches:PatchEmbedder"),
    "embedded": Meaning("embedding + positions", "jumok.model.patches:PatchEmbedder.forward"),
    "class_scores": Meaning("Σ patch_scores + b", "jumok.lens.image_classifier:trace"),
    "patch_scores": Meaning("state · W / number of patches", "jumok.lens.image_classifier:_patch_scores"),
    "hidden_scores": Meaning("scores with this patch hidden", "jumok.lens.image_classifier:_with_hidden_patches"),
}


def requested(request: Any, pictures: Mapping[str, Path]) -> tuple[PictureSource, dict[str, Any]]:
    """What a request of the page asks for: a picture, whose file it brings or which it names, and options of `trace`.
    Files that it names are those that the page was started with."""
    if request.picture is not None:
        try:
            return base64.b64decode(request.picture, validate=True), {"hide": True}
        except ValueError as error:
            raise InputError(f"picture: is not base64 ({error}).") from error
    if request.text not in pictures:
        raise InputError(f'The page has no picture "{request.text}". Choose a file.')
    return pictures[request.text], {"hide": True}


def trace(classifier: Any, picture: PictureSource, *, hide: bool = False) -> Trace:
    """The trace of a picture. Where mirrored pictures mean the same, scores are the mean over both, as in a prediction;
    what the encoder computed is that of the picture as it is. `hide` adds `hidden_scores`, for which the model runs
    once for every patch."""
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
    if hide:
        hidden = _with_hidden_patches(pixels[0], classifier.encoder, config.patch)
        recording.tensors["hidden_scores"] = engine.scores(hidden, classifier.encoder)
    places = tuple(f"{row},{column}" for row in range(config.rows) for column in range(config.columns))
    name = str(picture) if isinstance(picture, str | Path) else "picture"
    label = classifier.classes[int(shares.argmax())]
    facts = {
        "config": config.to_dict(),
        "classes": classifier.classes,
        "grid": [config.rows, config.columns],
        "places": ["encoder"],
        "changes": CHANGES.get(),
        "chosen": [],
    }
    return Trace("image_classifier", name, label, recording.tensors, {"encoder": places}, None, facts)


def _with_hidden_patches(pixels: PictureArray, encoder: PictureEncoder, patch: int) -> PictureArray:
    """[S, H, W, C] The picture [H, W, C] as often as it has patches, each time with another one hidden."""
    height, width, _ = pixels.shape
    corners = [(row, column) for row in range(0, height, patch) for column in range(0, width, patch)]
    found = np.repeat(pixels[None], len(corners), 0)
    for each, (row, column) in zip(found, corners, strict=True):
        each[row : row + patch, column : column + patch] = np.rint(np.array(encoder.mean) * 255)
    return found


def _patch_scores(model: ImageClassifier, values: Tensor) -> Tensor:
    """[S, C] What each patch of one picture adds to the score of each class."""
    [states] = model.encode(values)
    parts: Tensor = states @ model.head.weight.T / len(states)
    return parts
