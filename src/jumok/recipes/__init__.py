"""Whole jobs in one call, a file each."""

from jumok.recipes.classifier import train_classifier
from jumok.recipes.job import TrainingResult
from jumok.recipes.language_model import train_lm
from jumok.recipes.translator import train_translator

__all__ = ["TrainingResult", "train_classifier", "train_lm", "train_translator"]
