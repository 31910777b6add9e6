"""The engine that runs a language model in PyTorch: the log-probabilities of texts, and their continuation.

Shape letters: B texts, T tokens with `<s>` or `</s>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from torch import Tensor

from jumok.bundle import Bundle
from jumok.engines.batching import TokenIds, sorted_batches
from jumok.engines.language_model.text import OnToken, ignore_token
from jumok.engines.options import GenerationOptions
from jumok.engines.torch_models import device_of, evaluating, load_model, log_probs_of, next_log_probs, padded, prefill
from jumok.model.cache import DecoderCache
from jumok.model.language_model import LanguageModel
from jumok.search.constraints import Constraints
from jumok.search.sampling import sample
from jumok.tokenizer import BOS, EOS

FORCED_TOKENS = 4096  # padded tokens in a batch, when scoring given texts


def token_log_probs(model: LanguageModel, texts: TokenIds) -> list[list[float]]:
    """The log-probabilities of every text's tokens; the last one is that of `</s>`."""
    results: list[list[float]] = [[] for _ in texts]
    lengths = [len(text) + 1 for text in texts]
    with evaluating(model, max(map(len, texts), default=0)):
        for batch in sorted_batches(lengths, FORCED_TOKENS):
            rows = padded([[BOS, *texts[i], EOS] for i in batch], device_of(model))
            states = model.states(rows[:, :-1])
            found = log_probs_of(model, states.flatten(0, 1), rows[:, 1:].flatten()).view(len(batch), -1)
            for index, row in zip(batch, found.tolist(), strict=True):
                results[index] = row[: lengths[index]]
    return results


def generate_ids(
    model: LanguageModel, prompt: Sequence[int], options: GenerationOptions, on_token: OnToken = ignore_token
) -> list[int]:
    """The continuation of the prompt. `on_token` gets every new token as soon as it is chosen."""
    begun = False

    def step(ids: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        nonlocal begun
        if begun:  # the first step is fed the last token of the prompt, or <s>
            on_token(int(ids))
        begun = True
        states, cache = model.decode(ids, cache)
        return next_log_probs(model, states[:, -1]), cache

    limit = len(prompt) + options.max_tokens
    with evaluating(model, limit):
        [[best]] = sample(
            step,
            model.decoder.remember(),
            [limit],
            seeds=[options.seed],
            temperature=options.temperature,
            top_k=options.top_k,
            top_p=options.top_p,
            constraints=Constraints(no_repeat_ngram=options.no_repeat_ngram),
            prefixes=[list(prompt)],
            prefill=partial(prefill, model),
        )
    return best.ids[len(prompt) :]


class TorchLanguageModel:
    """A `LanguageModelEngine` around a model."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    @classmethod
    def from_bundle(cls, bundle: Bundle) -> TorchLanguageModel:
        """An engine with a model of its own."""
        return cls(load_model(bundle, LanguageModel))

    def generate(
        self, prompt: Sequence[int], options: GenerationOptions, on_token: OnToken = ignore_token
    ) -> list[int]:
        """The continuation of the prompt."""
        return generate_ids(self.model, prompt, options, on_token)

    def score(self, texts: TokenIds) -> list[list[float]]:
        """The log-probabilities of every text's tokens; the last one is that of `</s>`."""
        return token_log_probs(self.model, texts)
