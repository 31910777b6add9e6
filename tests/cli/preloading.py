"""Imports everything that a training uses. Processes that are forked afterwards start at once: importing PyTorch alone
takes longer than their trainings, and so does what an optimizer, an export and a validation import."""

import gc
import pkgutil
from importlib import import_module

import ctranslate2.specs  # noqa: F401  only to have it, as the others with this mark
import rich.live
import rich.panel
import rich.table  # noqa: F401
import sacrebleu  # noqa: F401
import torch._dynamo  # noqa: F401

import jumok
from jumok.recipes.certifying import certificate


def preload() -> None:
    """Import every module of Jumok too. As in `quick_trainings`, exports will be compared on short texts only."""
    certificate.LONGEST_PROBE = 100
    for module in pkgutil.walk_packages(jumok.__path__, "jumok."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    gc.freeze()  # so that collecting garbage does not copy in every process what all share
