"""A recipe: what is particular to the training of one task. Everything else is the same for all, in training.py."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from jumok.data.corpus import Corpus, open_corpus, prepare_corpus
from jumok.data.epochs import CorpusEpochs
from jumok.data.examples import Example, ExampleKind, InputEncoder
from jumok.data.reading.lines import escaped
from jumok.engines.conversion import repair_export
from jumok.errors import ConfigError
from jumok.model.config import BaseConfig, ModelConfig, preset
from jumok.recipes.certifying.certificate import ParityError
from jumok.recipes.embedding_fit import MOST_FITTED, Ids, cooccurrence_embeddings
from jumok.recipes.export import export_ctranslate2, is_exported
from jumok.tasks import resolve, task_named, task_of_config
from jumok.training.auto import Choice
from jumok.training.candidates import CandidateSampler
from jumok.training.events import EventCallback, ignore_event
from jumok.training.progress import Validation
from jumok.training.settings import Settings

PathLike = str | Path

BY_MUON = Choice("optimizer.name", "muon", "learns more from each batch")
ROTARY = Choice("model.rotary", True, "how far apart tokens stand is learned sooner")
COUNTED_EXAMPLES = 100_000  # to see how frequent each token is
PROBES = 200  # validation examples on which the exported model is compared with the original


def few_wide_layers(**sizes: int) -> list[Choice]:
    """Sizes of a small model other than those of its preset."""
    why = "few wide layers learn more in the same time than many narrow ones"
    return [Choice(f"model.{name}", size, why) for name, size in sizes.items()]


def spread(examples: int, most: int) -> range:
    """The numbers of at most so many examples, from all parts of a corpus."""
    return range(0, examples, -(-examples // most))


class Recipe(ABC):
    """Trains a model of one task on a corpus. All but the constructor and `prepare` is used after `prepare`."""

    task: ClassVar[str]
    kind: ExampleKind  # what it learns from
    epochs_type: ClassVar[type[CorpusEpochs]]  # how examples become batches
    validation_cost: ClassVar[float] = 1.0  # of a validated token, in trained tokens
    export_cost: ClassVar[float] = 0.0  # the export takes about as long as so many validations of its probes
    highest_score: ClassVar[float] = math.inf  # of a validation; a recorded one above it was measured in another way
    may_fit_embeddings: ClassVar[bool] = False  # whether `init.embeddings` can be anything but random
    augmentations: ClassVar[Sequence[str]] = ()  # names of the settings `augment.*` beside those of `epochs_type`
    predicted: ClassVar[str | None] = None  # the column whose tokens a softmax over the vocabulary predicts
    _embeddings: Tensor | None = None  # [V, D] the token vectors that were fitted
    not_settings: ClassVar[Mapping[str, str]] = {  # fields of the model's config, and what decides them
        "task": "the command decides it. Leave it out.",
        "vocabulary": "the data decide it. Leave it out, or set tokenizer.size.",
    }
    corpus: Corpus

    def __init__(self, data: Sequence[PathLike], valid: Sequence[PathLike] | None = None) -> None:
        self.data, self.valid = data, [valid] if isinstance(valid, str | Path) else valid
        self.inputs = [escaped(Path(path).name) for path in data]  # as the run and the model record them

    @property
    def title(self) -> str:
        """What it trains, in words."""
        return task_named(self.task).title

    @classmethod
    def kind_for(cls, card: Mapping[str, Any], files: Sequence[PathLike] = (), **reading: Any) -> ExampleKind:
        """The kind of examples of a trained model with this card. `reading` are arguments of the constructor: how the
        files are read."""
        del card
        return cls(files, **reading).kind

    @classmethod
    def check_settings(cls, settings: Settings, **of_the_data: Any) -> None:
        """Raises ConfigError for a preset or a model that cannot be, before anything is read or written. `of_the_data`
        are the fields of the model's config that the data decide, as far as they are known, or else the largest."""
        for name in settings.model:
            if name in cls.not_settings:
                raise ConfigError(f"model.{name} cannot be set: {cls.not_settings[name]}")
        for name, value in settings.augment:
            if value is not None and name not in (*cls.epochs_type.augmentations, *cls.augmentations):
                raise ConfigError(f"augment.{name} has no effect on a {task_named(cls.task).title}. Leave it out.")
        if settings.init.embeddings != "random" and not cls.may_fit_embeddings:
            raise ConfigError(f"init.embeddings has no effect on a {task_named(cls.task).title}. Leave it out.")
        if settings.loss.candidates is not None and cls.predicted is None:
            raise ConfigError(f"loss.candidates has no effect on a {task_named(cls.task).title}. Leave it out.")
        if (settings.optimizer.every or 1) > 1 and settings.optimizer.name != "muon":
            raise ConfigError("optimizer.every is for Muon: set optimizer.name to muon too, or leave it out.")
        name = "tiny" if settings.preset == "auto" else settings.preset
        preset(name, task=cls.task, vocabulary=1, **settings.model, **of_the_data)

    def prepare(
        self,
        store: Path,
        settings: Settings,
        *,
        expected: str | None,
        encoder: InputEncoder | None,
        if_changed: Callable[[], InputEncoder | None] | None = None,
        skip_unusable: bool = False,
        on_phase: Callable[[str], None] = lambda _: None,
    ) -> dict[str, Any]:
        """Read the corpus into `store`, or find it ready there, and return the facts about it; see `prepare_corpus`."""
        self.corpus = prepare_corpus(
            self.kind,
            store,
            self.data,
            valid=self.valid,
            size=settings.tokenizer.size,
            seed=settings.seed,
            expected=expected,
            encoder=encoder,
            if_changed=if_changed,
            skip_unusable=skip_unusable,
            on_phase=on_phase,
        )
        return self.corpus.facts

    def why_read_otherwise(self, before: Mapping[str, Any]) -> str:
        """Why files that are the same give other examples than before; `before` says how they were read then."""
        return "The files are the same, but are read in another way: as other columns or languages, for example."

    def reopen(self, store: Path, fingerprint: str) -> dict[str, Any]:
        """Open what rank 0 of the same training has just prepared, and return the facts about it."""
        self.corpus = open_corpus(store, fingerprint)
        return self.corpus.facts

    def first_stage(self, asked: Settings) -> "tuple[Recipe, Settings] | None":
        """A training that comes before this one, in a directory of its own, with its settings; None: there is none."""
        return None

    def use_first_stage(  # noqa: B027
        self, stage: "Recipe", model: Path | None, store: Path, on_event: EventCallback = ignore_event
    ) -> None:
        """Take over what the first stage has learned; without a model, what an untrained one would give, for a plan."""

    def validation_examples(self, count: int) -> list[Example]:
        """So many of the validation examples, spread over all of them: a file may be sorted."""
        return list(self.iterate_validation_examples(count))

    def iterate_validation_examples(self, count: int) -> Iterator[Example]:
        """The same one after the other: together, pictures take much memory."""
        valid = self.corpus.valid
        count = min(count, len(valid))
        return (valid[i * len(valid) // count] for i in range(count))

    def fixed(self) -> Mapping[str, Any]:
        """What the data must not change while a model goes on learning from it; kept in run.json."""
        return {}

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """What suits this task and its data better than what suits most; used where nothing else was given."""
        return ()

    def choices_for(self, chosen: Settings) -> Sequence[Choice]:
        """The same, where it depends on the preset, which is chosen by now."""
        return ()

    def choices_for_length(self, chosen: Settings, epochs: float) -> Sequence[Choice]:
        """The same, where it depends on how often each example is seen. Called before dropout is chosen."""
        return ()

    def choices_of_rotary(self, chosen: Settings, sizes: Sequence[Choice]) -> Sequence[Choice]:
        """Rotations, if a model of these sizes can have them."""
        config = self.config(
            chosen.changed({choice.name: choice.value for choice in sizes if not chosen.has(choice.name)})
        )
        return (ROTARY,) if isinstance(config, ModelConfig) and config.may_rotate else ()

    def choices_of_embeddings(self) -> Sequence[Choice]:
        """Fitted token vectors, if the vocabulary is small enough to fit them unasked."""
        if self.corpus.tokenizer.size > MOST_FITTED:
            return ()
        return (Choice("init.embeddings", "cooccurrence", "saves some of the first steps"),)

    def card(self) -> Mapping[str, Any]:
        """What the model's card says beside what it says of every model."""
        return {}

    def config(self, settings: Settings) -> BaseConfig:
        """The config of the model: the preset's, with the vocabulary of the corpus."""
        return preset(settings.preset, task=self.task, vocabulary=self.corpus.encoder.size, **settings.model)

    def fit(self, settings: Settings) -> None:  # noqa: B027
        """Fit what is not trained by gradient descent. Called once, when all settings are known."""

    def fit_embeddings(self, settings: Settings, examples: Iterable[Ids]) -> None:
        """Fit the token vectors that a new model begins with to the token ids of examples, if that is asked for."""
        if settings.init.embeddings == "cooccurrence":
            sizes = self.corpus.tokenizer.size, self.config(settings).d_model
            self._embeddings = cooccurrence_embeddings(examples, *sizes, settings.seed)

    def model(self, settings: Settings) -> nn.Module:
        """A new model, with the token vectors that were fitted."""
        config = self.config(settings)
        model: nn.Module = resolve(task_of_config(config.to_dict()).model)(config)
        if self._embeddings is not None:
            with torch.no_grad():
                model.get_parameter("embed.tokens.weight").copy_(self._embeddings)
        return model

    def candidate_sampler(self, settings: Settings) -> CandidateSampler | None:
        """What draws the tokens that the loss compares; None: it compares the whole vocabulary."""
        size, train = settings.loss.candidates, self.corpus.train
        if size is None or self.predicted is None or size >= self.corpus.tokenizer.size:
            return None
        ids, _ = train.gather(self.predicted, np.array(spread(len(train), COUNTED_EXAMPLES)))
        return CandidateSampler(torch.from_numpy(np.bincount(ids, minlength=self.corpus.tokenizer.size)), size)

    @abstractmethod
    def loss(self, model: Any, settings: Settings) -> Callable[[Any], Tensor]:
        """A function from a batch to the sum of the loss over its targets."""

    def after_update(self, model: Any, settings: Settings, step: int) -> None:  # noqa: B027
        """Change the model, after an update, in a way that is no gradient descent. It must depend on nothing but these
        arguments and the corpus, so that every process and a resumed training do the same."""

    @abstractmethod
    def validate(self, model: Any, count: int) -> Validation:
        """Evaluate the model on so many of the validation examples. It must not change the model."""

    def epochs(self, settings: Settings) -> CorpusEpochs:
        """The batches to learn from."""
        if settings.batch.tokens is None:
            raise ValueError("batch.tokens was used before it was chosen")
        options: dict[str, Any] = {"sampling": settings.tokenizer.sampling}
        given = ((name, value) for name, value in settings.augment if value is not None)
        options |= {name: value for name, value in given if name in self.epochs_type.augmentations}
        return self.epochs_type(self.corpus, tokens=settings.batch.tokens, seed=settings.seed, **options)

    def export(self, model: Path, on_event: EventCallback) -> Mapping[str, Any]:
        """Export the best model, certified on validation examples, once: the certificate, or why there is none."""
        if task_named(self.task).certify is None:
            return {}
        repair_export(model)
        if is_exported(model):
            return {}
        probe = [example.inputs for example in self.validation_examples(PROBES)]
        try:
            _, certificate = export_ctranslate2(model, probe=probe, train=self.corpus.train, on_event=on_event)
        except (ConfigError, ParityError, ModuleNotFoundError) as error:
            return {"not_exported": str(error)}
        return {"certificate": certificate}
