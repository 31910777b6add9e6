"""The certificate of a classifier: equal classes."""

from typing import Any

from jumok.engines.classifier.ctranslate2 import Ctranslate2Classifier
from jumok.engines.classifier.torch import TorchClassifier
from jumok.recipes.certifying.certificate import MOST_PROBES, Export, compare_scores, random_sources

MOST_DIFFERENT = 0.01  # share of texts whose class quantization may change


def certify(export: Export) -> dict[str, Any]:
    """Compare the class scores of probes and of random texts."""
    original = TorchClassifier.from_bundle(export.bundle)
    exported = Ctranslate2Classifier(export.directory, export.bundle, lambda: original)
    probes = export.encoder.encode([inputs[0] for inputs in export.probes[:MOST_PROBES]])
    texts = [text for text in (*probes, *random_sources(export.encoder)) if not exported.too_long(text)]
    found = compare_scores(original.scores(texts), exported.scores(texts), texts)
    different = found.sources - found.equal
    if not export.is_exact and different > MOST_DIFFERENT * found.sources:
        raise export.too_lossy(
            f"gives {different} of {found.sources} probes another class: more than {MOST_DIFFERENT:.0%}"
        )
    return export.values(found)
