"""A prompt in, its continuation out, piece by piece: what is the same whichever engine runs a language model.

No torch here. Texts are the tokenizer's ids, without `<s>` and `</s>`: each engine adds what its model wants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from jumok.engines.engine import Sampling
from jumok.errors import require_at_least
from jumok.tokenizer import Tokenizer

Ids = Sequence[Sequence[int]]
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
        require_at_least(0, no_repeat_ngram=self.no_repeat_ngram)
        Sampling(self.temperature, self.top_k, self.top_p, self.seed)  # refuses what makes no sense


class LanguageEngine(Protocol):
    """Runs a language model. The same prompt, options and seed give the same text."""

    def generate(self, prompt: Sequence[int], options: GenerationOptions, heard: Heard = ...) -> list[int]:
        """What follows the prompt. `heard` is given every new token as soon as it is chosen, maybe not the last one."""
        ...

    def score(self, texts: Ids) -> list[list[float]]:
        """The log-probability of every token of each text, and last that of its `</s>`."""
        ...


class TextGenerator:
    """A language model from a model directory."""

    def __init__(self, engine: LanguageEngine, tokenizer: Tokenizer, card: dict[str, Any], path: Path) -> None:
        self.engine, self.tokenizer, self.card, self.path = engine, tokenizer, card, path

    def generate(self, prompt: str = "", *, heard: Callable[[str], None] | None = None, **options: Any) -> str:
        """The continuation of a prompt. `heard` is given its parts as they come; together they are what is returned."""
        [ids] = self.tokenizer.encode([prompt]) if prompt else [[]]
        stream = _Stream(self.tokenizer, ids, heard or (lambda _: None))
        written = self.engine.generate(ids, GenerationOptions(**options), stream)
        return stream.finish(written)

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """The log-probability of every token of each text, and last that of its end."""
        return self.engine.score(self.tokenizer.encode(texts))


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
