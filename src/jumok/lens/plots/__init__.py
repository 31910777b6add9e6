"""Plots: functions that return a matplotlib figure. `save_figure(figure, path)` writes it as PNG, SVG or PDF.

    formulas.py     the paper's: draw_positions, draw_waves, draw_products, draw_masks, draw_schedule
    attention.py    of a trace: draw_attention, draw_beta; of a translation: draw_weights, draw_alignment
    results.py      draw_training (curves of runs), draw_confusion (of a classifier)
    patches.py      draw_patches (which patches of a picture speak for a class)
    grid.py         matrices with named rows and columns, and hatched cells; what the others share
    fonts.py        installed fonts that have the letters of a text
    formats.py      endings of file names

Needs the extra `train`, which brings matplotlib.
"""

from typing import Any

_HOMES = {
    **dict.fromkeys(("draw_positions", "draw_waves", "draw_products", "draw_masks", "draw_schedule"), "formulas"),
    **dict.fromkeys(("draw_attention", "draw_beta", "draw_weights", "draw_alignment"), "attention"),
    **dict.fromkeys(("draw_training", "draw_confusion"), "results"),
    "draw_patches": "patches",
    "save_figure": "grid",
}
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    """The public names, imported when they are used: matplotlib and torch may not be installed."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from jumok.errors import MissingExtraError

    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        package = (error.name or "").split(".")[0]
        if package not in ("torch", "jaxtyping", "matplotlib"):
            raise
        raise MissingExtraError(package, "train", "Drawing") from error


def __dir__() -> list[str]:
    return __all__
