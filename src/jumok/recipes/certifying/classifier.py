"""The certificate of a classifier: equal encoder states, equal classes."""

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from jumok.engines.batching import TokenIds
from jumok.engines.classifier.ctranslate2 import Ctranslate2Classifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.recipes.certifying.certificate import (
    EXACT,
    MOST_PROBES,
    Certificate,
    Export,
    Scores,
    compare_scores,
    covering_texts,
    random_sources,
    require_close,
    require_parity,
)
from jumok.tokenizer import EOS

MOST_DIFFERENT = 0.01  # share of texts whose class quantization may change


def certify(export: Export) -> dict[str, Any]:
    """Compare the class scores of probes and of random texts, and the states of every token and position."""
    reference, exact = export.reference(TorchClassifier), _exported(export, EXACT)
    probes = export.encoder.encode([inputs[0] for inputs in export.probes[:MOST_PROBES]])
    texts = [text for text in (*probes, *random_sources(export.encoder)) if not exact.too_long(text)]
    found = require_parity(_compare(reference, exact, texts))
    rows = [[*text, EOS] for text in covering_texts(export.encoder, exact.longest)]
    require_close("states", lambda engine: _states(engine, rows), reference, exact)
    if not export.is_exact:
        found = _compare(TorchClassifier.from_bundle(export.bundle), _exported(export), texts)
        different = found.sources - found.equal
        if different > MOST_DIFFERENT * found.sources:
            raise export.too_lossy(
                f"gives {different} of {found.sources} probes another class: more than {MOST_DIFFERENT:.0%}"
            )
    return asdict(found)


def _exported(export: Export, compute: str = "default") -> Ctranslate2Classifier:
    original = partial(TorchClassifier.from_bundle, export.bundle)
    return Ctranslate2Classifier(export.directory, export.bundle, original, compute=compute)


def _compare(original: TorchClassifier, exported: Ctranslate2Classifier, texts: TokenIds) -> Certificate:
    return compare_scores(original.scores(texts), exported.scores(texts), texts)


def _states(engine: TorchClassifier | Ctranslate2Classifier, rows: TokenIds) -> Scores:
    """The encoder states [N, D] of all tokens of the rows, each run alone: padded to the longest they take longer."""
    return np.concatenate([engine.states([row])[0] for row in rows])
