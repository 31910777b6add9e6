"""A model directory written anew: a runtime-only copy, or the same model with another note."""

import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jumok import files
from jumok.bundle import (
    ALL_WEIGHTS,
    CARD,
    bundle_contents,
    finish_replacement,
    load_bundle,
    replace_directory,
    settled_path,
)
from jumok.engines.opening import DIRECTORY, exported_model
from jumok.errors import BundleError, ConfigError
from jumok.files import REAL_FILES, Contents, FileSystem, UnreadableError
from jumok.tasks import task_of_config

NOTE = "note"  # in the card
_EXPORTED = ("embed.", "encoder.", "decoder.")  # weights that the CTranslate2 model has too, by how their names begin


def copy_for_runtime(model: Path, out: Path, *, note: str | None = None, fs: FileSystem = REAL_FILES) -> None:
    """Write a copy of a model, a bundle or the one of a run, to `out`, which must not exist or be empty: with its
    CTranslate2 export, without the weights that only PyTorch needs. It appears complete or not at all."""
    bundle = load_bundle(model)
    export = exported_model(bundle)
    task = task_of_config(bundle.config)
    if task.conversion is None:
        raise ConfigError(
            f"{model}: a {task.title} runs with PyTorch only. Copy the model directory {bundle.path} itself."
        )
    if export is None:
        raise BundleError(f"{model}: has no CTranslate2 export, which the copy would run. Make it with `jumok export`.")
    if os.path.lexists(out):
        if not out.is_dir() or any(out.iterdir()):
            raise BundleError(f"{out}: exists and is not an empty directory. Choose another one.")
        fs.remove(out)
    files.make_directory_durably(fs, out.parent)
    weights = {name: array for name, array in bundle.weights().items() if not name.startswith(_EXPORTED)}
    encoder = (bundle.encoder_name, bundle.encoder_bytes)
    card = _with_note({**bundle.card, ALL_WEIGHTS: bundle.weights_digest}, note)
    contents = bundle_contents(config=bundle.config, weights=weights, encoder=encoder, card=card)
    size = sum(array.nbytes for array in weights.values()) + len(bundle.encoder_bytes)
    exported = _contents(export)
    size += _size(export)
    files.write_directory_durably(fs, out, contents, bytes_needed=size, directories={DIRECTORY: exported})


def write_note(model: Path, note: str, *, fs: FileSystem = REAL_FILES) -> None:
    """Replace the note in the card of a model; an empty one removes it. Nobody may be training this model."""
    finish_replacement(settled_path(load_bundle(model).path), fs=fs)
    bundle = load_bundle(model)
    export = exported_model(bundle)
    contents = {**_contents(bundle.path), CARD: files.format_json(_with_note(bundle.card, note))}
    size = _size(bundle.path) + (_size(export) if export else 0)
    exported = {DIRECTORY: _contents(export)} if export else {}
    replace_directory(bundle.path, contents, bytes_needed=size, directories=exported, fs=fs)


def _with_note(card: Mapping[str, Any], note: str | None) -> dict[str, Any]:
    kept = {name: value for name, value in card.items() if name != NOTE or note is None}
    return {**kept, NOTE: note} if note else kept


def _contents(directory: Path) -> Contents:
    """The files of a directory with a manifest, each read and verified when it is written."""

    def read(name: str) -> bytes:
        record = records[name]
        try:
            return files.read_verified(directory / name, record, record.size)
        except UnreadableError as error:
            raise BundleError(f"{error.problem} Copy the model directory again, or export the model again.") from error

    records = files.read_manifest(directory)
    return {name: partial(read, name) for name in records}


def _size(directory: Path) -> int:
    return sum(record.size for record in files.read_manifest(directory).values())
