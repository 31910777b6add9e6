"""Data diversification (Nguyen et al. 2020), for few pairs and much time: a translator of both directions is trained
first, and its translations of both sides of the pairs are learned from too."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from jumok.model.encoder_decoder import EncoderDecoder
from jumok.recipes.first_stage import FirstStageRecipe
from jumok.recipes.recipe import PathLike, spread
from jumok.recipes.translator import TranslatorRecipe
from jumok.training.auto import PRESET_TOKENS
from jumok.training.events import EventCallback
from jumok.training.progress import Validation
from jumok.training.settings import Settings

SHARE_OF_MINUTES = 1 / 3  # of both stages
PAIRS_AT_A_TIME = 1000  # translated, in both directions; a signal waits for them
MINUTES_FOR_A_MILLION = 100.0  # tokens to learn; from here on it suits a corpus
LEAST_PAIRS = 10_000  # of which a translator of both directions learns enough to be learned from
SAME_LANGUAGE = 0.5  # of the target tokens are in the source: it could not tell the directions apart
SAMPLED_PAIRS = 2_000  # looked at to see that
COLUMNS = ("source", "target", "line")
EXCHANGED = {"source": "target", "target": "source", "line": "line"}


class TwoWayTranslatorRecipe(FirstStageRecipe, TranslatorRecipe):
    """Trains one translator on all pairs and on all of them with source and target exchanged."""

    title = "translator of both directions, from whose translations the second stage learns too"

    @classmethod
    def of_corpus(cls, corpus: Corpus, data: Sequence[PathLike]) -> Self:
        """The recipe for the pairs that the second stage has prepared from these files."""
        stage = cls(data)
        train = corpus.train.followed_by(corpus.train.renamed(EXCHANGED))
        valid = [*corpus.valid, *(Example(each.inputs[::-1], each.where) for each in corpus.valid)]
        counts = {
            "examples": len(train),
            "tokens": len(train) + int(train.lengths("target").sum()),
            "valid_examples": len(valid),
        }
        stage.corpus = Corpus(corpus.encoder, train, valid, {**corpus.facts, **counts})
        return stage

    @staticmethod
    def settings_within(asked: Settings) -> Settings:
        """The settings of this stage: a share of the minutes; steps and epochs count in each stage."""
        minutes = asked.stop.minutes
        length = {} if minutes is None else {"stop.minutes": minutes * SHARE_OF_MINUTES}
        return asked.changed({"augment.diversify": False, **length})

    def fixed(self) -> dict[str, Any]:
        """The vocabulary: if the corpus has changed, the second stage may have learned another one."""
        return {"vocabulary": sha256(self.corpus.encoder.to_bytes()).hexdigest()[:16]}

    def validate(self, model: EncoderDecoder, count: int) -> Validation:
        """See `TranslatorRecipe`. The best model has the lowest loss: one BLEU for two languages means little."""
        found = super().validate(model, count)
        return replace(found, score=-found.metrics["loss"])

    @property
    def _known_languages(self) -> None:
        return None  # each is source and target


def should_diversify(corpus: Corpus, asked: Settings) -> bool:
    """Whether there are few pairs, but not too few, of two languages, and many minutes. The speed of the machine does
    not matter, so that the same command always makes the same stages."""
    tokens = corpus.facts["tokens"]
    is_tiny = asked.preset == "tiny" or (asked.preset == "auto" and tokens < dict(PRESET_TOKENS)["tiny"])
    minutes = (asked.stop.minutes or 0.0) / (tokens / 1e6)
    if not is_tiny or len(corpus.train) < LEAST_PAIRS or minutes < MINUTES_FOR_A_MILLION:
        return False
    return _shared_tokens(corpus.train) < SAME_LANGUAGE


def _shared_tokens(train: TokenStore) -> float:
    """The share of the target tokens that are in their source too."""
    shared = total = 0
    for number in spread(len(train), SAMPLED_PAIRS):
        source, target = set(train.example("source", number)), train.example("target", number)
        shared, total = shared + sum(token in source for token in target), total + len(target)
    return shared / total


def diversified(corpus: Corpus, model: Path | None, store: Path, device: str, on_event: EventCallback) -> Corpus:
    """The corpus, and behind its pairs those of a source with its translation and of a translated target with the
    target, where the model gives another text than the corpus. They are in the directory `store`, or are made and kept
    there: on the `device`, or on the CPU if CTranslate2 does not know it. Without a model, for a plan: as many pairs as
    there can be."""
    train = corpus.train
    if model is None:
        more = train.followed_by(train)
    else:
        digest = load_bundle(model).weights_digest
        fingerprint = sha256(f"{corpus.facts['fingerprint']} {digest}".encode()).hexdigest()
        more = TokenStore.open(store, fingerprint) or TokenStore.build(
            store, _new_pairs(corpus, model, device, on_event), columns=COLUMNS, fingerprint=fingerprint
        )
        on_event({"event": "translating", "done": len(train), "pairs": len(train), "new": len(more)})
    return Corpus(corpus.encoder, train.followed_by(more), corpus.valid, corpus.facts)


def _new_pairs(corpus: Corpus, model: Path, device: str, on_event: EventCallback) -> Iterator[list[Sequence[int]]]:
    """Rows of ids: source, target and line of each new pair."""
    device = device if device.partition(":")[0] in ("auto", "cuda") else "cpu"
    translator, train = load(model, task="translator", device=device), corpus.train
    for start in range(0, len(train), PAIRS_AT_A_TIME):
        on_event({"event": "translating", "done": start, "pairs": len(train)})
        numbers = range(start, min(start + PAIRS_AT_A_TIME, len(train)))
        sources, targets, lines = ([train.example(column, number) for number in numbers] for column in COLUMNS)
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
    results = translator.translate_batch(corpus.tokenizer.decode(texts))
    outputs = corpus.tokenizer.encode([result.text for result in results])
    return [
        ids if result.finished and len(ids) <= LONGEST else [] for ids, result in zip(outputs, results, strict=True)
    ]
