"""The trace of a translator: a recorded search, then one forward pass over the output it found."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as with_changes
from pathlib import Path
from typing import Any

from jumok.data.examples import Rejections
from jumok.data.reading.options import reading_options
from jumok.data.reading.pairs import aligned_texts
from jumok.data.reading.unused_options import refuse_unused_for_pairs
from jumok.engines.options import DecodingOptions
from jumok.engines.torch_models import padded
from jumok.engines.translator.engine import longest_output
from jumok.engines.translator.text import Source
from jumok.errors import ConfigError, InputError
from jumok.lens.beams import Search, SearchRecorder
from jumok.lens.importance import Quality
from jumok.lens.traces import Trace
from jumok.lens.tracing import Recording, facts, require_tokens, torch_engine
from jumok.metrics.translation import corpus_scores
from jumok.search.beam import choose_best
from jumok.search.constraints import Rules
from jumok.search.decoding import decode
from jumok.search.hypothesis import Hypothesis
from jumok.search.loops import RETRY_NGRAM, resolve_loops
from jumok.tokenizer import BOS, EOS, normalize


def trace(
    translator: Any,
    text: str,
    *,
    target: str | None = None,
    target_ids: Sequence[int] | None = None,
    force: Sequence[int] | None = None,
    replace: Mapping[int, str] | None = None,
    sentence: int | None = None,
    on_step: Callable[[], None] | None = None,
    **options: Any,
) -> Trace:
    """The trace of one sentence; `sentence` is its number in a text of several. `target` or `target_ids` force an
    output, `force` the ids that it begins with; `replace` puts other tokens at positions of the source. `on_step` is
    called in every step of the search, which ends if it raises."""
    engine, tokenizer = torch_engine(translator), translator.tokenizer
    chosen = DecodingOptions.of(**options)
    if chosen.sampling is not None:
        raise ConfigError("A sampled translation cannot be traced; give it as `target=` instead.")
    sentences = translator.sources(text, chosen)
    one = _one_of(sentences, sentence, text)
    source = _replaced(one.ids, replace or {}, tokenizer)
    search = None
    if target_ids is not None:
        output = _known(target_ids, tokenizer)
    elif target is None:
        [prefix] = tokenizer.encode([chosen.prefix.lstrip()]) if chosen.prefix else [_known(force or (), tokenizer)]
        output, search = search_recorded(engine, tokenizer, source, prefix, chosen, on_step)
    else:
        [output] = tokenizer.encode([normalize(target)])
    found = forced(translator, engine, one.text, source, output, search)
    found.facts["sentences"] = [each.text for each in sentences]
    return found if not one.capitals else with_changes(found, output=translator.in_capitals(found.output))


def _one_of(sentences: Sequence[Source], number: int | None, text: str) -> Source:
    if not sentences:
        require_tokens((), text)
    if number is None and len(sentences) > 1:
        raise InputError(
            f"The text has {len(sentences)} sentences or parts, which are translated one by one. Choose one with "
            "`sentence=`, counted from 0."
        )
    if not 0 <= (number or 0) < len(sentences):
        raise InputError(f"The text has no sentence {number}: it has {len(sentences)}, counted from 0.")
    return sentences[number or 0]


def forced(
    translator: Any, engine: Any, text: str, source: list[int], output: list[int], search: Search | None
) -> Trace:
    """The trace of a forward pass over given source and output ids, both without special tokens."""
    recording = Recording(engine)
    model, tokenizer = engine.model, translator.tokenizer
    rows = padded([[*source, EOS]], engine.device), padded([[BOS, *output]], engine.device)
    states = recording.run(lambda: model.states(*rows), max(len(source), len(output)))
    recording.add_logits(states)
    pieces = tokenizer.pieces
    sides = {
        "encoder": tuple(pieces([*source, EOS])),
        "decoder": tuple(pieces([BOS, *output])),
        "chosen": tuple(pieces([*output, EOS])),
    }
    [translation] = tokenizer.decode([output])
    found = facts(translator, engine, [*output, EOS])
    return Trace("translator", text, translation, recording.tensors, sides, search, found)


def search_recorded(
    engine: Any,
    tokenizer: Any,
    source: list[int],
    prefix: list[int],
    options: DecodingOptions,
    on_step: Callable[[], None] | None = None,
) -> tuple[list[int], Search]:
    """The ids that a beam search finds, as the engine would find them, and its tree."""
    searches: dict[int, Search] = {}  # by the id of their results
    limit = longest_output(len(source), len(prefix), options, engine.longest)

    def run(no_repeat_ngram: int) -> list[Hypothesis]:
        rules = Rules([limit], prefixes=[prefix], no_repeat_ngram=no_repeat_ngram, device=engine.device)
        texts = tokenizer.pieces(range(tokenizer.size))
        recorder = SearchRecorder(texts, prefix, options.beam, options.n_best, options.length_penalty)
        with engine.evaluating(max(len(source), limit)):
            memory = engine.model.encode(padded([[*source, EOS]], engine.device))
            cache = engine.model.remember(memory)
            choose = recorder.recorded(choose_best(options.beam), on_step)
            common = options.n_best, options.length_penalty, engine.prefill
            [hypotheses] = decode(engine.step, cache, choose, rules, *common)
        searches[id(hypotheses)] = recorder.finish(hypotheses[0].ids, hypotheses[0].score)
        return hypotheses

    found = run(options.no_repeat_ngram)
    if options.resolve_loops and not 0 < options.no_repeat_ngram <= RETRY_NGRAM:
        [found] = resolve_loops([found], [source], lambda _, ngram: [run(ngram)])
    return found[0].ids, searches[id(found)]


def _known(ids: Sequence[int], tokenizer: Any) -> list[int]:
    """The ids, if they can be in an output."""
    for token in ids:
        if not EOS < token < tokenizer.size:
            raise InputError(f"{token} is not the id of a token of the vocabulary: ids go up to {tokenizer.size - 1}.")
    return list(ids)


def _replaced(source: list[int], changes: Mapping[int, str], tokenizer: Any) -> list[int]:
    """The source with other tokens at some positions."""
    ids = {piece: number for number, piece in enumerate(tokenizer.pieces(range(tokenizer.size)))} if changes else {}
    for position, piece in changes.items():
        if not 0 <= position < len(source):
            raise InputError(f"Position {position} is not among the {len(source)} source tokens, counted from 0.")
        if piece not in ids:
            raise InputError(f'"{piece}" is not a token of the vocabulary; "▁" marks the start of a word.')
        source = [*source[:position], ids[piece], *source[position + 1 :]]
    return source


def measure(translator: Any, examples: Sequence[tuple[str, str]], score: bool) -> Callable[[], Quality]:
    """Log-probability of the targets and, with `score`, BLEU of greedy translations, with PyTorch."""
    engine = torch_engine(translator)
    sides = ([normalize(text) for text in side] for side in zip(*examples, strict=True))
    sources, targets = map(translator.tokenizer.encode, sides)

    def run() -> Quality:
        found = engine.score(sources, targets)
        bleu = None
        if score:
            hypotheses = engine.generate(sources, DecodingOptions(beam=1))
            outputs = translator.tokenizer.decode([best[0].ids for best in hypotheses])
            bleu = corpus_scores(outputs, [target for _, target in examples]).bleu
        return Quality(sum(map(sum, found)) / sum(map(len, found)), bleu, tuple(found[0]))

    return run


def read_examples(_translator: Any, path: Path, rejections: Rejections, **reading: Any) -> Iterator[tuple[str, str]]:
    """The pairs of a file."""
    options = reading_options(**reading)
    refuse_unused_for_pairs(options, [path])
    return aligned_texts([path], options, rejections)
