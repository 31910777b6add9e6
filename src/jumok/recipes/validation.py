"""What a translator in training is judged by: sentences it never learned from, really translated."""

from __future__ import annotations

from collections.abc import Sequence

from jumok.engines.options import SearchOptions
from jumok.engines.translator.torch import TorchTranslator
from jumok.metrics.translation import corpus_scores
from jumok.model.translator import Translator
from jumok.tokenizer import Tokenizer
from jumok.training.progress import Validation

SAMPLES = 3  # translations shown after each validation
VALIDATION_RATIO = 1.0  # tighter than for users: an untrained model would fill any room it is given


def translate_and_score(model: Translator, tokenizer: Tokenizer, pairs: Sequence[tuple[str, ...]]) -> Validation:
    """Loss, BLEU and chrF on held-out sentences, really translated, and a few of them to look at."""
    sources, references = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    # By the engine itself: a model that has just begun loops, and what a user would be spared is to be seen here.
    engine, encoded = TorchTranslator(model), tokenizer.encode(sources)
    hypotheses = engine.generate(encoded, SearchOptions(beam=1, max_ratio=VALIDATION_RATIO))
    outputs = tokenizer.decode([best[0].ids for best in hypotheses])
    scores = corpus_scores(outputs, references)
    wanted = tokenizer.encode(references)
    log_probs = [value for row in engine.score(encoded, wanted) for value in row]
    written = sum(len(best[0].ids) for best in hypotheses)
    shown = zip(sources[:SAMPLES], references[:SAMPLES], outputs[:SAMPLES], strict=True)
    metrics = {
        "loss": -sum(log_probs) / len(log_probs),
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "signatures": [scores.bleu_signature, scores.chrf_signature],
        "samples": [dict(zip(("source", "reference", "output"), sample, strict=True)) for sample in shown],
    }
    return Validation(scores.bleu, metrics, effort=max(1.0, written / sum(map(len, wanted))))
