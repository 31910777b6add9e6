"""Looking into a model: every intermediate value of a text, the search that found its output, and what a change of the
model would change.

    tracing.py          trace(model, text): runs a model on a text and returns its trace
    traces.py           the trace: named arrays with named axes; saved to and loaded from one file
    beams.py            the hypotheses of a search, step by step, each with its fate
    interventions.py    changed(model, …): heads switched off, another β, other positions, inside a `with` block
    decisions.py        attribution(classifier, text): which tokens decided, as parts that add up

Needs the extra `train`: models are looked into with PyTorch.
"""

from typing import Any

__all__ = ["Trace", "attribution", "changed", "load_trace", "mean_outputs", "trace"]

_HOMES = {
    "Trace": "traces",
    "attribution": "decisions",
    "changed": "interventions",
    "load_trace": "traces",
    "mean_outputs": "interventions",
    "trace": "tracing",
}


def __getattr__(name: str) -> Any:
    """The public names, imported when they are used: `import jumok.lens` alone does not import torch."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from jumok.errors import MissingExtraError

    try:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "jaxtyping"):
            raise
        raise MissingExtraError(error.name, "train", "Looking into a model") from error


def __dir__() -> list[str]:
    return __all__
