"""Two files in, a translator out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor

from jumok.data.batch import Batch
from jumok.data.epochs import TranslationEpochs
from jumok.data.parallel import PAIRS
from jumok.engines.certificate import ParityError
from jumok.errors import ConfigError
from jumok.model.config import ModelConfig
from jumok.model.config import preset as preset_config
from jumok.model.translator import Translator
from jumok.recipes.corpus_task import CorpusTask
from jumok.recipes.export import export_ctranslate2
from jumok.recipes.job import TrainingResult, train
from jumok.recipes.request import PathLike, Request
from jumok.recipes.validation import translate_and_score
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.progress import Validation
from jumok.training.settings import Settings

PROBES = 200  # sentences on which the exported model is compared with this one


def train_translator(
    source: PathLike,
    target: PathLike | None = None,
    *,
    out: PathLike,
    valid: Sequence[PathLike] | None = None,
    **request: Unpack[Request],
) -> TrainingResult:
    """Trains a translator on two aligned files, or one file with both sides, in the run directory `out`.

    Called again with the same arguments it goes on where it stopped. `valid` names two files, or one with both sides.
    Further arguments: `minutes`, `steps` or `epochs`, `preset`, `settings` and the others of `recipes/request.py`.
    """
    paths = [source] if target is None else [source, target]
    return train(_TranslatorTask(paths, valid), Path(out), request)


class _TranslatorTask(CorpusTask):
    """Pairs of sentences, teacher forcing, BLEU."""

    name, kind, batches = "translator", PAIRS, TranslationEpochs

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

    def finish(self, model: Path) -> Mapping[str, Any]:
        """Exports it to CTranslate2, certified on sentences that were not learned from."""
        probe = [example.texts for example in self.corpus.valid[:PROBES]]
        try:
            _, certificate = export_ctranslate2(model, probe=probe, train=self.corpus.train)
        except (ConfigError, ParityError, ModuleNotFoundError) as error:
            return {"not_exported": str(error)}
        return {"certificate": certificate}

    def validate(self, model: Translator, examples: int) -> Validation:
        return translate_and_score(
            model, self.corpus.tokenizer, [example.texts for example in self.corpus.valid[:examples]]
        )
