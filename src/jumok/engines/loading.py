"""A model directory → an object that takes and returns texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from jumok.bundle import CONFIG, Bundle, load_bundle
from jumok.engines.batching import FloatMatrix
from jumok.engines.opening import ENGINES
from jumok.errors import BundleError, ConfigError, require_choice
from jumok.tasks import ENCODERS, Task, resolve, task_named


def load(path: str | Path, engine: str = "auto", *, task: str | None = None, **options: Any) -> Any:
    """Load a model directory, or the run directory of a training: the facade of its task, such as `TextTranslator`.
    With `task`, a model of another task is a BundleError that says how to use it. `options` are those of its `open`."""
    require_choice("engine", engine, ("auto", *ENGINES))
    bundle = load_bundle(Path(path))
    found = task_of(bundle)
    if task is not None and found.name != task_named(task).name:
        usage = found.usage.format(run=path, text="TEXT").split("| ")[-1]
        raise BundleError(f"{bundle.path}: is a {found.title}, not a {task_named(task).title}. Use: {usage}")
    return resolve(found.facade).open(bundle, open_encoder(bundle), engine, **options)


@runtime_checkable
class SentenceEncoder(Protocol):
    """A facade whose model has an encoder."""

    def vectors(self, texts: Sequence[str]) -> FloatMatrix:
        """A vector [B, D] of length 1 for every text; zeros for a text without any token."""


def load_sentence_encoder(path: str | Path) -> SentenceEncoder:
    """Load a model that turns sentences into vectors: a translator or a classifier."""
    facade = load(path)
    if not isinstance(facade, SentenceEncoder):
        raise BundleError(f"{path}: has no encoder. Sentence vectors need a translator or a classifier.")
    return facade


def task_of(bundle: Bundle) -> Task:
    """The task that a bundle's config names."""
    try:
        return task_named(bundle.config.get("task", "translator"))
    except ConfigError as error:
        raise BundleError(f"{bundle.path / CONFIG}: {error}") from error


def open_encoder(bundle: Bundle) -> Any:
    """The encoder of a bundle, an `InputEncoder`; it must fit the model's embedding."""
    entry = ENCODERS[bundle.encoder_name]
    encoder = resolve(entry.reference).from_bytes(bundle.encoder_bytes, origin=str(bundle.path / entry.file))
    if encoder.size != bundle.config.get("vocabulary"):
        raise BundleError(
            f"{bundle.path}: its {entry.name} has {encoder.size} tokens, its model {bundle.config.get('vocabulary')}: "
            "they were not trained together. Copy the whole model directory again, or train it again."
        )
    return encoder
