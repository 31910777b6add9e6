"""The certificate of a language model: equal greedy continuations, and bits per token on the probes."""

import math
from typing import Any

from jumok.engines.batching import TokenIds
from jumok.engines.language_model.ctranslate2 import Ctranslate2LanguageModel
from jumok.engines.language_model.text import LanguageModelEngine
from jumok.engines.language_model.torch import TorchLanguageModel
from jumok.engines.options import GenerationOptions
from jumok.metrics.translation import pair_scores, total_score
from jumok.recipes.certifying.certificate import MOST_PROBES, Export, GreedyEngine, compare, random_sources

MOST_BITS_LOST = 0.02  # a token, by quantization
PROMPTS, CONTINUED = 16, 32  # probes that are continued, and by how many tokens


def certify(export: Export) -> dict[str, Any]:
    """Compare the continuations of the beginnings of probes and of random texts."""
    original = TorchLanguageModel.from_bundle(export.bundle)
    exported = Ctranslate2LanguageModel(export.directory, export.bundle, lambda: original, tokenizer=export.encoder)
    longest = exported.longest
    passages = export.encoder.encode([inputs[0] for inputs in export.probes[:MOST_PROBES]])
    tokens = min(CONTINUED, longest // 2)
    begun = [passage[: 1 + len(passage) // 3] for passage in passages[:PROMPTS]]
    prompts = [prompt[: longest - tokens] for prompt in (*begun, *random_sources(export.encoder))]
    values = export.values(compare(continuing(original, tokens), continuing(exported, tokens), prompts))
    if export.probes:
        values["bits_per_token"] = _bits_per_token(original, passages)
    if export.probes and not export.is_exact:
        values["bits_per_token_exported"] = _bits_per_token(exported, passages)
        if values["bits_per_token_exported"] > values["bits_per_token"] + MOST_BITS_LOST:
            raise export.too_lossy(
                f"needs {values['bits_per_token_exported']:.3f} bits a token instead of "
                f"{values['bits_per_token']:.3f} on the probes: more than {MOST_BITS_LOST} is lost"
            )
    return values


def continuing(engine: LanguageModelEngine, tokens: int) -> GreedyEngine:
    """Greedy continuation by so many tokens, to be compared."""
    options = GenerationOptions(max_tokens=tokens, temperature=0)

    def score(prompts: TokenIds, outputs: TokenIds) -> list[list[float]]:
        texts = [[*prompt, *output] for prompt, output in zip(prompts, outputs, strict=True)]
        return [row[len(prompt) :] for prompt, row in zip(prompts, engine.score(texts), strict=True)]

    return GreedyEngine(lambda prompts: [engine.generate(prompt, options) for prompt in prompts], score)


def _bits_per_token(engine: LanguageModelEngine, passages: TokenIds) -> float:
    total = total_score(pair_scores(engine.score(passages)))
    return -total.log_prob / math.log(2) / total.tokens
