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

import jumok
from jumok.recipes.certifying import certificate

# What trainings do not use and takes long to import: plots, and PyTorch's parts for shared models.
NOT_USED = ("jumok.cli.demo_", "jumok.lens.", "jumok.training.sharded")


def preload(*more: str) -> None:
    """Import the modules of Jumok too, and more that are named. As in `quick_trainings`, exports will be compared on
    short texts only."""
    certificate.LONGEST_PROBE = 100
    for module in pkgutil.walk_packages(jumok.__path__, "jumok."):
        if not module.name.endswith("__main__") and not module.name.startswith(NOT_USED):
            import_module(module.name)
    for name in more:
        import_module(name)
    gc.freeze()  # so that collecting garbage does not copy in every process what all share
    gc.set_threshold(20_000)  # as in tests/conftest.py
