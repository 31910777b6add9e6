"""The engine that runs an exported language model in CTranslate2, fast on CPUs and without PyTorch, and its conversion.
A text longer than the exported positions is left to PyTorch, which is imported only then."""

import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jumok.bundle import Bundle, Weights
from jumok.engines.batching import TokenIds, in_two_ways
from jumok.engines.conversion import fill_decoder, layer_options, longest_text
from jumok.engines.ctranslate2_models import Ctranslate2Model, wait_for
from jumok.engines.language_model.text import LanguageModelEngine, OnToken, ignore_token
from jumok.engines.opening import needed_for
from jumok.engines.options import GenerationOptions
from jumok.model.config.language_model import LanguageModelConfig
from jumok.seeds import derive_seed
from jumok.tokenizer import BOS, EOS, Tokenizer

# Padded tokens in a batch when scoring texts. All their logits exist at once: 4,096 take twice as long as 1,024.
SCORED_TOKENS = 1024

# CTranslate2 has one seed a process; a thread reads it when it samples for the first time.
_seed_in_use = threading.Lock()
if hasattr(os, "register_at_fork"):  # a thread that was not copied may hold it
    os.register_at_fork(after_in_child=lambda: globals().update(_seed_in_use=threading.Lock()))


class Ctranslate2LanguageModel:
    """A `LanguageModelEngine` around a CTranslate2 model. `fallback` makes the engine for longer texts.
    It samples from the same distribution as PyTorch, but not the same tokens for the same seed.
    `compute` is CTranslate2's type of computation; by default the type of the stored weights."""

    name = "CTranslate2"

    def __init__(
        self,
        directory: Path,
        bundle: Bundle,
        fallback: Callable[[], LanguageModelEngine],
        *,
        tokenizer: Tokenizer,
        threads: int | None = None,
        device: str = "cpu",
        compute: str = "default",
    ) -> None:
        self.longest = longest_text(LanguageModelConfig.from_dict(bundle.config))
        self._model = Ctranslate2Model("Generator", directory, threads, device, compute_type=compute)
        self._tokens = tokenizer.pieces(range(tokenizer.size))
        self.fallback = cache(fallback)

    def generate(
        self, prompt: Sequence[int], options: GenerationOptions, on_token: OnToken = ignore_token
    ) -> list[int]:
        """The continuation of the prompt. `on_token` is called in another thread, one token at a time."""
        if len(prompt) + options.max_tokens > self.longest:
            return self._original().generate(prompt, options, on_token)
        if options.temperature == 0:
            return self._write(self._model.get(), prompt, options, on_token)
        with _seed_in_use:
            import ctranslate2

            ctranslate2.set_random_seed(derive_seed(options.seed, "sampling") >> 31)  # 32 bits
            # A new generator has a new thread, which reads the seed: milliseconds, for reproducible samples.
            return self._write(self._model.make_another(1), prompt, options, on_token)

    def score(self, texts: TokenIds) -> list[list[float]]:
        fits = [len(text) <= self.longest for text in texts]
        return in_two_ways(fits, self._score, lambda long: self._original().score(long), texts)

    def _score(self, texts: TokenIds) -> list[list[float]]:
        rows = [self._texts([BOS, *text, EOS]) for text in texts]
        options = {"max_batch_size": SCORED_TOKENS, "batch_type": "tokens", "max_input_length": 0}
        found = self._model.get().score_batch(rows, asynchronous=True, **options)
        return [list(wait_for(result).log_probs) for result in found]

    def _write(self, generator: Any, prompt: Sequence[int], options: GenerationOptions, on_token: OnToken) -> list[int]:
        # CTranslate2 bans repeated n-grams of the prompt only if the prompt counts as a part of the output.
        given = len(prompt) if options.no_repeat_ngram else 0
        stopped = threading.Event()
        steps = 0

        def step(result: Any) -> bool:
            nonlocal steps
            steps += 1
            if steps > given and result.token_id != EOS:
                on_token(result.token_id)
            return stopped.is_set()

        sampling: dict[str, Any] = {"sampling_topk": 1}
        if options.temperature > 0:
            sampling = {
                "sampling_topk": min(options.top_k, len(self._tokens)),
                "sampling_topp": options.top_p,
                "sampling_temperature": options.temperature,
            }
        [future] = generator.generate_batch(
            [self._texts([BOS, *prompt])],
            asynchronous=True,
            max_length=given + options.max_tokens,
            include_prompt_in_result=bool(given),
            no_repeat_ngram_size=options.no_repeat_ngram,
            callback=step,
            **sampling,
        )
        try:
            ids: list[int] = wait_for(future).sequences_ids[0]
        finally:
            stopped.set()
        return ids[given:]

    def _original(self) -> LanguageModelEngine:
        with needed_for(f"A text of more than {self.longest:,} tokens"):
            return self.fallback()

    def _texts(self, row: Sequence[int]) -> list[str]:
        return [self._tokens[number] for number in row]


def make_spec(config: LanguageModelConfig, weights: Weights, tokens: list[str]) -> Any:
    """The specification of a decoder-only model."""
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerDecoderModelSpec.from_config(
        config.decoder_layers, config.heads, **layer_options(config)
    )
    fill_decoder(spec.decoder, config, weights, cross=False)
    spec.register_vocabulary(tokens)
    return spec
