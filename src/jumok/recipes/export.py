"""A model in CTranslate2's format, certified, beside its weights. What is compared: `certifying/`, a file a task."""

import inspect
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from jumok.bundle import Bundle, load_bundle
from jumok.data.corpus import read_valid
from jumok.data.examples import Rejections
from jumok.data.store import TokenStore
from jumok.engines.conversion import export
from jumok.engines.loading import open_encoder, task_of
from jumok.engines.opening import exported_model
from jumok.errors import BundleError, ConfigError, InputError
from jumok.recipes.certifying.certificate import Export, Probes
from jumok.tasks import resolve
from jumok.training.records import MODEL, STORE, read_run


def export_ctranslate2(
    model: Path,
    *,
    quantization: str = "float32",
    probe: Probes = (),
    train: TokenStore | None = None,
    on_event: Callable[[Any], None] = lambda _: None,
) -> tuple[Path, dict[str, Any]]:
    """Export the model in `model`, a bundle or a run; returns the directory of the export, and the certificate.

    `probe` are examples to compare on, besides random ones. From `train`, the pairs a translator was trained on, a
    shortlist is made, if it does no harm on the probes. Raises ParityError if the outputs of the exported model differ;
    then nothing is exported, and an earlier export stays. `on_event` gets an event at the start of each phase.
    """
    bundle = load_bundle(model)
    certify = _certify_of(bundle)
    if quantization != "float32" and not probe:
        raise ConfigError(
            f"{quantization} has to be compared on examples. Give `probe=`, or the run directory of the training."
        )
    encoder = open_encoder(bundle)
    certificate: dict[str, Any] = {}

    def certified(directory: Path) -> dict[str, Any]:
        on_event({"event": "certifying"})
        certificate.update(certify(Export(bundle, directory, quantization, encoder, list(probe), train)))
        return certificate

    on_event({"event": "exporting"})
    return export(bundle, quantization, certified), certificate


def _certify_of(bundle: Bundle) -> Callable[[Export], dict[str, Any]]:
    """What certifies the export of a model. ConfigError if CTranslate2 cannot run such models."""
    task = task_of(bundle)
    if task.certify is None:
        raise ConfigError(f"CTranslate2 cannot run a {task.title}; it runs with PyTorch.")
    certify: Callable[[Export], dict[str, Any]] = resolve(task.certify)
    return certify


def is_exported(model: Path) -> bool:
    """Whether there is an undamaged export of these weights."""
    try:
        return exported_model(load_bundle(model)) is not None
    except BundleError:  # a damaged export is made again
        return False


def store_of_run(model: Path) -> TokenStore | None:
    """The examples a model was trained on, if they are still there. `model` is a run, or the model in it."""
    run = _run_of(model)
    record = read_run(run)
    return None if record is None else TokenStore.open(run / STORE / "train", record["fingerprint"])


def probe_of_run(model: Path) -> list[tuple[str, ...]]:
    """The validation examples of a training, if they are still there. `model` is a run, or the model in it."""
    store = _run_of(model) / STORE
    return [example.inputs for example in read_valid(store)] if (store / "valid.jsonl").is_file() else []


def read_probe(
    model: Path, files: Sequence[Path], *, rejections: Rejections | None = None, **reading: Any
) -> list[tuple[Any, ...]]:
    """The examples in files of the kind that the model was trained on; those that cannot be used are added to
    the rejections. `reading` are options for reading, as for the training of this task: `columns`, `sheet` …"""
    bundle = load_bundle(model)
    rejections = rejections or Rejections()
    _certify_of(bundle)
    task = task_of(bundle)
    recipe = resolve(task.recipe)
    for name in reading:
        if name not in inspect.signature(recipe).parameters:
            raise ConfigError(f"`{name}=` has no effect on the examples of a {task.title}. Leave it out.")
    kind = recipe.kind_for(bundle.card, files, **reading)
    examples = [example.inputs for example in kind.read(files, rejections)]
    if not examples:
        raise InputError(f"{files[0]}: holds no {kind.name} to compare on.\n{rejections.render()}".rstrip())
    return examples


def _run_of(model: Path) -> Path:
    """`model`, or its parent if it is the model directory of a run."""
    directory = Path(os.path.abspath(model))
    return directory.parent if directory.name == MODEL and read_run(directory) is None else directory
