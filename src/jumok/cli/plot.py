"""jumok plot: pictures of the paper's formulas, of a model's attention, and of results."""

from jumok.cli.lazy_group import LazyGroup

_KINDS = {
    **dict.fromkeys(("positions", "masks", "schedule"), "plot_formulas"),
    **dict.fromkeys(("attention", "beta", "alignment"), "plot_attention"),
    **dict.fromkeys(("training", "confusion"), "plot_results"),
    "patches": "plot_patches",
}
command = LazyGroup(
    lambda: {kind: f"jumok.cli.{file}:{kind}" for kind, file in _KINDS.items()},
    name="plot",
    help="Draw a picture: PNG, SVG or PDF.",
)
