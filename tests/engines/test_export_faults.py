"""An export on a disk that fails, in a process that crashes, with and without the power: the model stays usable, the
next export is complete, and nothing else is left."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from small_translator import small_config

from faulty_files import FaultyFiles, crashes, faulty_everywhere
from jumok.bundle import load_bundle, save_bundle
from jumok.engines.conversion import SHORTLIST, export
from jumok.engines.opening import exported_model, read_certificate
from jumok.errors import BundleError, JumokError
from jumok.files import REAL_FILES
from jumok.model.translator import Translator
from jumok.tokenizer import Tokenizer


def certified(directory: Path) -> dict[str, Any]:
    """As a translator's certificate: it adds a shortlist to the converted model."""
    REAL_FILES.call_writer(lambda: (directory / SHORTLIST).write_text("a shortlist\n"), directory)
    return {"sources": 0}


def exported(model: Path, fs: FaultyFiles, quantization: str = "float32") -> None:
    with faulty_everywhere(fs):
        export(load_bundle(model), quantization, certified)


def names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer) -> Path:
    """A model with an older export, in int8."""
    torch.manual_seed(0)
    config = small_config(tokenizer.size, encoder_layers=1, decoder_layers=1, d_model=8, heads=2, d_ff=8)
    weights = {name: weight.numpy() for name, weight in Translator(config).state_dict().items()}
    model = tmp_path_factory.mktemp("base") / "model"
    encoder = ("tokenizer", tokenizer.to_bytes())
    save_bundle(model, config=config.to_dict(), weights=weights, encoder=encoder, card={"task": "translator"})
    exported(model, FaultyFiles(), "int8")
    return model


def quantization_of(model: Path) -> str:
    """Of the export, which must be there and be complete, as the model itself."""
    directory = exported_model(load_bundle(model))
    assert directory is not None
    return str(read_certificate(directory)["quantization"])


def test_after_a_crash_anywhere_in_an_export_the_model_is_usable_and_the_next_export_complete(
    tmp_path: Path, base: Path
) -> None:
    model = tmp_path / "model"

    def prepare() -> None:
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(base, model)

    found = set()
    for crashed in crashes(lambda fs: exported(model, fs), root=model, prepare=prepare, one_in_turn=True):
        found.add(quantization_of(model))
        exported(model, FaultyFiles())
        assert quantization_of(model) == "float32", crashed
        assert names(model) == names(base), crashed
    assert found == {"int8", "float32"}


def test_a_disk_that_fails_anywhere_in_an_export_leaves_a_usable_model(tmp_path: Path, base: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(base, model)
    counting = FaultyFiles()
    exported(model, counting)
    for number in range(1, counting.fallible + 1):
        error = (errno.ENOSPC, errno.EIO)[number % 2]
        with pytest.raises(JumokError, match=os.strerror(error)) as raised:
            exported(model, FaultyFiles(fails_at=number, error=error))
        assert str(model) in str(raised.value)
        assert quantization_of(model) == "float32"
        assert not [name for name in names(model) if ".tmp-" in name], number
    exported(model, FaultyFiles())
    assert names(model) == names(base)


def test_a_model_that_a_training_replaces_during_its_export_is_named(tmp_path: Path, base: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(base, model)

    def replaced(directory: Path) -> dict[str, Any]:
        bundle = load_bundle(model)
        weights = {name: weight + 1 for name, weight in bundle.weights().items()}
        encoder = ("tokenizer", bundle.encoder_bytes)
        save_bundle(model, config=bundle.config, weights=weights, encoder=encoder, card=bundle.card, fs=FaultyFiles())
        return {"files": len(list(directory.iterdir()))}

    with pytest.raises(BundleError, match="was replaced during the export"):
        export(load_bundle(model), "float32", replaced)
    assert exported_model(load_bundle(model)) is None
    assert not [name for name in names(model) if ".tmp-" in name]
