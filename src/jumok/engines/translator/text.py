"""Texts in, translations out: everything between a text and the token ids of an engine. Needs no torch."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, ClassVar, Self, Unpack, overload

from jumok.bundle import Bundle
from jumok.engines.batching import FloatMatrix
from jumok.engines.facade import Facade, require_texts
from jumok.engines.opening import Hardware, open_engine
from jumok.engines.options import DecodingKeywords, DecodingOptions
from jumok.engines.translator.alignment import Alignment, join_alignments
from jumok.engines.translator.confidence import Confidence
from jumok.engines.translator.engine import TranslatorEngine
from jumok.engines.translator.segments import Split, split_text
from jumok.engines.translator.sentences import sentence_ends
from jumok.errors import ArgumentError, ConfigError, InputError, counted
from jumok.search.hypothesis import Hypothesis
from jumok.search.loops import RETRY_NGRAM, resolve_loops
from jumok.tasks import task_of_config
from jumok.tokenizer import (
    FIRST_PIECE,
    SPACE_MARK,
    Tokenizer,
    is_title_case,
    is_upper_case,
    lower_case,
    normalize,
    sentence_case,
    upper_case,
)

SEGMENT_TOKENS = 200  # longer sentences are split: few in the training data are as long
TITLE_TOKENS = 0.8  # a text in Title Case is one if small letters need at most this share of its tokens
SINGLE_SENTENCES = 0.1  # if at most this share of the training lines has several sentences, lines are split into them

_LINE_ENDS = re.compile(r"[\r\n]")

DEFAULTS = DecodingOptions()


@dataclass(frozen=True, slots=True)
class Alternative:
    """Another possible translation."""

    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence of a text, or a part of a long one, and its translation."""

    source: str
    text: str
    score: float
    low_confidence: bool | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """A translation, and details of how it was made."""

    text: str
    score: float = 0.0  # log-probability / length ** length_penalty; of several parts the mean; NaN: not asked for
    tokens: tuple[str, ...] = ()  # the subwords of the output
    segments: int = 0  # number of parts the text was split into; 0: there was nothing to translate
    parts: tuple[Part, ...] = ()  # what was translated separately: the sentences, in their order
    too_long: bool = False  # True: a line was longer than the model is used to, and was split for that reason
    finished: bool = True  # False: an output was cut at its length limit
    # True: the score of a part, or its source, is unlike anything of the validation data. None: not known, because the
    # model is of an earlier version, or the output is sampled, forced by a prefix or a bias, or has no score
    low_confidence: bool | None = None
    loop_resolved: bool = False  # True: the first output looped or did not end, and the second search was better
    alternatives: tuple[Alternative, ...] = ()  # the next best, at most n_best - 1
    alignment: Alignment | None = None


@dataclass(frozen=True, slots=True)
class _Translated:
    """The result for one segment."""

    text: str
    source: list[int]
    hypotheses: list[Hypothesis]  # best first
    texts: list[str]  # of the hypotheses
    loop_resolved: bool


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence of a text, or a part of a long one, as the model is given it."""

    text: str
    ids: list[int]
    capitals: bool  # it was written in capital letters, and its output is to be


class TextTranslator(Facade):
    """A translator for texts. `engine` runs the model, `tokenizer` is the one the model was trained with."""

    task: ClassVar[str] = "translator"
    engines = "jumok.engines.translator.torch:TorchTranslator", "jumok.engines.translator.ctranslate2:open_export"
    method, options = "translate", DecodingOptions
    engine: TranslatorEngine

    def __init__(
        self,
        engine: TranslatorEngine,
        tokenizer: Tokenizer,
        card: Mapping[str, Any] | None = None,
        path: Path | None = None,
    ) -> None:
        self.engine, self.tokenizer, self.card, self.path = engine, tokenizer, dict(card or {}), path
        self._confidence = Confidence.from_card(self.card)

    @classmethod
    def open(
        cls,
        bundle: Bundle,
        encoder: Tokenizer,
        engine: str = "auto",
        *,
        fast: bool = False,
        **hardware: Unpack[Hardware],
    ) -> Self:
        """The translator of a bundle. `fast` restricts the output layer to a shortlist and may end beam search earlier
        (CTranslate2 only): output may differ slightly and depend on other lines of the batch."""
        if fast and engine == "torch":
            raise ConfigError('`fast=True` needs CTranslate2; leave out `engine="torch"`.')
        task = task_of_config(bundle.config)
        if fast and task.conversion is None:
            raise ConfigError(f"`fast=True` needs CTranslate2, which cannot run a {task.title}. Leave it out.")
        engine = "ctranslate2" if fast else engine
        opened = open_engine(bundle, engine, *cls.engines, **hardware, tokenizer=encoder, fast=fast)
        return cls(opened, encoder, bundle.card, bundle.path)

    @overload
    def translate(self, text: str, **options: Unpack[DecodingKeywords]) -> str: ...  # type: ignore[overload-overlap]
    @overload
    def translate(self, text: Sequence[str], **options: Unpack[DecodingKeywords]) -> list[str]: ...
    def translate(self, text: str | Sequence[str], **options: Unpack[DecodingKeywords]) -> str | list[str]:
        """The translation of a text, or of each text of a list.

        Options (fields of `jumok.DecodingOptions`), with their defaults:
            beam=5               beam width; 1 is greedy search, the fastest
            length_penalty=1.0   outputs are ranked by log-probability / length ** length_penalty
            no_repeat_ngram=0    no n-gram of this length twice in an output; 0: no such rule
            max_ratio=2.0        the longest output has max_ratio * source tokens + 32 tokens
            sampling=None        jumok.Sampling(temperature=…, top_k=…, top_p=…, seed=…): sample instead of searching
            batch_tokens=4096    padded source tokens * beam in a batch; changes no output
            scores=True          outputs are scored; here they are not unless it is given, as nobody sees it
            prefix=""            every output begins with it
            bias={}              word → added to its log-probability at every step
            segment_tokens=None  longer lines are split at sentence ends; None: as long as in training
            split_sentences=None translate each sentence of a line on its own; None: as the training data suggests
            resolve_loops=True   search again for outputs that repeat themselves or do not end
        For `n_best` and `alignment`: `translate_batch(texts, alignment=True)`, which returns scores too.
        """
        for name, usual in (("n_best", 1), ("alignment", False)):
            if options.get(name, usual) != usual:
                raise ArgumentError(
                    f"translate returns texts alone; `{name}={options[name]}` asks for more. "  # type: ignore[literal-required]
                    f"Use translate_batch(texts, {name}={options[name]})."  # type: ignore[literal-required]
                )
        chosen = DecodingOptions.of(**{"scores": False, **options})  # nobody would see them
        if isinstance(text, str):
            return self.translate_batch([text], chosen)[0].text
        texts = require_texts("text", text, alternative="a text or ")
        return [result.text for result in self.translate_batch(texts, chosen)]

    def translate_batch(
        self, texts: Sequence[str], options: DecodingOptions = DEFAULTS, **changes: Unpack[DecodingKeywords]
    ) -> list[Result]:
        """A result for every text, in their order. Lines of a text are translated one by one and stay lines. Options
        are given as `DecodingOptions`, by name (`alignment=True`), or both: then those by name count."""
        options = options.changed(**changes) if changes else options
        splits, sources = self._sources(texts, options)
        translated = self._translate_segments(sources, self._prefixes(splits, options), options)
        weights: list[FloatMatrix] = []
        if options.alignment:
            ids = [source.ids for source in sources]
            weights = self.engine.align(ids, [segment.hypotheses[0].ids for segment in translated])
        ends = list(accumulate((len(split.segments) for split in splits), initial=0))
        return [
            self._result(split, translated[begin:end], weights[begin:end], options)
            for split, (begin, end) in zip(splits, pairwise(ends), strict=True)
        ]

    def sources(self, text: str, options: DecodingOptions = DEFAULTS) -> list[Source]:
        """The sentences of a text as the model is given them."""
        return self._sources([text], options)[1]

    def _sources(self, texts: Sequence[str], options: DecodingOptions) -> tuple[list[Split], list[Source]]:
        splits, encoded = self._split([normalize(text) for text in require_texts("texts", texts)], options)
        segments = [segment.text for split in splits for segment in split.segments]
        return splits, [self._in_known_case(text, encoded[text], options) for text in segments]

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[list[float]]:
        """The log-probabilities of every target's tokens, given its source; the last one is that of `</s>`."""
        sources, targets = require_texts("sources", sources), require_texts("targets", targets)
        if len(sources) != len(targets):
            given = f"{counted(len(sources), 'source')} and {counted(len(targets), 'target')}"
            raise InputError(f"There must be one target for each source; given are {given}.")
        return self.engine.score(self.tokenizer.encode(sources), self.tokenizer.encode(targets))

    def vectors(self, texts: Sequence[str]) -> FloatMatrix:
        """A vector [B, D] of length 1 for every text: the mean of the encoder's states, similar for similar meaning."""
        return self.engine.vectors(self.tokenizer.encode(require_texts("texts", texts)))

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
        count([text.strip() for text in texts])  # most need no splitting: one call encodes them on all cores
        source_language, target_language = self._languages
        # The text that a prefix of several sentences belongs to is not split into sentences.
        splits = options.segment_tokens is None and not sentence_ends(options.prefix, target_language)
        usual = self.card.get("usual_tokens") if splits else None
        usual = usual if isinstance(usual, int) else None
        sentences = splits and self._splits_sentences if options.split_sentences is None else options.split_sentences
        split = partial(split_text, limit=limit, count=count, usual=usual, sentences=sentences)
        return [split(text, language=source_language) for text in texts], encoded

    @cached_property
    def _splits_sentences(self) -> bool:
        """Whether lines are split into sentences: if the training data had hardly any with several. Models of earlier
        versions do not say; most had none, and such a model may lose a second sentence."""
        share = self.card.get("multi_sentence_share")
        return not isinstance(share, int | float) or share <= SINGLE_SENTENCES

    @cached_property
    def _languages(self) -> tuple[str | None, str | None]:
        """The codes of source and target language, without regions; None where they are not known."""
        languages = self.card.get("languages")
        if not (isinstance(languages, list) and len(languages) == 2):
            return None, None
        source, target = (re.split("[-_]", str(language).lower())[0] for language in languages)
        return source, target

    def _in_known_case(self, text: str, ids: list[int], options: DecodingOptions) -> Source:
        """A text in capital letters or in Title Case is given to the model in small letters, if the vocabulary has
        fewer, longer tokens for it. So is any text for a vocabulary without capital letters."""
        language, _ = self._languages
        if options.prefix:
            return Source(text, ids, capitals=False)
        if is_upper_case(text) and upper_case(lower_case(text, language), language) == text:
            best = self._fewest_tokens(sentence_case(text, language), lower_case(text, language))
            if len(best) < len(ids):
                return Source(text, best, capitals=True)
        elif self._is_uncased:
            small = lower_case(text, language)
            ids = ids if small == text else self._fewest_tokens(small)
        elif is_title_case(text):
            best = self._fewest_tokens(sentence_case(text, language))
            ids = best if len(best) <= TITLE_TOKENS * len(ids) else ids  # names have capital letters anyway
        return Source(text, ids, capitals=False)

    def _fewest_tokens(self, *forms: str) -> list[int]:
        return min(self.tokenizer.encode(forms), key=len)

    def in_capitals(self, output: str) -> str:
        """An output as it is written for a text in capital letters."""
        return upper_case(output, self._languages[1])

    @cached_property
    def _is_uncased(self) -> bool:
        """Whether the vocabulary has small letters and no capital ones."""
        letters = "".join(self.tokenizer.pieces(range(FIRST_PIECE, self.tokenizer.size)))
        return letters == lower_case(letters) and letters != upper_case(letters)

    def _prefixes(self, splits: Sequence[Split], options: DecodingOptions) -> list[list[int]] | None:
        """The forced prefix of every segment: that of the options for the first segment of a text, else none."""
        if not options.prefix:
            return None
        [prefix] = self.tokenizer.encode([options.prefix.lstrip()])
        if self.engine.longest is not None and len(prefix) > self.engine.longest:
            raise ConfigError(
                f"The prefix has {len(prefix):,} tokens, more than the {self.engine.longest:,} of the longest output. "
                "Shorten it."
            )
        return [[] if number else prefix for split in splits for number in range(len(split.segments))]

    def _translate_segments(
        self, sources: list[Source], prefixes: list[list[int]] | None, options: DecodingOptions
    ) -> list[_Translated]:
        bias, ids = self._bias(options.bias), [source.ids for source in sources]
        found = self.engine.generate(ids, options, prefixes=prefixes, bias=bias)

        def search_again(indices: list[int], ngram: int) -> list[list[Hypothesis]]:
            return self.engine.generate(
                [ids[index] for index in indices],
                replace(options, no_repeat_ngram=ngram or options.no_repeat_ngram, scores=True),
                prefixes=prefixes and [prefixes[index] for index in indices],
                bias=bias,
            )

        # With an n-gram rule at least as strict, a second search would give the same outputs.
        pointless = 0 < options.no_repeat_ngram <= RETRY_NGRAM
        resolved = resolve_loops(found, ids, search_again) if options.resolve_loops and not pointless else found
        texts = iter(self.tokenizer.decode([hypothesis.ids for hypotheses in resolved for hypothesis in hypotheses]))

        def output(source: Source) -> str:
            text = _in_one_line(next(texts))
            return self.in_capitals(text) if source.capitals else text

        return [
            _Translated(source.text, source.ids, best, [output(source) for _ in best], best is not first)
            for source, first, best in zip(sources, found, resolved, strict=True)
        ]

    def _bias(self, words: Mapping[str, float]) -> dict[int, float]:
        """The bias by id. The word-initial and the word-internal token are biased; with `▁` only the former."""
        if not words:
            return {}
        ids = {token: number for number, token in enumerate(self.tokenizer.pieces(range(self.tokenizer.size)))}
        bias: dict[int, float] = {}
        for word, value in words.items():
            found = [ids[token] for token in (word, SPACE_MARK + word) if token in ids]
            if not found:
                several = " ".join(self.tokenizer.pieces(self.tokenizer.encode([word.lstrip(SPACE_MARK)])[0]))
                raise ConfigError(
                    f'bias: "{word}" is not a token of the vocabulary, but several: {several}. Bias these.'
                )
            bias.update(dict.fromkeys(found, value))
        return bias

    def _result(
        self, split: Split, translated: Sequence[_Translated], weights: Sequence[FloatMatrix], options: DecodingOptions
    ) -> Result:
        if not translated:
            return Result("\n" * split.lead.count("\n"))
        ranked = [
            Alternative(
                split.join([segment.texts[index] for segment, index in zip(translated, indices, strict=True)]), score
            )
            for indices, score in _best_combinations(translated, options.n_best)
        ]
        parts = tuple(self._part(segment, options) for segment in translated)
        best = [segment.hypotheses[0] for segment in translated]
        tokens = tuple(token for hypothesis in best for token in self.tokenizer.pieces(hypothesis.ids))
        return Result(
            ranked[0].text,
            ranked[0].score,
            tokens,
            segments=len(translated),
            parts=parts,
            low_confidence=_any_known(part.low_confidence for part in parts),
            too_long=split.too_long,
            finished=all(hypothesis.finished for hypothesis in best),
            loop_resolved=any(segment.loop_resolved for segment in translated),
            alternatives=tuple(ranked[1:]),
            alignment=self._alignment(translated, weights) if options.alignment else None,
        )

    def _part(self, segment: _Translated, options: DecodingOptions) -> Part:
        best = segment.hypotheses[0]
        low = None
        is_usual = not (options.sampling or options.prefix or options.bias or math.isnan(best.score))
        if self._confidence is not None and is_usual:
            low = self._confidence.is_low(segment.text, segment.source, best, options)
        return Part(segment.text, segment.texts[0], best.score, low)

    def _alignment(self, translated: Sequence[_Translated], weights: Sequence[FloatMatrix]) -> Alignment:
        subwords = self.tokenizer.pieces
        return join_alignments(
            (subwords(segment.source), subwords(segment.hypotheses[0].ids), matrix)
            for segment, matrix in zip(translated, weights, strict=True)
        )


def _best_combinations(translated: Sequence[_Translated], n: int) -> list[tuple[tuple[int, ...], float]]:
    """The n best choices of one hypothesis for each segment, best first: their indices and the mean of their scores."""
    best: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    for segment in translated:
        longer = [
            ((*indices, index), total + hypothesis.score)
            for indices, total in best
            for index, hypothesis in enumerate(segment.hypotheses[:n])
        ]
        best = sorted(longer, key=lambda combination: -combination[1])[:n]
    return [(indices, total / len(translated)) for indices, total in best]


def _any_known(values: Iterable[bool | None]) -> bool | None:
    """Whether any is true; None if that is not known of them."""
    known = [value for value in values if value is not None]
    return any(known) if known else None


def _in_one_line(text: str) -> str:
    """Without line ends, which would shift lines, and without surrounding white space, which the source gives."""
    return _LINE_ENDS.sub(" ", text).strip()
