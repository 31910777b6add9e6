"""Sentence pairs in, a translator out."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from jumok.data.batch import Batch
from jumok.data.epochs import TranslationEpochs
from jumok.data.kinds import PAIRS, reading_with
from jumok.data.reading.languages import is_language_code
from jumok.data.reading.lines import without_compression
from jumok.data.reading.options import Columns, reading_options
from jumok.data.reading.unused_options import refuse_unused_for_pairs
from jumok.engines.options import SearchOptions
from jumok.engines.translator.confidence import Confidence
from jumok.engines.translator.sentences import sentence_ends
from jumok.engines.translator.torch import TorchTranslator
from jumok.lens.replay import record_attention
from jumok.metrics.translation import corpus_scores
from jumok.model.encoder_decoder import EncoderDecoder
from jumok.recipes.recipe import BY_MUON, PathLike, Recipe, few_wide_layers, spread
from jumok.recipes.training import TrainingResult, TrainRequest, train
from jumok.tokenizer import is_upper_case, lower_case
from jumok.training.auto import Choice
from jumok.training.events import EventCallback, ignore_event
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.progress import Validation
from jumok.training.settings import Settings

USUAL_SHARE = 0.999  # of the training sentences; a longer line is split before it is translated
CASE_SHARE = 0.05  # of the sources, in small letters; see benchmarks/unusual_input.md
CANDIDATES = 2_000  # that the loss compares with the targets of a batch
TOKEN_DROPOUT = 0.1
MANY_EPOCHS = 50.0  # from here on tokens are dropped
TRANSLATIONS = "translations"  # of the corpus, in the store
SAMPLED_SOURCES = 2_000  # looked at to see whether they have several sentences, and both cases
COUNTED_PAIRS = 30_000  # of the corpus, to see which tokens occur together
TINY_SIZES = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 192, "d_ff": 384}  # other than the preset's
SAMPLES = 3  # translations shown after each validation
VALIDATION_RATIO = 1.0  # tighter than for users: an untrained model fills any length it is allowed


def train_translator(
    source: PathLike,
    target: PathLike | None = None,
    *,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    languages: tuple[str, str] | None = None,
    columns: Columns | None = None,
    separator: str | None = None,
    sheet: str | int | None = None,
    encoding: str | None = None,
    **request: Unpack[TrainRequest],
) -> TrainingResult:
    """Train a translator on two aligned files, or one file with both sides, in the run directory `out`.

    Called again with the same arguments it resumes. `valid` names two files, or one with both sides.
    How files are read is found out, and told by the event "file"; these arguments choose instead: `languages`, source
    and target in files that name their languages, such as ("en", "ko"); `columns`, source and target of a table, by
    name or number (from 1); `separator` of a CSV file; `sheet` of a workbook, by name or number; `encoding` of text.
    Further arguments: `minutes`, `steps` or `epochs`, `preset`, `settings` and the others of `TrainRequest`.
    """
    paths = [source] if target is None else [source, target]
    reading = {"languages": languages, "columns": columns, "separator": separator, "sheet": sheet, "encoding": encoding}
    return train("translator", *paths, out=out, valid=valid, **reading, **request)


class TranslatorRecipe(Recipe):
    """Teacher forcing on sentence pairs; the best model is the one with the best BLEU."""

    task, epochs_type = "translator", TranslationEpochs
    validation_cost, export_cost = 2.0, 8.0
    may_fit_embeddings, predicted, augmentations = True, "target", ("diversify",)
    _diversify: Choice | None = None  # that a first stage was chosen
    _device = "auto"  # that was asked for

    def __init__(
        self,
        data: Sequence[PathLike],
        valid: Sequence[PathLike] | None = None,
        *,
        languages: tuple[str, str] | None = None,
        columns: Columns | None = None,
        separator: str | None = None,
        sheet: str | int | None = None,
        encoding: str | None = None,
    ) -> None:
        super().__init__(data, valid)
        options = reading_options(
            languages=languages, columns=columns, separator=separator, sheet=sheet, encoding=encoding
        )
        refuse_unused_for_pairs(options, self.data, self.valid)
        self.kind, self.languages = reading_with(PAIRS, options), languages

    def first_stage(self, asked: Settings) -> tuple[Recipe, Settings] | None:
        """Data diversification, where it is asked for, or few pairs would be seen very often: see "Translations of the
        corpus" in benchmarks/multi30k.md."""
        from jumok.recipes.two_way_translator import TwoWayTranslatorRecipe, should_diversify  # extends this

        self._device, self._diversify = asked.device, None
        if asked.augment.diversify is None and should_diversify(self.corpus, asked):
            why = f"{asked.stop.minutes:g} minutes are enough to learn from translations of the corpus too"
            self._diversify, asked = Choice("augment.diversify", True, why), asked.changed({"preset": "tiny"})
        if not (asked.augment.diversify or self._diversify):
            return None
        stage = TwoWayTranslatorRecipe.of_corpus(self.corpus, self.data)
        return stage, stage.settings_within(asked)

    def use_first_stage(
        self, stage: Recipe, model: Path | None, store: Path, on_event: EventCallback = ignore_event
    ) -> None:
        """Add what the translator of both directions makes of the pairs."""
        from jumok.recipes.two_way_translator import diversified

        self.corpus = diversified(self.corpus, model, store / TRANSLATIONS, self._device, on_event)

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """The first stage, if it was chosen, and variants in small letters if the sources are written in both cases."""
        chosen = () if self._diversify is None else (self._diversify,)
        texts = self._source_sample()
        both = sum(text != lower_case(text) and not is_upper_case(text) for text in texts)
        if both < len(texts) / 2:
            return chosen
        return (*chosen, Choice("augment.case", CASE_SHARE, "so that small letters are understood too"))

    def choices_for(self, chosen: Settings) -> Sequence[Choice]:
        """For `tiny`, what is better after the same minutes than the paper's way: see "Positions", "Shape",
        "Optimizer", "Embeddings" and "Shorter steps" in benchmarks/multi30k.md."""
        if chosen.preset != "tiny":
            return ()
        sizes = few_wide_layers(**TINY_SIZES)
        rotary, speed = self.choices_of_rotary(chosen, sizes), self._choices_of_speed(chosen)
        return BY_MUON, *sizes, *rotary, *self.choices_of_embeddings(), *speed

    def _choices_of_speed(self, chosen: Settings) -> Sequence[Choice]:
        """What makes the steps of a small model shorter, and teaches it as much."""
        choices = []
        if chosen.optimizer.name in (None, "muon"):
            why = "Muon for half of the matrices at a time is as good, and faster"
            choices.append(Choice("optimizer.every", 2, why))
        if self.corpus.tokenizer.size >= 2 * CANDIDATES:
            choices.append(Choice("loss.candidates", CANDIDATES, "as good as the whole vocabulary, and faster"))
        return choices

    def choices_for_length(self, chosen: Settings, epochs: float) -> Sequence[Choice]:
        """For `tiny`, token dropout, unless dropout is given: see "Token dropout" and "Translations of the corpus" in
        benchmarks/multi30k.md."""
        if chosen.preset != "tiny" or "dropout" in chosen.model:
            return ()
        if epochs < MANY_EPOCHS and not chosen.augment.diversify:
            return ()
        return (Choice("augment.token_dropout", TOKEN_DROPOUT, f"less overfitting in {epochs:.0f} epochs"),)

    def card(self) -> dict[str, Any]:
        """Source and target language, where they are known, the length of the longest usual sentences, and the share
        of lines with several sentences."""
        lengths = self.corpus.train.lengths("source", slice(self.corpus.facts["examples"]))
        usual = np.quantile(lengths, USUAL_SHARE, method="higher")
        return {
            "languages": self._known_languages and list(self._known_languages),
            "usual_tokens": int(usual),
            "multi_sentence_share": self._multi_sentence_share,
        }

    @property
    def _known_languages(self) -> tuple[str, str] | None:
        by_names = self.languages or _languages_of(self.inputs)
        return by_names or _languages_of_columns(self.corpus.facts.get("layouts", ()))

    @cached_property
    def _multi_sentence_share(self) -> float:
        language = self._known_languages[0] if self._known_languages else None
        texts = self._source_sample()
        return sum(bool(sentence_ends(text, language)) for text in texts) / len(texts)

    def _source_sample(self) -> list[str]:
        """Source sentences from all parts of the corpus, without translations behind them."""
        train = self.corpus.train
        numbers = spread(self.corpus.facts["examples"], SAMPLED_SOURCES)
        return self.corpus.tokenizer.decode([train.example("source", number) for number in numbers])

    def fit(self, settings: Settings) -> None:
        """Fit the token vectors that the training begins with."""
        train = self.corpus.train
        numbers = spread(len(train), COUNTED_PAIRS)
        pairs = ([train.example(side, number) for side in ("source", "target")] for number in numbers)
        self.fit_embeddings(settings, (np.concatenate(pair).astype(np.int64) for pair in pairs))

    def loss(self, model: EncoderDecoder, settings: Settings) -> Callable[[Batch], Tensor]:
        """Teacher forcing: the full target at once, each token given the true ones before it."""
        sampler, smoothing = self.candidate_sampler(settings), settings.loss.smoothing

        def loss(batch: Batch) -> Tensor:
            source, target = (torch.from_numpy(ids) for ids in (batch.source, batch.target_in))
            states = model.states(source, target).flatten(0, 1)
            targets = torch.from_numpy(batch.target_out).flatten()
            drawn = sampler if model.training else None
            return smoothed_cross_entropy(states, model.embed.tokens.weight, targets, smoothing, sampler=drawn)

        return loss

    def validate(self, model: EncoderDecoder, count: int) -> Validation:
        """Loss, BLEU and chrF on validation sentences, really translated (greedily), and a few of them to look at."""
        examples, tokenizer = self.validation_examples(count), self.corpus.tokenizer
        sources, references = ([example.inputs[side] for example in examples] for side in (0, 1))
        # By the engine itself, which does not retry loops: what a user would be spared is to be seen here.
        engine, encoded = TorchTranslator(model), tokenizer.encode(sources)
        hypotheses = engine.generate(encoded, SearchOptions(beam=1, max_ratio=VALIDATION_RATIO))
        outputs = tokenizer.decode([best[0].ids for best in hypotheses])
        scores = corpus_scores(outputs, references)
        targets = tokenizer.encode(references)
        log_probs = [value for row in engine.score(encoded, targets) for value in row]
        written = sum(len(best[0].ids) for best in hypotheses)
        confidence = Confidence.measure(sources, encoded, [best[0] for best in hypotheses])
        shown = zip(sources[:SAMPLES], references[:SAMPLES], outputs[:SAMPLES], strict=True)
        metrics = {
            "loss": -sum(log_probs) / len(log_probs),
            "bleu": scores.bleu,
            "chrf": scores.chrf,
            "signatures": [scores.bleu_signature, scores.chrf_signature],
            "samples": [dict(zip(("source", "reference", "output"), sample, strict=True)) for sample in shown],
        }
        effort = max(1.0, written / sum(map(len, targets)))
        attention = record_attention(engine, list(zip(encoded, targets, strict=True))[:SAMPLES])
        return Validation(scores.bleu, metrics, card=confidence.to_card(), attention=attention, effort=effort)


def _languages_of(names: Sequence[str]) -> tuple[str, str] | None:
    """The languages that two files are named after, such as train.en and train.ko.gz."""
    codes = [without_compression(name).suffix.lstrip(".") for name in names]
    return (codes[0], codes[1]) if len(codes) == 2 and all(map(is_language_code, codes)) else None


def _languages_of_columns(layouts: Sequence[Mapping[str, Any]]) -> tuple[str, str] | None:
    """The languages that the columns of source and target are named after, such as English and German."""
    for columns in (layout["columns"] for layout in layouts):
        tags = [columns[side]["language"] for side in ("source", "target") if side in columns]
        if len(tags) == 2 and all(tags):
            return tags[0], tags[1]
    return None
