"""Data diversification (Nguyen et al. 2020), for few pairs and much time: a translator of both directions is trained
first, and its translations of both sides of the pairs are learned from too."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from jumok.bundle import load_bundle
from jumok.data.corpus import Corpus
from jumok.data.examples import Example
from jumok.data.kinds import LONGEST
from jumok.data.store import TokenStore
from jumok.engines.loading import load
from jumok.engines.translator.text import TextTranslator
from jumok.recipes.first_stage import FirstStageRecipe
from jumok.recipes.translator import TranslatorRecipe
from jumok.training.events import EventCallback
from jumok.training.settings import Settings

SHARE_OF_MINUTES = 1 / 3  # of both stages
PAIRS_AT_A_TIME = 2500  # translated, in both directions
COLUMNS = ("source", "target", "line")
EXCHANGED = {"source": "target", "target": "source", "line": "line"}


class TwoWayTranslatorRecipe(FirstStageRecipe, TranslatorRecipe):
    """Trains one translator on all pairs and on all of them with source and target exchanged."""

    title = "translator of both directions"

    @classmethod
    def of_corpus(cls, corpus: Corpus, main: TranslatorRecipe) -> Self:
        """The recipe for the pairs that `main` has prepared."""
        stage = cls(main.data)
        train = corpus.train.followed_by(corpus.train.renamed(EXCHANGED))
        valid = [*corpus.valid, *(Example(each.inputs[::-1], each.where) for each in corpus.valid)]
        counts = {
            "examples": len(train),
            "tokens": len(train) + int(train.lengths("target").sum()),
            "valid_examples": len(valid),
        }
        stage.corpus = Corpus(corpus.encoder, train, valid, {**corpus.facts, **counts, "findings": [], "layouts": []})
        return stage

    @staticmethod
    def settings_within(asked: Settings) -> Settings:
        """The settings of this stage: a share of the minutes; steps and epochs count in each stage."""
        minutes = asked.stop.minutes
        length = {} if minutes is None else {"stop.minutes": minutes * SHARE_OF_MINUTES}
        return asked.changed({"augment.diversify": False, **length})

    @property
    def _known_languages(self) -> None:
        return None  # each is source and target


def diversified(corpus: Corpus, model: Path | None, store: Path, on_event: EventCallback) -> Corpus:
    """The corpus, and behind its pairs those of a source with its translation and of a translated target with the
    target, where the model gives another text than the corpus. They are in the directory `store`, or are made and kept
    there. Without a model, for a plan: as many pairs as there can be."""
    train = corpus.train
    if model is None:
        more = train.followed_by(train)
    else:
        digest = load_bundle(model).weights_digest
        fingerprint = sha256(f"{corpus.facts['fingerprint']} {digest}".encode()).hexdigest()
        more = TokenStore.open(store, fingerprint) or TokenStore.build(
            store, _new_pairs(corpus, model, on_event), columns=COLUMNS, fingerprint=fingerprint
        )
    return Corpus(corpus.encoder, train.followed_by(more), corpus.valid, corpus.facts)


def _new_pairs(corpus: Corpus, model: Path, on_event: EventCallback) -> Iterator[list[Sequence[int]]]:
    """Rows of ids: source, target and line of each new pair."""
    translator, train = load(model, task="translator"), corpus.train
    for start in range(0, len(train), PAIRS_AT_A_TIME):
        on_event({"event": "translating", "done": start, "pairs": len(train)})
        numbers = range(start, min(start + PAIRS_AT_A_TIME, len(train)))
        rows = [[train.example(column, number) for number in numbers] for column in COLUMNS]
        sources, targets, lines = rows
        of_sources, of_targets = (_translations(translator, corpus, side) for side in (sources, targets))
        for source, target, line, forward, back in zip(sources, targets, lines, of_sources, of_targets, strict=True):
            # A copy is no translation, and what the corpus has says nothing new.
            known: tuple[Sequence[int], ...] = ([], source, target)
            if forward not in known:
                yield [source, forward, line]
            if back not in known:
                yield [back, target, line]


def _translations(translator: TextTranslator, corpus: Corpus, texts: Sequence[Sequence[int]]) -> list[list[int]]:
    """The ids of the translation of each text; none for one that was cut or is too long."""
    results: list[Any] = translator.translate_batch(corpus.tokenizer.decode(texts))
    outputs = corpus.tokenizer.encode([result.text for result in results])
    return [
        ids if result.finished and len(ids) <= LONGEST else [] for ids, result in zip(outputs, results, strict=True)
    ]
