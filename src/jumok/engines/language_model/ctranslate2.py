"""The engine that runs an exported language model in CTranslate2: fast on CPUs, and without PyTorch.

A text that is longer than the exported model has positions for is left to PyTorch, which is imported only then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from jumok.engines.language_model.text import GenerationOptions, Heard, Ids, LanguageEngine
from jumok.seeds import derive_seed
from jumok.system import usable_cores
from jumok.tokenizer import BOS, EOS, Tokenizer

# Padded tokens at a time, when the text is given. Every one of them has a score for each word of the vocabulary at the
# same time: 4,096 take twice as long as 1,024.
SCORED_TOKENS = 1024
_PAUSE = 0.002  # seconds between two looks whether a text is complete

# The seed belongs to the process, and a thread takes it when it draws for the first time.
_seed_in_use = threading.Lock()


class Ctranslate2LanguageModel:
    """A `LanguageEngine` around a CTranslate2 model. `fallback` makes the engine for texts of over `longest` tokens.

    It draws from the same probabilities as PyTorch, but not the same tokens for the same seed.
    """

    def __init__(
        self, directory: Path, tokenizer: Tokenizer, fallback: Callable[[], LanguageEngine], *, longest: int
    ) -> None:
        self._longest = longest
        # Kept, because a training may replace the directory by a better model at any time.
        self._files = {path.name: path.read_bytes() for path in directory.iterdir()}
        self._pieces = tokenizer.pieces(range(tokenizer.size))
        self._make_fallback = fallback
        self._fallback: LanguageEngine | None = None

    def generate(self, prompt: Sequence[int], options: GenerationOptions, heard: Heard = lambda _: None) -> list[int]:
        """What follows the prompt. `heard` is called in another thread, one token at a time."""
        if len(prompt) + options.max_tokens > self._longest:
            return self._other().generate(prompt, options, heard)
        if options.temperature == 0:
            return self._write(self._kept, prompt, options, heard)
        with _seed_in_use:
            import ctranslate2

            ctranslate2.set_random_seed(derive_seed(options.seed, "sampling") >> 31)  # 32 bits
            # A new generator has a new thread, which takes the seed anew: milliseconds, for a text that comes again.
            return self._write(self._load(1), prompt, options, heard)

    def score(self, texts: Ids) -> list[list[float]]:
        """The log-probability of every token of each text, and last that of its `</s>`."""
        fitting = [place for place, text in enumerate(texts) if len(text) <= self._longest]
        others = [place for place, text in enumerate(texts) if len(text) > self._longest]
        rows = [self._texts([BOS, *texts[place], EOS]) for place in fitting]
        found = self._kept.score_batch(rows, max_batch_size=SCORED_TOKENS, batch_type="tokens", max_input_length=0)
        results = {place: list(result.log_probs) for place, result in zip(fitting, found, strict=True)}
        if others:  # more positions than were exported
            results.update(zip(others, self._other().score([texts[place] for place in others]), strict=True))
        return [results[place] for place in range(len(texts))]

    def _write(self, generator: Any, prompt: Sequence[int], options: GenerationOptions, heard: Heard) -> list[int]:
        # Repeats of the prompt are seen only if CTranslate2 takes it for a part of what it writes.
        given = len(prompt) if options.no_repeat_ngram else 0
        stopped = threading.Event()
        steps = 0

        def step(result: Any) -> bool:
            nonlocal steps
            steps += 1
            if steps > given and result.token_id != EOS:
                heard(result.token_id)
            return stopped.is_set()

        [answer] = generator.generate_batch(
            [self._texts([BOS, *prompt])],
            asynchronous=True,
            max_length=given + options.max_tokens,
            include_prompt_in_result=bool(given),
            no_repeat_ngram_size=options.no_repeat_ngram,
            callback=step,
            **self._sampling(options),
        )
        try:
            while not answer.done():  # to wait inside CTranslate2 would be deaf to Ctrl-C
                time.sleep(_PAUSE)
        finally:
            stopped.set()
        ids: list[int] = answer.result().sequences_ids[0]
        return ids[given:]

    def _sampling(self, options: GenerationOptions) -> dict[str, Any]:
        if options.temperature == 0:
            return {"sampling_topk": 1}
        return {
            "sampling_topk": min(options.top_k, len(self._pieces)),
            "sampling_topp": options.top_p,
            "sampling_temperature": options.temperature,
        }

    @cached_property
    def _kept(self) -> Any:
        return self._load(usable_cores())

    def _load(self, workers: int) -> Any:
        import ctranslate2

        return ctranslate2.Generator("", device="cpu", inter_threads=workers, intra_threads=1, files=dict(self._files))

    def _texts(self, row: Sequence[int]) -> list[str]:
        return [self._pieces[number] for number in row]

    def _other(self) -> LanguageEngine:
        if self._fallback is None:
            self._fallback = self._make_fallback()
        return self._fallback
