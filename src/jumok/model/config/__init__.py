"""Configs: the sizes and choices of a model, saved beside its weights. One file a task; nothing here needs torch."""

from jumok.model.config.base import BaseConfig, ModelConfig
from jumok.model.config.presets import PRESETS, config_from_dict, preset, preset_table

__all__ = ["PRESETS", "BaseConfig", "ModelConfig", "config_from_dict", "preset", "preset_table"]
