"""The trace of a text: every intermediate value by a dotted name, with named axes and the tokens along them.

Rows are queries and columns keys, everywhere. Layers and heads are counted from 0. Names are those of
`jumok.model.recording`, and of attention also `scores` (q kᵀ / √d_k), `masked` (−∞ where hidden) and `weights` (their
softmax), which are computed from the recorded q, k and mask when they are asked for, by the model's own function.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as write_tensors

from jumok.errors import InputError, UnreadableError, did_you_mean
from jumok.files import REAL_FILES, read_bounded, replace_file_durably
from jumok.lens.beams import Search, search_from_dict
from jumok.model.attention import attention_scores, attention_weights

Array = npt.NDArray[Any]
FORMAT = 1
LARGEST_FILE = 1 << 31  # bytes
DERIVED = ("scores", "masked", "weights")  # of an attention, from q, k and mask
_HEADS = {"q": ("query", "d_k"), "k": ("key", "d_k"), "v": ("key", "d_v"), "mixed": ("query", "d_v")}
_AXES: dict[str, tuple[str, ...]] = {
    **{name: ("head", *rest) for name, rest in _HEADS.items()},
    **dict.fromkeys(DERIVED, ("head", "query", "key")),
    "mask": ("query", "key"),
    "ids": ("position",),
    "merged": ("position", "heads · d_v"),
    "hidden": ("position", "d_ff"),
    "logits": ("position", "token"),
    "probabilities": ("position", "token"),
    "layer_ids": ("position", "rank"),
    "layer_probabilities": ("position", "rank"),
    "pooled": ("d_model",),
    "class_scores": ("class",),
    "patch_scores": ("position", "class"),
    "hidden_scores": ("position", "class"),
    "caption_gain": ("position",),
    "picture": ("row", "column", "channel"),
    "patches": ("position", "value"),
    "class_probabilities": ("class",),
    "surprise": ("position",),
}


@dataclass(frozen=True)
class TracedArray:
    """A recorded value. It is usable as a NumPy array; `axes` names its axes, `tokens` what stands along them."""

    name: str
    values: Array
    axes: tuple[str, ...]
    tokens: Mapping[str, tuple[str, ...]]  # axis → the token, class or head at each index; not for axes of width

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self.values.shape

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __getitem__(self, index: Any) -> Any:
        return self.values[index]

    def __repr__(self) -> str:
        axes = ", ".join(f"{axis}={length}" for axis, length in zip(self.axes, self.shape, strict=True))
        return f"{self.name} [{axes}]"


@dataclass
class Trace:
    """Everything that a model computed for a text. `trace["encoder.0.self.weights"]`, `trace.find("*.weights")`."""

    task: str
    text: str  # what went in
    output: str  # what came out: a translation, a class, the text itself for a language model
    tensors: dict[str, Array]  # recorded, without the batch axis
    sides: dict[str, tuple[str, ...]]  # the tokens of the `encoder` and the `decoder`; of the output: `chosen`
    search: Search | None = None  # of a translator, unless its target was given
    facts: dict[str, Any] = field(default_factory=dict)  # of the model: sizes, languages, classes, path

    def __getitem__(self, name: str) -> TracedArray:
        if name not in self.tensors and name not in self._derived():
            raise InputError(f'The trace has no "{name}".{did_you_mean(name, list(self))} `tree()` shows all names.')
        values = self.tensors[name] if name in self.tensors else self._derive(name)
        axes = self.axes_of(name)
        return TracedArray(name, values, axes, {axis: tokens for axis in axes if (tokens := self._along(name, axis))})

    def __iter__(self) -> Iterator[str]:
        return iter(sorted([*self.tensors, *self._derived()], key=_in_order))

    def __len__(self) -> int:
        return len(self.tensors) + len(self._derived())

    def __contains__(self, name: object) -> bool:
        return name in self.tensors or name in self._derived()

    def find(self, pattern: str) -> dict[str, TracedArray]:
        """The values whose names match, for example `encoder.*.weights`, in the order of the forward pass."""
        return {name: self[name] for name in self if fnmatchcase(name, pattern)}

    def at(self, step: int) -> "Trace":
        """The trace of decoding step `step`, counted from 0: as if the output ended there. Its last row of the decoder
        is what that step computed: later tokens are hidden from earlier ones, so the values are the same."""
        length = len(self.sides["decoder"]) if "decoder" in self.sides else 0
        if not 0 <= step < length:
            raise InputError(f"Step {step} is not among the {length} decoding steps of this trace, counted from 0.")
        cut = {name: self._until(name, values, step + 1) for name, values in self.tensors.items()}
        sides = {side: tokens if side == "encoder" else tokens[: step + 1] for side, tokens in self.sides.items()}
        return Trace(self.task, self.text, self.output, cut, sides, self.search, {**self.facts, "step": step})

    def tree(self, pattern: str = "*") -> None:
        """Print names and shapes."""
        print(self.to_tree(pattern))

    def to_tree(self, pattern: str = "*") -> str:
        """Names and shapes, one a line."""
        names = [name for name in self if fnmatchcase(name, pattern)]
        width = max(map(len, names), default=0)
        lines = []
        for name in names:
            shape = zip(self.axes_of(name), self.shape_of(name), strict=True)
            lines.append(f"{name:{width}}  {' × '.join(f'{axis} {length}' for axis, length in shape)}")
        return "\n".join(lines)

    def save(self, path: str | Path) -> None:
        """Write the trace to one file, in the safetensors format."""
        described = {
            "format": FORMAT,
            **{name: getattr(self, name) for name in ("task", "text", "output", "sides", "facts")},
            "search": self.search.to_dict() if self.search else None,
        }
        data = write_tensors(
            {name: np.ascontiguousarray(values) for name, values in self.tensors.items()},
            {"jumok.trace": json.dumps(described, ensure_ascii=False)},
        )
        replace_file_durably(REAL_FILES, Path(path), data)

    def __repr__(self) -> str:
        return f'<Trace of a {self.task}: "{self.text}" → "{self.output}", {len(self)} values; .tree() lists them>'

    def _repr_html_(self) -> str:
        """In a notebook, the explorer's page of this trace, in a frame; it shows Transformers only."""
        if "architecture" in self.facts.get("config", {}):
            return f"<pre>{escape(repr(self))}</pre>"
        from jumok.lens.saved import framed_page

        return framed_page(self)

    def _derived(self) -> list[str]:
        queries = [name.removesuffix(".q") for name in self.tensors if name.endswith(".q")]
        queries = [name for name in queries if f"{name}.weights" not in self.tensors]  # of additive attention
        probable = ["probabilities"] if "logits" in self.tensors else []
        return [f"{attention}.{part}" for attention in queries for part in DERIVED] + probable

    def _derive(self, name: str) -> Array:
        if name == "probabilities":
            logits = torch.from_numpy(self.tensors["logits"]).clone()
            logits[:, self.facts["never_written"]] = -torch.inf
            return logits.softmax(-1).numpy()
        attention, part = name.rsplit(".", 1)
        q, k = (torch.from_numpy(self.tensors[f"{attention}.{which}"]) for which in ("q", "k"))
        seen = self.tensors.get(f"{attention}.mask")
        mask = None if seen is None else torch.from_numpy(seen)[..., None, :, :]
        if part == "weights":
            hard = attention in (self.facts.get("changes") or {}).get("hard", ())
            return attention_weights(q, k, mask, hard=hard).numpy()
        scores = attention_scores(q, k)
        return (scores if mask is None or part == "scores" else scores.masked_fill(~mask, -torch.inf)).numpy()

    def shape_of(self, name: str) -> tuple[int, ...]:
        """The shape of an array, without computing it."""
        if name in self.tensors:
            return self.tensors[name].shape
        if name == "probabilities":
            return self.tensors["logits"].shape
        attention = name.rsplit(".", 1)[0]
        q, k = self.tensors[f"{attention}.q"], self.tensors[f"{attention}.k"]
        return (*q.shape[:-1], k.shape[-2])

    def axes_of(self, name: str) -> tuple[str, ...]:
        """The names of an array's axes, without computing it."""
        axes = _AXES.get(name.rsplit(".", 1)[-1], ("position", "d_model"))
        return axes if len(self.shape_of(name)) == len(axes) else ("window", *axes)

    def _along(self, name: str, axis: str) -> tuple[str, ...]:
        """The tokens along an axis. In cross-attention keys are the encoder's, and queries the decoder's."""
        if axis == "class":
            return tuple(self.facts["classes"])
        if axis not in ("position", "query", "key"):
            return ()
        side = name.split(".")[0] if "." in name else "decoder" if "decoder" in self.sides else "encoder"
        return self.sides["encoder"] if axis == "key" and ".cross." in name else self.sides[side]

    def _until(self, name: str, values: Array, length: int) -> Array:
        """The values of the first `length` positions of the decoder."""
        if name.startswith("encoder."):
            return values
        for axis, along in enumerate(self.axes_of(name)):
            own = along in ("position", "query") or (along == "key" and ".cross." not in name)
            values = values.take(range(length), axis) if own else values
        return values


def load_trace(path: str | Path) -> Trace:
    """A trace that `Trace.save` wrote."""
    data = read_bounded(Path(path), LARGEST_FILE)
    try:
        described = json.loads(_metadata(data)["jumok.trace"])
        tensors = read_tensors(data)
    except (SafetensorError, KeyError, ValueError, UnicodeDecodeError) as error:
        raise UnreadableError(Path(path), f"is not a trace written by `Trace.save` ({error})") from error
    if described.pop("format", None) != FORMAT:
        raise UnreadableError(Path(path), "is a trace of another version of Jumok", "Make it again.")
    search = search_from_dict(described.pop("search"))
    described["sides"] = {side: tuple(tokens) for side, tokens in described["sides"].items()}
    return Trace(**described, tensors=tensors, search=search)


def _metadata(data: bytes) -> dict[str, str]:
    """The free text of a safetensors file: 8 bytes of length, then JSON."""
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    found: dict[str, str] = header["__metadata__"]
    return found


def _in_order(name: str) -> tuple[int, int, int, int, str]:
    """Sorts names as the forward pass computes them."""
    stacks = ("encoder", "decoder")
    parts = name.split(".")
    stack = stacks.index(parts[0]) if parts[0] in stacks else 2
    inputs = ("patches", "ids", "embedding", "scaled", "positions", "embedded")
    inner = ("norm", "q", "k", "v", "scores", "mask", "masked", "weights", "mixed", "merged", "hidden", "output")
    results = ("logits", "probabilities", "surprise", "pooled", "class_scores", "class_probabilities")
    last = (*inputs, *inner, "residual", "layer_ids", "layer_probabilities", *results)
    layer = int(parts[1]) if len(parts) > 2 and parts[1].isdigit() else -1 if parts[-1] in inputs else 1_000
    part = ("self", "cross", "feed_forward").index(parts[2]) if len(parts) == 4 else 3
    return stack, layer, part, last.index(parts[-1]) if parts[-1] in last else 99, name
