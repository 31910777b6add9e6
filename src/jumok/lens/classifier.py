"""The trace of a classifier. A text longer than the model's window has one more axis in front, `window`."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from jumok.data.examples import Rejections
from jumok.data.reading.labelled import read_labelled
from jumok.data.reading.options import reading_options
from jumok.data.reading.unused_options import refuse_unused_options
from jumok.engines.torch_models import padded
from jumok.lens.importance import Quality
from jumok.lens.traces import Trace
from jumok.lens.tracing import Recording, facts, require_tokens, torch_engine
from jumok.metrics.classification import probabilities
from jumok.tokenizer import EOS, normalize


def trace(classifier: Any, text: str) -> Trace:
    """The trace of a text: the encoder, its pooled state, the scores of the classes and their probabilities."""
    engine, tokenizer = torch_engine(classifier), classifier.tokenizer
    [ids] = tokenizer.encode([normalize(text)])
    require_tokens(ids, text)
    row = padded([[*ids, EOS]], engine.device)
    recording, model = Recording(engine), engine.model
    scores = recording.run(lambda: model(row), model.attended(row.shape[1]) - 1).cpu().numpy()
    with engine.evaluating(model.attended(row.shape[1]) - 1), torch.inference_mode():
        recording.tensors["pooled"] = model.pooled(row)[0].cpu().numpy()
    recording.tensors["class_scores"] = scores[0]
    [shares] = probabilities(scores, classifier.temperature)
    recording.tensors["class_probabilities"] = shares
    label = classifier.classes[int(shares.argmax())]
    tokens = tuple(tokenizer.pieces([*ids, EOS]))
    return Trace("classifier", text, label, recording.tensors, {"encoder": tokens}, None, facts(classifier, engine))


def measure(classifier: Any, examples: Sequence[tuple[str, str]], score: bool) -> Callable[[], Quality]:
    """Log-probability of the labels and, with `score`, accuracy in percent, with PyTorch."""
    engine = torch_engine(classifier)
    texts = classifier.tokenizer.encode([normalize(text) for text, _ in examples])
    labels = [classifier.classes.index(label) for _, label in examples]

    def run() -> Quality:
        shares = probabilities(engine.scores(texts), classifier.temperature)
        right = shares.argmax(1) == labels
        log_probs = np.log(shares[np.arange(len(labels)), labels])
        return Quality(float(log_probs.mean()), 100 * float(right.mean()) if score else None, (float(log_probs[0]),))

    return run


def read_examples(classifier: Any, path: Path, rejections: Rejections, **reading: Any) -> Iterator[tuple[str, str]]:
    """The texts of a file and their labels."""
    options = reading_options(**reading)
    refuse_unused_options(options, [path], unnamed="table")
    found = read_labelled([path], rejections, classifier.classes, options=options)
    return ((example.inputs[0], example.label) for example in found)
