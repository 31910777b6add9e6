"""A language model at work: how probable it finds a text, and how it would go on.

Shape letters: B texts, T tokens with `<s>` or `</s>`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from jumok.bundle import Bundle
from jumok.engines.engine import Sampling, sorted_batches
from jumok.engines.torch_models import Ids, device_of, load_model, log_probs_of, next_log_probs, padded, undisturbed
from jumok.errors import require_at_least
from jumok.model.cache import DecoderCache
from jumok.model.language_model import LanguageModel
from jumok.search.constraints import Constraints
from jumok.search.sampling import sample
from jumok.tokenizer import BOS, EOS, Tokenizer

FORCED_TOKENS = 4096  # padded tokens at a time, when the text is given

Heard = Callable[[int], None]


@dataclass(frozen=True)
class GenerationOptions:
    """How a text is continued. `temperature` 0 always takes the most probable token."""

    max_tokens: int = 200
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    no_repeat_ngram: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        require_at_least(1, max_tokens=self.max_tokens)
        Sampling(self.temperature, self.top_k, self.top_p, self.seed)  # refuses what makes no sense


def token_log_probs(model: LanguageModel, texts: Ids) -> list[list[float]]:
    """The log-probability of every token of each text, and last that of its `</s>`."""
    results: list[list[float]] = [[] for _ in texts]
    lengths = [len(text) + 1 for text in texts]
    with undisturbed(model, max(lengths, default=0)):
        for batch in sorted_batches(lengths, FORCED_TOKENS):
            rows = padded([[BOS, *texts[i], EOS] for i in batch], device_of(model))
            states = model.states(rows[:, :-1])
            found = log_probs_of(model, states.flatten(0, 1), rows[:, 1:].flatten()).view(len(batch), -1)
            for index, row in zip(batch, found.tolist(), strict=True):
                results[index] = row[: lengths[index]]
    return results


def generate_ids(
    model: LanguageModel, prompt: Sequence[int], options: GenerationOptions, heard: Heard = lambda _: None
) -> list[int]:
    """What follows the prompt. `heard` is given every new token as soon as it is chosen."""
    position = 0

    def step(ids: Tensor, cache: DecoderCache) -> tuple[Tensor, DecoderCache]:
        nonlocal position
        if position > len(prompt):
            heard(int(ids))
        position += 1
        states, cache = model.decode(ids, cache)
        return next_log_probs(model, states[:, -1]), cache

    limit = len(prompt) + options.max_tokens
    with undisturbed(model, limit + 1):
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
        )
    return best.ids[len(prompt) :]


class TextGenerator:
    """A language model from a model directory."""

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, card: dict[str, Any], path: Path) -> None:
        self.model, self.tokenizer, self.card, self.path = model, tokenizer, card, path

    @classmethod
    def from_bundle(cls, bundle: Bundle, tokenizer: Tokenizer) -> TextGenerator:
        """A generator with a model of its own."""
        return cls(load_model(bundle, LanguageModel), tokenizer, bundle.card, bundle.path)

    def generate(self, prompt: str = "", *, heard: Callable[[str], None] | None = None, **options: Any) -> str:
        """The continuation of a prompt. `heard` is given its parts as they come; together they are what is returned."""
        [ids] = self.tokenizer.encode([prompt]) if prompt else [[]]
        stream = _Stream(self.tokenizer, ids, heard or (lambda _: None))
        written = generate_ids(self.model, ids, GenerationOptions(**options), stream)
        return stream.finish(written)

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """The log-probability of every token of each text, and last that of its end."""
        return token_log_probs(self.model, self.tokenizer.encode(texts))


class _Stream:
    """Tokens to text as they come. A character of several tokens waits until all of them are there."""

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], heard: Callable[[str], None]) -> None:
        self.tokenizer, self.heard = tokenizer, heard
        self.prompt, self.written = list(prompt), list[int]()
        self.before = len(self._text())
        self.said = self.before  # characters

    def __call__(self, token: int) -> None:
        self.written.append(token)
        if not self._text().endswith("\ufffd"):  # half a character
            self._say()

    def finish(self, written: Sequence[int]) -> str:
        """Says what is left, and returns the whole continuation."""
        self.written = list(written)
        self._say()
        return self._text()[self.before :]

    def _say(self) -> None:
        text = self._text()
        if len(text) > self.said:
            self.heard(text[self.said :])
            self.said = len(text)

    def _text(self) -> str:
        return self.tokenizer.decode([[*self.prompt, *self.written]])[0]
