"""Raw strings in, raw strings out: everything between a text and the token ids of an engine. Needs no torch."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any, overload

from jumok.engines.engine import DecodingOptions, Matrix, TokenEngine
from jumok.engines.translator.alignment import Alignment, join_alignments
from jumok.engines.translator.segments import Split, split_text
from jumok.errors import ConfigError, InputError
from jumok.search.hypothesis import Hypothesis
from jumok.search.loops import RETRY_NGRAM, resolve
from jumok.tokenizer import SPACE_MARK, Tokenizer, normalize

SEGMENT_TOKENS = 200  # a sentence longer than this is cut: few that a model is trained on are
READ_AHEAD = 4096  # lines of a stream that are sorted by length together
READ_AHEAD_CHARACTERS = 4_000_000  # and no more than this, when lines are long

_LINE_ENDS = re.compile(r"[\r\n]")

DEFAULTS = DecodingOptions()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another possible translation."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Result:
    """A translation, and how it came about."""

    text: str
    score: float = 0.0  # log-probability / length ** length_penalty; of several segments the mean
    tokens: tuple[str, ...] = ()  # the pieces of the output
    segments: int = 0  # into so many parts the text was split; 0: there was nothing to translate
    finished: bool = True  # False: an output was cut at its length limit
    loop_resolved: bool = False  # True: the first attempt repeated itself or did not end, and a second one was better
    alternatives: tuple[Alternative, ...] = ()  # the next best, n_best - 1 of them, or fewer if there are fewer
    alignment: Alignment | None = None


@dataclass(frozen=True, slots=True)
class _Translated:
    """What came of one segment."""

    source: list[int]
    hypotheses: list[Hypothesis]  # best first
    texts: list[str]  # of the hypotheses
    loop_resolved: bool


class TextTranslator:
    """A translator for texts. `engine` runs the model, `tokenizer` is the one the model was trained with."""

    def __init__(self, engine: TokenEngine, tokenizer: Tokenizer, card: Mapping[str, Any] | None = None) -> None:
        self.engine = engine
        self.tokenizer = tokenizer
        self.card = dict(card or {})

    @overload
    def translate(self, text: str, **options: Any) -> str: ...
    @overload
    def translate(self, text: Sequence[str], **options: Any) -> list[str]: ...
    def translate(self, text: str | Sequence[str], **options: Any) -> str | list[str]:
        """The translation of a text, or of each text of a list. Options are the fields of `DecodingOptions`."""
        texts = [text] if isinstance(text, str) else text
        translations = [result.text for result in self.translate_batch(texts, DecodingOptions.of(**options))]
        return translations[0] if isinstance(text, str) else translations

    def translate_batch(self, texts: Sequence[str], options: DecodingOptions = DEFAULTS) -> list[Result]:
        """A result for every text, in their order. Lines of a text are translated one by one and stay lines."""
        splits, encoded = self._split([normalize(text) for text in texts], options)
        sources = [encoded[segment.text] for split in splits for segment in split.segments]
        translated = self._translate_segments(sources, self._prefixes(splits, options), options)
        weights = self._align(translated) if options.alignment else []
        ends = list(accumulate((len(split.segments) for split in splits), initial=0))
        return [
            self._result(split, translated[begin:end], weights[begin:end], options)
            for split, (begin, end) in zip(splits, pairwise(ends), strict=True)
        ]

    def translate_stream(
        self, lines: Iterable[str], options: DecodingOptions = DEFAULTS, *, read_ahead: int = READ_AHEAD
    ) -> Iterator[Result]:
        """A result for every line, in their order, in bounded memory.

        `read_ahead` lines are taken at a time, so that lines of like length go through the model together. With 1 the
        answer to a line comes before the next is read.
        """
        for chunk in _chunks(lines, read_ahead):
            yield from self.translate_batch(chunk, options)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[float]]:
        """The log-probability of every token of each target as the translation of its source; the last is its end."""
        if len(sources) != len(targets):
            raise InputError(f"There are {len(sources)} sources and {len(targets)} targets; they must be pairs.")
        return self.engine.score(self.tokenizer.encode(sources), self.tokenizer.encode(targets))

    def _split(self, texts: Sequence[str], options: DecodingOptions) -> tuple[list[Split], dict[str, list[int]]]:
        """Every text in segments, and the ids of every segment."""
        encoded: dict[str, list[int]] = {}

        def count(parts: Sequence[str]) -> list[int]:
            new = [part for part in dict.fromkeys(parts) if part not in encoded]
            if new:
                encoded.update(zip(new, self.tokenizer.encode(new), strict=True))
            return [len(encoded[part]) for part in parts]

        limit = options.segment_tokens or SEGMENT_TOKENS
        limit = limit if self.engine.longest is None else min(limit, self.engine.longest)
        count([text.strip() for text in texts])  # most are a line that need not be split: all at once, on all cores
        # A prefix may be several sentences long; it stays with what it is a prefix of.
        usual = self._usual_tokens() if options.segment_tokens is None and not options.prefix else None
        return [split_text(text, limit, count, usual=usual) for text in texts], encoded

    def _usual_tokens(self) -> int | None:
        """The longest sentences that the model is used to: a longer line is split if it has several."""
        usual = self.card.get("usual_tokens")
        return usual if isinstance(usual, int) else None

    def _prefixes(self, splits: Sequence[Split], options: DecodingOptions) -> list[list[int]] | None:
        """The prefix of every segment: the one asked for where a text begins, none elsewhere."""
        if not options.prefix:
            return None
        [prefix] = self.tokenizer.encode([options.prefix.lstrip()])
        if self.engine.longest is not None and len(prefix) > self.engine.longest:
            raise ConfigError(
                f"The prefix has {len(prefix):,} tokens, more than the {self.engine.longest:,} of the longest output. "
                "Shorten it."
            )
        return [[] if place else prefix for split in splits for place in range(len(split.segments))]

    def _translate_segments(
        self, sources: list[list[int]], prefixes: list[list[int]] | None, options: DecodingOptions
    ) -> list[_Translated]:
        bias = self._bias(options.bias)
        found = self.engine.generate(sources, options, prefixes=prefixes, bias=bias)

        def again(places: list[int], ngram: int) -> list[list[Hypothesis]]:
            return self.engine.generate(
                [sources[place] for place in places],
                replace(options, no_repeat_ngram=ngram),
                prefixes=prefixes and [prefixes[place] for place in places],
                bias=bias,
            )

        # With a rule as strict already, a second attempt would be the first once more.
        pointless = 0 < options.no_repeat_ngram <= RETRY_NGRAM
        resolved = resolve(found, sources, again) if options.resolve_loops and not pointless else found
        texts = iter(self.tokenizer.decode([hypothesis.ids for hypotheses in resolved for hypothesis in hypotheses]))
        return [
            _Translated(source, best, [_in_one_line(next(texts)) for _ in best], best is not first)
            for source, first, best in zip(sources, found, resolved, strict=True)
        ]

    def _bias(self, words: Mapping[str, float]) -> dict[int, float]:
        """The bias by id. A word is biased at the start of a word and inside, unless `▁` says at the start only."""
        if not words:
            return {}
        ids = {piece: number for number, piece in enumerate(self.tokenizer.pieces(range(self.tokenizer.size)))}
        bias: dict[int, float] = {}
        for word, value in words.items():
            found = [ids[piece] for piece in (word, SPACE_MARK + word) if piece in ids]
            if not found:
                pieces = " ".join(self.tokenizer.pieces(self.tokenizer.encode([word.lstrip(SPACE_MARK)])[0]))
                raise ConfigError(f'bias: "{word}" is not one piece of the vocabulary, but: {pieces}. Bias these.')
            bias.update(dict.fromkeys(found, value))
        return bias

    def _result(
        self,
        split: Split,
        translated: Sequence[_Translated],
        weights: Sequence[Matrix],
        options: DecodingOptions,
    ) -> Result:
        if not translated:
            return Result("\n" * split.lead.count("\n"))
        ranked = [
            Alternative(
                split.join([segment.texts[place] for segment, place in zip(translated, places, strict=True)]), score
            )
            for places, score in _best_combinations(translated, options.n_best)
        ]
        best = [segment.hypotheses[0] for segment in translated]
        tokens = tuple(piece for hypothesis in best for piece in self.tokenizer.pieces(hypothesis.ids))
        return Result(
            ranked[0].text,
            ranked[0].score,
            tokens,
            segments=len(translated),
            finished=all(hypothesis.finished for hypothesis in best),
            loop_resolved=any(segment.loop_resolved for segment in translated),
            alternatives=tuple(ranked[1:]),
            alignment=self._alignment(translated, weights) if options.alignment else None,
        )

    def _align(self, translated: Sequence[_Translated]) -> list[Matrix]:
        outputs = [segment.hypotheses[0].ids for segment in translated]
        return self.engine.align([segment.source for segment in translated], outputs)

    def _alignment(self, translated: Sequence[_Translated], weights: Sequence[Matrix]) -> Alignment:
        pieces = self.tokenizer.pieces
        return join_alignments(
            (pieces(segment.source), pieces(segment.hypotheses[0].ids), matrix)
            for segment, matrix in zip(translated, weights, strict=True)
        )


def _best_combinations(translated: Sequence[_Translated], n: int) -> list[tuple[tuple[int, ...], float]]:
    """The n best ways to take one hypothesis of each segment, best first, with the mean of their scores."""
    best: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for segment in translated:
        longer = [
            ((*places, place), total + hypothesis.score)
            for places, total in best
            for place, hypothesis in enumerate(segment.hypotheses[:n])
        ]
        best = sorted(longer, key=lambda combination: -combination[1])[:n]
    return [(places, total / len(translated)) for places, total in best]


def _chunks(lines: Iterable[str], size: int) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for line in lines:
        chunk.append(line)
        characters += len(line)
        if len(chunk) >= size or characters >= READ_AHEAD_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _in_one_line(text: str) -> str:
    """Without line ends, which would shift lines, and without white space around it: that is the source's."""
    return _LINE_ENDS.sub(" ", text).strip()
