"""Two files in, a translator out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from jumok.data.batch import Batch
from jumok.data.epochs import TranslationEpochs
from jumok.data.kinds import pairs_in
from jumok.data.reading.languages import is_language_code
from jumok.data.reading.lines import without_compression
from jumok.model.config import ModelConfig
from jumok.model.config import preset as preset_config
from jumok.model.translator import Translator
from jumok.recipes.corpus_task import CorpusTask
from jumok.recipes.job import TrainingResult, train
from jumok.recipes.request import PathLike, Request
from jumok.recipes.validation import translate_and_score
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.progress import Validation
from jumok.training.settings import Settings

USUAL_SHARE = 0.999  # of the sentences learned from; to longer ones a model is not used


def train_translator(
    source: PathLike,
    target: PathLike | None = None,
    *,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    languages: tuple[str, str] | None = None,
    **request: Unpack[Request],
) -> TrainingResult:
    """Trains a translator on two aligned files, or one file with both sides, in the run directory `out`.

    Called again with the same arguments it goes on where it stopped. `valid` names two files, or one with both sides.
    `languages` chooses source and target in files that name their languages, such as ("en", "ko").
    Further arguments: `minutes`, `steps` or `epochs`, `preset`, `settings` and the others of `recipes/request.py`.
    """
    paths = [source] if target is None else [source, target]
    return train(_TranslatorTask(paths, valid, languages), Path(out), request)


class _TranslatorTask(CorpusTask):
    """Pairs of sentences, teacher forcing, BLEU."""

    name, batches = "translator", TranslationEpochs

    def __init__(
        self, paths: Sequence[PathLike], valid: Sequence[PathLike] | None, languages: tuple[str, str] | None
    ) -> None:
        super().__init__(paths, valid)
        self.kind, self.languages = pairs_in(languages), languages or _languages_of(self.inputs)

    def card(self) -> dict[str, Any]:
        """Source and target language, where they are known, and how long the sentences are it is used to."""
        usual = np.quantile(self.corpus.train.lengths("source"), USUAL_SHARE, method="higher")
        return {"languages": self.languages and list(self.languages), "usual_tokens": int(usual)}

    def config(self, settings: Settings) -> ModelConfig:
        return preset_config(settings.preset, vocabulary=self.corpus.tokenizer.size, **settings.model)

    def model(self, settings: Settings) -> Translator:
        return Translator(self.config(settings))

    def loss(self, model: Translator, settings: Settings) -> Callable[[Batch], Tensor]:
        """Teacher forcing: the whole target at once, each token given the true ones before it."""

        def loss(batch: Batch) -> Tensor:
            source, target = torch.from_numpy(batch.source), torch.from_numpy(batch.target_in)
            states = model.states(source, target).flatten(0, 1)
            answers = torch.from_numpy(batch.target_out).flatten()
            return smoothed_cross_entropy(states, model.embed.tokens.weight, answers, settings.loss.smoothing)

        return loss

    def validate(self, model: Translator, examples: int) -> Validation:
        return translate_and_score(
            model, self.corpus.tokenizer, [example.inputs for example in self.measured(examples)]
        )


def _languages_of(names: Sequence[str]) -> tuple[str, str] | None:
    """The languages that two files are named after, such as train.en and train.ko.gz."""
    codes = [without_compression(name).suffix.lstrip(".") for name in names]
    return (codes[0], codes[1]) if len(codes) == 2 and all(map(is_language_code, codes)) else None
