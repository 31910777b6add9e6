"""The certificate of a language model: equal greedy continuations, and bits per token on the probes."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from jumok.engines.batching import TokenIds
from jumok.engines.language_model.ctranslate2 import Ctranslate2LanguageModel
from jumok.engines.language_model.text import LanguageModelEngine
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.options import GenerationOptions
from jumok.metrics.translation import pair_scores, total_score
from jumok.recipes.certifying.certificate import (
    EXACT,
    MOST_PROBES,
    Export,
    GreedyEngine,
    Scores,
    compare,
    covering_texts,
    flat,
    random_sources,
    require_close,
    require_parity,
)
from jumok.tokenizer import EOS

MOST_BITS_LOST = 0.02  # a token, by quantization
PROMPTS, CONTINUED = 16, 32  # probes that are continued, and by how many tokens


def certify(export: Export) -> dict[str, Any]:
    """Compare the continuations of the beginnings of probes and of random texts."""
    original = export.reference(TorchLanguageModel)
    exported = _exported(export, EXACT)
    longest = exported.longest
    passages = export.encoder.encode([inputs[0] for inputs in export.probes[:MOST_PROBES]])
    tokens = min(CONTINUED, longest // 2)
    begun = [passage[: 1 + len(passage) // 3] for passage in passages[:PROMPTS]]
    prompts = [prompt[: longest - tokens] for prompt in (*begun, *random_sources(export.encoder))]
    found = require_parity(compare(continuing(original, tokens), continuing(exported, tokens), prompts))
    long, *texts = covering_texts(export.encoder, longest)
    parts = [long], texts
    require_close("scores", lambda engine: _forced(engine, parts), original, exported)
    if not export.is_exact:
        original, exported = TorchLanguageModel.from_bundle(export.bundle), _exported(export)
        found = compare(continuing(original, tokens), continuing(exported, tokens), prompts)
    values = asdict(found)
    if export.probes:
        values["bits_per_token"] = _bits_per_token(original, passages)
    if export.probes and not export.is_exact:
        values["bits_per_token_exported"] = _bits_per_token(exported, passages)
        if not values["bits_per_token_exported"] <= values["bits_per_token"] + MOST_BITS_LOST:
            raise export.too_lossy(
                f"needs {values['bits_per_token_exported']:.3f} bits a token instead of "
                f"{values['bits_per_token']:.3f} on the probes: more than {MOST_BITS_LOST} is lost"
            )
    return values


def continuing(engine: LanguageModelEngine, tokens: int) -> GreedyEngine:
    """Greedy continuation by so many tokens, to be compared."""

    def continued(prompt: Sequence[int], prefix: Sequence[int]) -> list[int]:
        left = tokens - len(prefix)
        if not left:
            return list(prefix)
        new = engine.generate([*prompt, *prefix], GenerationOptions(max_tokens=left, temperature=0))
        return [*prefix, *new, *([EOS] if len(new) < left else [])]

    def greedy(prompts: TokenIds, prefixes: TokenIds) -> list[list[int]]:
        return [continued(*pair) for pair in zip(prompts, prefixes, strict=True)]

    def score(prompts: TokenIds, outputs: TokenIds) -> list[list[float]]:
        texts = [[*prompt, *output] for prompt, output in zip(prompts, outputs, strict=True)]
        return [row[len(prompt) :] for prompt, row in zip(prompts, engine.score(texts), strict=True)]

    return GreedyEngine(greedy, score)


def _forced(engine: LanguageModelEngine, parts: Sequence[TokenIds]) -> Scores:
    """The log-probabilities of all texts. The parts are scored apart: padded to the longest they take far longer."""
    return flat([row for part in parts for row in engine.score(part)])


def _exported(export: Export, compute: str = "default") -> Ctranslate2LanguageModel:
    original = partial(TorchLanguageModel.from_bundle, export.bundle)
    options = {"tokenizer": export.encoder, "compute": compute}
    return Ctranslate2LanguageModel(export.directory, export.bundle, original, **options)


def _bits_per_token(engine: LanguageModelEngine, passages: TokenIds) -> float:
    total = total_score(pair_scores(engine.score(passages)))
    return -total.log_prob / math.log(2) / total.tokens
