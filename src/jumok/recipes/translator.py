"""Two files in, a translator out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from jumok.data.batch import Batch
from jumok.data.epochs import TranslationEpochs
from jumok.data.parallel import ParallelCorpus, prepare
from jumok.model.config import ModelConfig
from jumok.model.config import preset as preset_config
from jumok.model.translator import Translator
from jumok.recipes.job import TrainingResult, Watch, train
from jumok.recipes.validation import translate_and_score
from jumok.tokenizer import Tokenizer
from jumok.training.auto import require_one_length
from jumok.training.memory import keep_freed_memory
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.progress import Validation
from jumok.training.settings import Settings

PathLike = str | Path


def train_translator(
    source: PathLike,
    target: PathLike | None = None,
    *,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    settings: Settings | Mapping[str, Any] | None = None,
    preset: str | None = None,
    minutes: float | None = None,
    steps: int | None = None,
    epochs: float | None = None,
    fresh: bool = False,
    continue_with_changes: bool = False,
    watch: Watch = lambda _: None,
    stop_requested: Callable[[], bool] = lambda: False,
) -> TrainingResult:
    """Trains a translator on two aligned files, or one file with both sides, in the run directory `out`.

    Called again with the same arguments it goes on where it stopped. `valid` names two files, or one with both sides.
    `settings` are dotted names and values, or a `Settings`; `watch` receives everything that happens as dictionaries
    (see training/trainer.py).
    """
    lengths = {"preset": preset, "stop.minutes": minutes, "stop.steps": steps, "stop.epochs": epochs}
    given = settings if isinstance(settings, Settings) else Settings.from_dict({}).changed(settings or {})
    asked = given.changed({name: value for name, value in lengths.items() if value is not None})
    _require_possible(asked)
    keep_freed_memory()
    return train(
        _TranslatorTask([source] if target is None else [source, target], valid),
        asked,
        Path(out),
        fresh=fresh,
        continue_with_changes=continue_with_changes,
        watch=watch,
        stop_requested=stop_requested,
    )


def _require_possible(settings: Settings) -> None:
    """Refuses a preset, a model or lengths that cannot be, before anything is read or written."""
    require_one_length(settings.stop)
    preset_config("tiny" if settings.preset == "auto" else settings.preset, vocabulary=1, **settings.model)


class _TranslatorTask:
    """See `Task`."""

    name = "translator"
    corpus: ParallelCorpus

    def __init__(self, paths: Sequence[PathLike], valid: Sequence[PathLike] | None) -> None:
        self.paths, self.valid = paths, valid
        self.inputs = [Path(path).name for path in paths]

    def prepare(
        self, store: Path, settings: Settings, *, expected: str | None, tokenizer: Tokenizer | None
    ) -> dict[str, Any]:
        size, seed = settings.tokenizer.size, settings.seed
        self.corpus = prepare(
            store, self.paths, valid=self.valid, size=size, seed=seed, expected=expected, tokenizer=tokenizer
        )
        return self.corpus.facts

    @property
    def tokenizer(self) -> Tokenizer:
        return self.corpus.tokenizer

    @property
    def valid_examples(self) -> int:
        return len(self.corpus.valid)

    def config(self, settings: Settings) -> ModelConfig:
        return preset_config(settings.preset, vocabulary=self.corpus.tokenizer.size, **settings.model)

    def model(self, settings: Settings) -> Translator:
        return Translator(self.config(settings))

    def epochs(self, settings: Settings) -> TranslationEpochs:
        if settings.batch.tokens is None:
            raise ValueError("batch.tokens was used before it was chosen")
        tokens, sampling = settings.batch.tokens, settings.tokenizer.sampling
        return TranslationEpochs(self.corpus, tokens=tokens, seed=settings.seed, sampling=sampling)

    def loss(self, model: Translator, settings: Settings) -> Callable[[Batch], Tensor]:
        """Teacher forcing: the whole target at once, each token given the true ones before it."""

        def loss(batch: Batch) -> Tensor:
            source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target_in)
            states = model.states(source, target).flatten(0, 1)
            answers = torch.from_numpy(batch.target_out).flatten()
            return smoothed_cross_entropy(states, model.embed.tokens.weight, answers, settings.loss.smoothing)

        return loss

    def validate(self, model: Translator, examples: int) -> Validation:
        return translate_and_score(model, self.corpus.tokenizer, self.corpus.valid[:examples])
