"""Whole jobs in one call, a file each."""

from jumok.recipes.translator import TrainingResult, train_translator

__all__ = ["TrainingResult", "train_translator"]
