"""A prompt in, its continuation out: everything between a text and the token ids of an engine. Needs no torch.
Token ids are the tokenizer's, without `<s>` and `</s>`: each engine adds what its model needs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, ClassVar, Protocol, Unpack

from jumok.engines.batching import TokenIds
from jumok.engines.facade import Facade, require_text, require_texts
from jumok.engines.options import GenerationKeywords, GenerationOptions
from jumok.tokenizer import Tokenizer

OnToken = Callable[[int], None]


def ignore_token(_token: int) -> None:
    """The default callback: does nothing."""


class LanguageModelEngine(Protocol):
    """Runs a language model. The same prompt, options and seed give the same text."""

    def generate(self, prompt: Sequence[int], options: GenerationOptions, on_token: OnToken = ...) -> list[int]:
        """The continuation of the prompt. `on_token` gets every new token as it is chosen, except perhaps the last."""

    def score(self, texts: TokenIds) -> list[list[float]]:
        """The log-probabilities of every text's tokens; the last one is that of `</s>`."""


class TextLanguageModel(Facade):
    """A language model for texts. `engine` runs the model, `tokenizer` is the one the model was trained with."""

    task: ClassVar[str] = "language_model"
    engines = (
        "jumok.engines.language_model.torch:TorchLanguageModel",
        "jumok.engines.language_model.ctranslate2:Ctranslate2LanguageModel",
    )
    method, options = "generate", GenerationOptions
    engine: LanguageModelEngine

    def __init__(self, engine: LanguageModelEngine, tokenizer: Tokenizer, card: dict[str, Any], path: Path) -> None:
        self.engine, self.tokenizer, self.card, self.path = engine, tokenizer, card, path

    @classmethod
    def export_options(cls, _encoder: Tokenizer) -> dict[str, Any]:
        """The tokenizer."""
        return {"tokenizer": _encoder}

    def generate(
        self,
        prompt: str = "",
        *,
        on_text: Callable[[str], None] | None = None,
        **options: Unpack[GenerationKeywords],
    ) -> str:
        """The continuation of a prompt; `on_text` gets its parts as they are written.

        Options, with their defaults:
            temperature=1.0    below 1 more conservative, above 1 more random, 0 greedy
            top_k=0            sample from this many most probable tokens; 0: all
            top_p=1.0          sample from the smallest set of tokens with this total probability
            seed=0             the same seed gives the same text with the same engine
            max_tokens=200     stop after this many tokens
            no_repeat_ngram=0  no n-gram of this length twice, the prompt included; 0: no such rule
        """
        chosen = GenerationOptions.of(**options)
        [ids] = self.tokenizer.encode([prompt]) if require_text("prompt", prompt) else [[]]
        stream = _Stream(self.tokenizer, ids, on_text or (lambda _: None))
        written = self.engine.generate(ids, chosen, stream)
        return stream.finish(written)

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """The log-probabilities of every text's tokens; the last one is that of `</s>`."""
        return self.engine.score(self.tokenizer.encode(require_texts("texts", texts)))


class _Stream:
    """Decodes tokens as they come. A character of several byte tokens is held back until it is complete."""

    def __init__(self, tokenizer: Tokenizer, prompt: Sequence[int], on_text: Callable[[str], None]) -> None:
        self.tokenizer, self.on_text = tokenizer, on_text
        self.prompt, self.written = list(prompt), list[int]()
        self.start = len(self._text())
        self.sent = self.start  # characters

    def __call__(self, token: int) -> None:
        self.written.append(token)
        if not self._text().endswith("\ufffd"):  # half a character
            self._send()

    def finish(self, written: Sequence[int]) -> str:
        """Send the rest, and return the complete continuation."""
        self.written = list(written)
        self._send()
        return self._text()[self.start :]

    def _send(self) -> None:
        text = self._text()
        if len(text) > self.sent:
            self.on_text(text[self.sent :])
            self.sent = len(text)

    def _text(self) -> str:
        return self.tokenizer.decode([[*self.prompt, *self.written]])[0]
