"""What all tasks that learn from a corpus of texts have in common."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from jumok.data.corpus import Corpus, open_corpus, prepare_corpus
from jumok.data.epochs import CorpusEpochs
from jumok.data.examples import Example, ExampleKind
from jumok.engines.certificate import ParityError
from jumok.errors import ConfigError
from jumok.recipes.export import export_ctranslate2, is_exported
from jumok.recipes.request import PathLike
from jumok.tokenizer import Tokenizer
from jumok.training.auto import Choice
from jumok.training.settings import Settings

PROBES = 200  # examples on which the exported model is compared with this one


class CorpusTask(ABC):
    """The part of a `Task` that is about data; a subclass adds the model, its loss and its validation."""

    name: ClassVar[str]
    kind: ExampleKind
    batches: ClassVar[type[CorpusEpochs]]
    corpus: Corpus

    def __init__(self, paths: Sequence[PathLike], valid: Sequence[PathLike] | None) -> None:
        self.paths, self.valid = paths, valid
        self.inputs = [Path(path).name for path in paths]

    def prepare(
        self, store: Path, settings: Settings, *, expected: str | None, tokenizer: Tokenizer | None
    ) -> dict[str, Any]:
        """See `Task`."""
        self.corpus = prepare_corpus(
            self.kind,
            store,
            self.paths,
            valid=self.valid,
            size=settings.tokenizer.size,
            seed=settings.seed,
            expected=expected,
            encoder=tokenizer,
        )
        return self.corpus.facts

    def reopen(self, store: Path, fingerprint: str) -> dict[str, Any]:
        """See `Task`."""
        self.corpus = open_corpus(store, fingerprint)
        return self.corpus.facts

    @property
    def tokenizer(self) -> Tokenizer:
        """The vocabulary in use."""
        return self.corpus.tokenizer

    @property
    def valid_examples(self) -> int:
        """How many examples there are to validate on."""
        return len(self.corpus.valid)

    def measured(self, count: int) -> list[Example]:
        """So many of the validation examples, from all parts of them alike: a file may be sorted."""
        valid = self.corpus.valid
        count = min(count, len(valid))
        return [valid[i * len(valid) // count] for i in range(count)]

    def fixed(self) -> Mapping[str, Any]:
        """Nothing."""
        return {}

    def choices(self, settings: Settings) -> Sequence[Choice]:
        """None."""
        del settings
        return ()

    def card(self) -> Mapping[str, Any]:
        """Nothing beside what the card says of every model."""
        return {}

    def finish(self, model: Path) -> Mapping[str, Any]:
        """Exports it to CTranslate2, certified on examples that were not learned from, unless that is done already."""
        if is_exported(model):
            return {}
        probe = [example.inputs for example in self.measured(PROBES)]
        try:
            _, certificate = export_ctranslate2(model, probe=probe, train=self.corpus.train)
        except (ConfigError, ParityError, ModuleNotFoundError) as error:
            return {"not_exported": str(error)}
        return {"certificate": certificate}

    def epochs(self, settings: Settings) -> CorpusEpochs:
        """The batches to learn from."""
        if settings.batch.tokens is None:
            raise ValueError("batch.tokens was used before it was chosen")
        tokens, sampling = settings.batch.tokens, settings.tokenizer.sampling
        return self.batches(self.corpus, tokens=tokens, seed=settings.seed, sampling=sampling)
