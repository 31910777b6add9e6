"""Runs a language model in PyTorch: scores and continues texts. Axes: B texts, T tokens with `<s>` or `</s>`."""

from collections.abc import Sequence

from torch import Tensor

from jumok.engines.batching import TokenIds, sorted_batches
from jumok.engines.language_model.text import OnToken, ignore_token
from jumok.engines.options import GenerationOptions
from jumok.engines.torch_models import TorchEngine, computing, padded
from jumok.model.cache import DecoderCache
from jumok.model.language_model import LanguageModel
from jumok.search.constraints import Rules
from jumok.search.sampling import sample
from jumok.tokenizer import BOS, EOS

FORCED_TOKENS = 4096  # padded tokens in a batch, when scoring given texts


class TorchLanguageModel(TorchEngine):
    """A `LanguageModelEngine` around a model."""

    model: LanguageModel

    @computing
    def generate(
        self, prompt: Sequence[int], options: GenerationOptions, on_token: OnToken = ignore_token
    ) -> list[int]:
        """The continuation of the prompt. `on_token` gets every new token as soon as it is chosen."""
        begun = False

        def step(ids: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
            nonlocal begun
            if begun:  # the first step is fed the last token of the prompt, or <s>
                on_token(int(ids))
            begun = True
            return self.step(ids, cache)

        limit = len(prompt) + options.max_tokens
        with self.evaluating(limit):
            [[best]] = sample(
                step,
                self.model.decoder.remember(),
                Rules(
                    [limit],
                    prefixes=[list(prompt)],
                    no_repeat_ngram=options.no_repeat_ngram,
                    device=self.device,
                ),
                seeds=[options.seed],
                temperature=options.temperature,
                top_k=options.top_k,
                top_p=options.top_p,
                prefill=self.prefill,
            )
        return best.ids[len(prompt) :]

    @computing
    def score(self, texts: TokenIds) -> list[list[float]]:
        results: list[list[float]] = [[] for _ in texts]
        lengths = [len(text) + 1 for text in texts]
        with self.evaluating(max(map(len, texts), default=0)):
            for batch in sorted_batches(lengths, FORCED_TOKENS):
                rows = padded([[BOS, *texts[i], EOS] for i in batch], self.device)
                found = self.forced_log_probs(self.model.states(rows[:, :-1]), rows)
                for index, row in zip(batch, found.tolist(), strict=True):
                    results[index] = row[: lengths[index]]
        return results
