"""A model directory → an object that takes and returns texts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Unpack, overload, runtime_checkable

from jumok.bundle import CONFIG, Bundle, load_bundle
from jumok.engines.batching import FloatMatrix
from jumok.engines.facade import Facade, require_load_options
from jumok.engines.opening import ENGINES, Hardware
from jumok.errors import ArgumentError, BundleError, ConfigError, require_choice
from jumok.tasks import ENCODERS, Task, resolve, task_named, task_of_config

if TYPE_CHECKING:
    from jumok.engines.classifier.text import TextClassifier
    from jumok.engines.image_classifier.pictures import PictureClassifier
    from jumok.engines.language_model.text import TextLanguageModel
    from jumok.engines.painter.text import TextPainter
    from jumok.engines.translator.text import TextTranslator


class WrongTaskError(BundleError):
    """A model of another task than was asked for. `task` is its own."""

    def __init__(self, path: Path, task: Task, wanted: Task) -> None:
        super().__init__(f"{path}: is a {task.title}, not a {wanted.title}.")
        self.task = task


@overload
def load(
    path: str | Path,
    engine: str = "auto",
    *,
    task: Literal["translator"],
    fast: bool = False,
    **hardware: Unpack[Hardware],
) -> TextTranslator: ...
@overload
def load(
    path: str | Path,
    engine: str = "auto",
    *,
    task: Literal["classifier"],
    **hardware: Unpack[Hardware],
) -> TextClassifier: ...
@overload
def load(
    path: str | Path,
    engine: str = "auto",
    *,
    task: Literal["language_model"],
    **hardware: Unpack[Hardware],
) -> TextLanguageModel: ...
@overload
def load(
    path: str | Path,
    engine: str = "auto",
    *,
    task: Literal["image_classifier"],
    **hardware: Unpack[Hardware],
) -> PictureClassifier: ...
@overload
def load(
    path: str | Path,
    engine: str = "auto",
    *,
    task: Literal["painter"],
    **hardware: Unpack[Hardware],
) -> TextPainter: ...
@overload
def load(path: str | Path, engine: str = "auto", *, task: str | None = None, **options: Any) -> Any: ...
def load(path: str | Path, engine: str = "auto", *, task: str | None = None, **options: Any) -> Any:
    """Load a model directory, or the run directory of a training.

    Returns a `TextTranslator` (with `translate`), a `TextClassifier` (`classify`), a `PictureClassifier` (`classify`),
    a `TextLanguageModel` (`generate`) or a `TextPainter` (`paint`). With `task="translator"`, "classifier",
    "image_classifier", "language_model" or "painter" a type checker knows which, and a model of another task is an
    error. Options:
        engine="auto"  "ctranslate2", "torch", or "auto": CTranslate2 if the model was exported
        threads=None   CPU threads; None: as many as the cores that this process may use
        device="auto"  "cpu", "cuda", "cuda:1", "mps", "xpu"; "auto": a card that the engine can use, else the CPU
        fast=False     translators only: faster, but output may differ slightly and depend on other lines of the batch
    """
    if not isinstance(path, str | Path):
        raise ArgumentError(f"path is {path!r}; it must be a directory, as str or Path.")
    require_choice("engine", engine, ("auto", *ENGINES))
    bundle = load_bundle(Path(path))
    found = task_of(bundle)
    if task is not None and found.name != task_named(task).name:
        raise WrongTaskError(bundle.path, found, task_named(task))
    facade = resolve(found.facade)
    require_load_options(facade, options)
    opened = facade.open(bundle, open_encoder(bundle), engine, **options)
    if isinstance(opened, Facade):
        opened.reload = partial(load, bundle.path.absolute(), engine, task=found.name, **options)
    return opened


def load_classifier(path: str | Path, engine: str = "auto", **options: Any) -> Any:
    """Load a classifier, whatever it classifies. Options: those of `load`."""
    found = task_of(load_bundle(Path(path)))
    if found.classify is None:
        raise WrongTaskError(Path(path), found, task_named("classifier"))
    return load(path, engine, **options)


@runtime_checkable
class SentenceEncoder(Protocol):
    """A facade whose model has an encoder."""

    def vectors(self, texts: Sequence[str]) -> FloatMatrix:
        """A vector [B, D] of length 1 for every text; zeros for a text without any token."""


def load_sentence_encoder(path: str | Path, **options: Any) -> SentenceEncoder:
    """Load a model that turns sentences into vectors: a translator or a classifier. Options: those of `load`."""
    facade = load(path, **options)
    if not isinstance(facade, SentenceEncoder):
        title = task_named(facade.task).title
        raise BundleError(f"{path}: is a {title}. Sentence vectors need a translator or a classifier of texts.")
    return facade


def task_of(bundle: Bundle) -> Task:
    """The task that a bundle's config names, with the parts of its architecture."""
    try:
        return task_of_config(bundle.config)
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
