"""Whole jobs in one call, a file each."""

from jumok.recipes.job import TrainingResult
from jumok.recipes.translator import train_translator

__all__ = ["TrainingResult", "train_translator"]
