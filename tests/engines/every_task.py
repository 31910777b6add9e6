"""A model of each task, random and exported to CTranslate2."""

from pathlib import Path
from typing import Any

import torch

from jumok.bundle import load_bundle, save_bundle
from jumok.engines.conversion import export
from jumok.model.config import config_from_dict
from jumok.tasks import resolve, task_named
from jumok.tokenizer import Tokenizer

FROZEN = Path(__file__).parents[1] / "frozen" / "format-1"
SIZES = {"d_model": 32, "heads": 4, "d_ff": 48, "dropout": 0.0}
LAYERS: dict[str, dict[str, Any]] = {
    "translator": {"encoder_layers": 1, "decoder_layers": 1},
    "classifier": {"encoder_layers": 1, "classes": 2},
    "language_model": {"decoder_layers": 1},
}
CARD = {"classes": {"a": 1, "b": 1}, "languages": ["en", "ko"], "parameters": 123_456, "metrics": {"bleu": 31.25}}


def write_models(directory: Path) -> None:
    """Write them as DIRECTORY/<task>/model."""
    encoder = ("tokenizer", (FROZEN / "model" / "tokenizer.model").read_bytes())
    vocabulary = Tokenizer.from_bytes(encoder[1]).size
    for task, layers in LAYERS.items():
        torch.manual_seed(3)
        model = resolve(task_named(task).model)(
            config_from_dict({"task": task, "vocabulary": vocabulary} | SIZES | layers)
        )
        weights = {name: (2 * weight).numpy() for name, weight in model.state_dict().items()}
        path = directory / task / "model"
        card = {
            "classes": {"a": 1, "b": 1},
            "languages": ["en", "ko"],
            "parameters": 123_456,
            "metrics": {"bleu": 31.25},
        }
        save_bundle(path, config=model.config.to_dict(), weights=weights, encoder=encoder, card=card)
        export(load_bundle(path), "float32", lambda _: {})
