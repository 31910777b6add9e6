"""What a page shows of a trace, as JSON: texts, tokens, the search, and arrays as base64 of little-endian float32.

Float32, not less: a page shows numbers to the digit, and a rounded weight could show another one. Attention weights are
sent with the trace; other arrays when the page asks for them, or, in a saved page, as far as there is room.
"""

import base64
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from jumok.lens.glossary import glossary
from jumok.lens.traces import Trace, TracedArray

INLINE = (".weights", ".mask", ".layer_ids", ".layer_probabilities", "class_scores", "class_probabilities", "surprise")
TOP_LOGITS = 10  # tokens of a row of logits; a page never shows the whole vocabulary
LARGEST_SAVED = 3_000_000  # characters of arrays in a saved page; what does not fit is named in it


def document(trace: Trace, *, identity: str = "", everything: bool = False) -> dict[str, Any]:
    """A trace for a page. With `everything`, all arrays that fit are in it, the most looked-at first."""
    shown = [name for name in trace if name not in ("logits", "probabilities")]
    inline = [name for name in shown if name.endswith(INLINE)]
    left_out: list[str] = []
    if everything:
        inline, left_out = _fitting(trace, inline, shown)
    return {
        "id": identity,
        "task": trace.task,
        "text": trace.text,
        "output": trace.output,
        "sides": trace.sides,
        "facts": {name: value for name, value in trace.facts.items() if name != "vocabulary"},
        "search": asdict(trace.search) if trace.search else None,
        "predictions": predictions(trace),
        "arrays": {name: _described(trace, name, name in inline) for name in shown},
        "tokens": _shown_tokens(trace),
        "glossary": glossary(),
        "left_out": left_out,
    }


def predictions(trace: Trace) -> list[dict[str, Any]] | None:
    """For every decoding step the most probable tokens and the one that was chosen; None for a classifier."""
    if "logits" not in trace:
        return None
    probabilities, logits = trace["probabilities"].values, trace["logits"].values
    best = np.argsort(-probabilities, -1, kind="stable")[:, :TOP_LOGITS]
    vocabulary: list[str] = trace.facts["vocabulary"]
    chosen = trace.facts["chosen"]
    return [
        {
            "chosen": _prediction(int(token), vocabulary, logits[row], probabilities[row]),
            "top": [_prediction(int(one), vocabulary, logits[row], probabilities[row]) for one in best[row]],
        }
        for row, token in enumerate(chosen)
    ]


def _shown_tokens(trace: Trace) -> dict[int, str]:
    """The texts of the ids that layers would say."""
    vocabulary = trace.facts["vocabulary"]
    ids = {int(token) for array in trace.find("*.layer_ids").values() for token in array.values.flat}
    return {token: vocabulary[token] for token in sorted(ids)}


def encoded(array: TracedArray) -> bytes:
    """The values of an array as little-endian float32, row by row."""
    return np.ascontiguousarray(array.values, dtype="<f4").tobytes()


def _prediction(token: int, vocabulary: list[str], logits: Any, probabilities: Any) -> dict[str, Any]:
    return {
        "id": token,
        "text": vocabulary[token],
        "logit": float(logits[token]),
        "probability": float(probabilities[token]),
    }


def _described(trace: Trace, name: str, inline: bool) -> dict[str, Any]:
    """Axes and shape of an array; the values too if they are sent at once."""
    described: dict[str, Any] = {"axes": trace.axes_of(name), "shape": trace.shape_of(name)}
    if inline:
        described["data"] = base64.b64encode(encoded(trace[name])).decode("ascii")
    return described


def _fitting(trace: Trace, first: Iterable[str], shown: list[str]) -> tuple[list[str], list[str]]:
    """Which arrays are saved and which are left out: as many as fit, `first` ones first, then small before large."""
    order = [*first, *sorted((name for name in shown if name not in set(first)), key=lambda name: _size(trace, name))]
    room = LARGEST_SAVED
    saved: list[str] = []
    left_out: list[str] = []
    for name in order:
        room -= _size(trace, name)
        (saved if room >= 0 else left_out).append(name)
    return saved, left_out


def _size(trace: Trace, name: str) -> int:
    """Characters of base64."""
    return -(-4 * int(np.prod(trace.shape_of(name))) // 3) * 4
