"""Whole trainings in one call: `train(task, …)`, and a function a task. Importing this package imports no torch."""

from typing import TYPE_CHECKING, Any

from jumok.tasks import resolve

if TYPE_CHECKING:
    from jumok.recipes.classifier import train_classifier
    from jumok.recipes.language_model import train_language_model
    from jumok.recipes.planning import Plan
    from jumok.recipes.training import TrainingResult, plan, train
    from jumok.recipes.translator import train_translator

__all__ = ["Plan", "TrainingResult", "plan", "train", "train_classifier", "train_language_model", "train_translator"]

_MODULES = {
    "Plan": "planning",
    "TrainingResult": "training",
    "plan": "training",
    "train": "training",
    "train_classifier": "classifier",
    "train_language_model": "language_model",
    "train_translator": "translator",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'jumok.recipes' has no attribute {name!r}")
    return resolve(f"jumok.recipes.{_MODULES[name]}:{name}")
