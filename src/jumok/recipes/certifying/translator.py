"""The certificate of a translator: equal greedy translations, BLEU on the probes, and a shortlist that loses none."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from jumok.data.store import TokenStore
from jumok.engines.batching import TokenIds
from jumok.engines.conversion import SHORTLIST
from jumok.engines.options import SearchOptions
from jumok.engines.translator.ctranslate2 import PATIENCE, Ctranslate2Translator
from jumok.engines.translator.engine import TranslatorEngine
from jumok.engines.translator.shortlist import learn_lexicon
from jumok.engines.translator.torch import TorchTranslator
from jumok.files import REAL_FILES
from jumok.metrics.translation import corpus_scores
from jumok.recipes.certifying.certificate import (
    EXACT,
    MOST_PROBES,
    Export,
    GreedyEngine,
    Probes,
    Scores,
    compare,
    covering_texts,
    flat,
    random_sources,
    require_close,
    require_parity,
)
from jumok.tokenizer import EOS, Tokenizer

GREEDY = SearchOptions(beam=1, max_ratio=1.0)  # outputs for random sources may not end
MOST_BLEU_LOST = 0.5  # on the probes, by quantization
# Candidates of a source token, frequent tokens, and the patience of beam search, from the fastest on: the first that
# loses at most this much is taken. On 500 probes, a few outputs that are different but no worse change BLEU by more.
SHORTLISTS = ((50, 300, 1.0), (50, 300, 1.2), (50, 300, PATIENCE), (100, 1_000, PATIENCE))
MOST_BLEU_LOST_BY_SHORTLIST, FAST_BEAM, MOST_FAST_PROBES = 0.1, 5, 1_000
LEAST_BLEU = 1.0  # of greedy search; below that the model does not translate yet, and outputs may never end
SHORTLIST_PAIRS = 60_000  # more hardly change the shortlist


def certify(export: Export) -> dict[str, Any]:
    """Compare the translations of probes and of random sources; add a shortlist where it does no harm."""
    tokenizer, probes = export.encoder, export.probes[:MOST_PROBES]
    original = export.reference(TorchTranslator)
    exported = _exported(export, compute=EXACT)
    sources = [*tokenizer.encode([inputs[0] for inputs in probes]), *random_sources(tokenizer)]
    sources = [source for source in sources if len(source) <= exported.longest]
    found = require_parity(compare(translating(original), translating(exported), sources))
    parts = covering_pairs(tokenizer, exported.longest)
    require_close("scores", lambda engine: _forced(engine, parts), original, exported)
    if not export.is_exact:
        original, exported = TorchTranslator.from_bundle(export.bundle), _exported(export)
        found = compare(translating(original), translating(exported), sources)
    values = asdict(found)
    if not probes:
        return values
    values["bleu"] = _bleu(original, tokenizer, probes)
    if not export.is_exact:
        values["bleu_exported"] = _bleu(exported, tokenizer, probes)
        if values["bleu_exported"] < values["bleu"] - MOST_BLEU_LOST:
            raise export.too_lossy(
                f"has BLEU {values['bleu_exported']:.2f} instead of {values['bleu']:.2f} on the probes: "
                f"more than {MOST_BLEU_LOST} is lost"
            )
    if export.train is not None and values["bleu"] >= LEAST_BLEU:
        values.update(_add_shortlist(export, export.train))
    return values


def translating(engine: TranslatorEngine) -> GreedyEngine:
    """Greedy translation, to be compared."""

    def greedy(sources: TokenIds, prefixes: TokenIds) -> list[list[int]]:
        best = [found[0] for found in engine.generate(sources, GREEDY, prefixes=prefixes)]
        return [[*output.ids, EOS] if output.finished else output.ids for output in best]

    return GreedyEngine(greedy, engine.score)


def covering_pairs(tokenizer: Tokenizer, longest: int) -> list[tuple[TokenIds, TokenIds]]:
    """Sources and targets in three parts: a long source, a long target, and pairs with every token on either side."""
    long, *texts = covering_texts(tokenizer, longest)
    return [([long], texts[:1]), (texts[:1], [long]), (texts, texts[::-1])]


def _forced(engine: TranslatorEngine, parts: Sequence[tuple[TokenIds, TokenIds]]) -> Scores:
    """The log-probabilities of all targets. The parts are scored apart: padded to the longest they take far longer."""
    return flat([row for part in parts for row in engine.score(*part)])


def _exported(export: Export, *, fast: float | None = None, compute: str = "default") -> Ctranslate2Translator:
    original = partial(TorchTranslator.from_bundle, export.bundle)
    options = {"tokenizer": export.encoder, "fast": fast, "compute": compute}
    return Ctranslate2Translator(export.directory, export.bundle, original, **options)


def _add_shortlist(export: Export, train: TokenStore) -> dict[str, Any]:
    """Put the fastest shortlist that loses hardly any BLEU beside the exported model, if there is one."""
    tokenizer, probes, file = export.encoder, export.probes[:MOST_FAST_PROBES], export.directory / SHORTLIST
    lexicon = learn_lexicon(_pairs(train), tokenizer.size)
    values: dict[str, Any] = {"bleu_beam": _bleu(_exported(export), tokenizer, probes, FAST_BEAM)}
    for candidates, frequent, patience in SHORTLISTS:
        content = lexicon.shortlist(tokenizer, candidates, frequent)
        REAL_FILES.call_writer(partial(file.write_bytes, content), export.directory)
        values["bleu_fast"] = _bleu(_exported(export, fast=patience), tokenizer, probes, FAST_BEAM)
        if values["bleu_fast"] >= values["bleu_beam"] - MOST_BLEU_LOST_BY_SHORTLIST:
            chosen = {"candidates": candidates, "frequent": frequent, "patience": patience}
            return {**values, "shortlist": chosen}
    REAL_FILES.remove(file)
    return {**values, "shortlist": None}


def _pairs(train: TokenStore) -> Iterator[tuple[list[int], list[int]]]:
    for number in random.Random(0).sample(range(len(train)), min(len(train), SHORTLIST_PAIRS)):  # a file may be sorted
        yield train.example("source", number), train.example("target", number)


def _bleu(engine: TranslatorEngine, tokenizer: Tokenizer, probes: Probes, beam: int = 1) -> float:
    sources, references = tokenizer.encode([pair[0] for pair in probes]), [pair[1] for pair in probes]
    outputs = tokenizer.decode([found[0].ids for found in engine.generate(sources, SearchOptions(beam=beam))])
    return corpus_scores(outputs, references).bleu
