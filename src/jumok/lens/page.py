"""What a page shows of a trace, as JSON: texts, tokens, the search, and arrays as base64 of little-endian float32.

Float32, not less: a page shows numbers to the digit, and a rounded weight could show another one. Attention weights are
sent with the trace; other arrays when the page asks for them, or, in a saved page, as far as there is room.
"""

import base64
import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from jumok.lens.glossary import glossary
from jumok.lens.traces import Trace, TracedArray
from jumok.tokenizer import SPACE_MARK

INLINE = (
    *(".weights", ".mask", ".layer_ids", ".layer_probabilities", "class_scores", "class_probabilities", "surprise"),
    *("picture", "patch_scores", "hidden_scores", "caption_gain"),
)
TOP_LOGITS = 10  # tokens of a row of logits; a page never shows the whole vocabulary


def document(trace: Trace, *, identity: str = "", room: int | None = None) -> dict[str, Any]:
    """A trace for a page. With `room`, the bytes that its JSON may have, it holds all arrays that fit, the most
    looked-at first, and names the others in `left_out`."""
    shown = [name for name in trace if name not in ("logits", "probabilities")]
    inline = [name for name in shown if name.endswith(INLINE)]
    found: dict[str, Any] = {
        "id": identity,
        "task": trace.task,
        "text": trace.text,
        "output": trace.output,
        "sides": {side: _shown_side(trace, side) for side in trace.sides},
        "facts": {name: value for name, value in trace.facts.items() if name != "vocabulary"},
        "search": trace.search.to_dict() if trace.search else None,
        "predictions": predictions(trace),
        "arrays": {name: _described(trace, name) for name in shown},
        "tokens": _shown_tokens(trace),
        "glossary": glossary(trace.task, trace.facts["config"]),
        "unknown": _is_unknown(trace),
        "left_out": [],
    }
    if room is not None:
        described = json.dumps(found, ensure_ascii=False)
        room -= len(described.encode()) + 5 * described.count("<")  # a page has them escaped
        inline, found["left_out"] = _fitting(trace, inline, shown, room - len(json.dumps(shown)))
    for name in inline:
        found["arrays"][name]["data"] = base64.b64encode(encoded(trace[name])).decode("ascii")
    return found


def predictions(trace: Trace) -> list[dict[str, Any]] | None:
    """For every decoding step the most probable tokens and the one that was chosen; None for a classifier."""
    if "logits" not in trace:
        return None
    probabilities, logits = trace["probabilities"].values, trace["logits"].values
    best = torch.from_numpy(probabilities).topk(min(TOP_LOGITS, probabilities.shape[1])).indices.numpy()
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
    vocabulary = trace.facts.get("vocabulary", ())
    ids = {int(token) for array in trace.find("*.layer_ids").values() for token in array.values.flat}
    return {token: vocabulary[token] for token in sorted(ids)}


def _shown_side(trace: Trace, side: str) -> Sequence[str]:
    """The tokens of a side. Each place of a picture is a word of its own."""
    tokens = trace.sides[side]
    return [SPACE_MARK + token for token in tokens] if side in trace.facts.get("places", ()) else tokens


def _is_unknown(trace: Trace) -> bool:
    """Whether the model knows no letter of the text: all its tokens are single bytes, or the token for unknown ones."""
    tokens = {token.strip(SPACE_MARK) for token in trace.sides.get("encoder") or trace.sides["decoder"]}
    return all(re.fullmatch(r"<(unk|0x[0-9A-F]{2})>", token) for token in tokens - {"", "<s>", "</s>"})


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


def _described(trace: Trace, name: str) -> dict[str, Any]:
    """Axes and shape of an array."""
    return {"axes": trace.axes_of(name), "shape": trace.shape_of(name)}


def _fitting(trace: Trace, first: Iterable[str], shown: list[str], room: int) -> tuple[list[str], list[str]]:
    """Which arrays are saved and which are left out: as many as fit, `first` ones first, then small before large."""
    order = [*first, *sorted((name for name in shown if name not in set(first)), key=lambda name: _size(trace, name))]
    saved: list[str] = []
    left_out: list[str] = []
    for name in order:
        room -= _size(trace, name)
        (saved if room >= 0 else left_out).append(name)
    return saved, left_out


def _size(trace: Trace, name: str) -> int:
    """Bytes that the values of an array add to the JSON: base64 and its key."""
    return -(-4 * int(np.prod(trace.shape_of(name))) // 3) * 4 + len(', "data": ""')
