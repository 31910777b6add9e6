"""Running a model on a text while its values are recorded. The output is the one it gives without a trace."""

from collections.abc import Sequence
from contextvars import ContextVar
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from jumok.engines.torch_models import NEVER_WRITTEN, TorchEngine
from jumok.errors import ConfigError, InputError
from jumok.lens.traces import Array, Trace
from jumok.model.config import ModelConfig
from jumok.model.recording import Recorded, record
from jumok.tasks import resolve, task_named

TOP = 10  # tokens that a layer would say
CHANGES: ContextVar[dict[str, Any] | None] = ContextVar("changes", default=None)  # those of `changed`, while it holds


def trace(model: Any, text: Any, **options: Any) -> Trace:
    """The trace of a text through a loaded model, `jumok.load(…)`: a translator, a classifier, a language model;
    of a caption, or of a picture.

    A translator also takes `target="…"` (forced instead of searched for), `prefix="…"` (the output begins with it),
    `replace={position: token}` (other source tokens), and the options of `DecodingOptions`; a language model takes
    `continue_by=`, the number of tokens to generate first. A caption takes `codes=` of a given picture, or the options
    of `jumok paint`; a picture takes `hide=True`, to run with each of its patches hidden too.
    """
    found: Trace = resolve(_lens(model.task))(model, text, **options)
    return found


def lens_module(task: str) -> ModuleType:
    """The file of `lens/` that belongs to a task, with its `trace` and whatever else differs from task to task."""
    return import_module(_lens(task).split(":")[0])


def _lens(task: str) -> str:
    """The reference to the lens of a task."""
    entry = task_named(task)
    if entry.lens is None:
        advice = f" It is a part of a {entry.part_of}: give the run directory of that." if entry.part_of else ""
        raise ConfigError(f"A {entry.title} cannot be looked into.{advice}")
    return entry.lens


def torch_engine(model: Any) -> Any:
    """The PyTorch engine of a loaded model, which may translate with CTranslate2."""
    engine = model.engine
    return engine if isinstance(engine, TorchEngine) else engine.fallback()


class Recording:
    """The values of one forward pass of a batch of one, as NumPy arrays without the batch axis."""

    def __init__(self, engine: Any) -> None:
        self.engine = engine
        self.tensors: dict[str, Array] = {}

    def run(self, forward: Any, longest: int) -> Tensor:
        """Runs a function of the model in evaluation mode and keeps everything it computes."""
        with self.engine.evaluating(longest), record(self.engine.model) as recorded:
            result: Tensor = forward()
        self.tensors |= {name: _to_array(name, values) for name, values in self._complete(recorded).items()}
        return result

    def add_logits(self, states: Tensor) -> None:
        """The logits of the states [1, T, D], and what every decoder layer would already say."""
        model = self.engine.model
        with torch.inference_mode():
            self.tensors["logits"] = _to_array("logits", model.logits(states))
            # Only the layers of a Transformer add to one sum, which the output layer can read before the last of them.
            for depth in range(len(model.decoder.layers) if isinstance(model.config, ModelConfig) else 0):
                above = "residual" if model.config.norm == "pre" else "norm"
                layer = torch.from_numpy(self.tensors[f"decoder.{depth}.feed_forward.{above}"]).to(states)
                log_probs = self.engine.next_log_probs(model.decoder.norm(layer))
                most = log_probs.topk(min(TOP, log_probs.shape[1]))
                self.tensors[f"decoder.{depth}.layer_ids"] = most.indices.cpu().numpy()
                self.tensors[f"decoder.{depth}.layer_probabilities"] = most.values.exp().cpu().numpy()

    def _complete(self, recorded: Recorded) -> Recorded:
        """With masks as large as the weights: the layers let them broadcast."""
        for name in [name for name in recorded if name.endswith(".mask")]:
            attention = name.removesuffix(".mask")
            q, k = recorded[f"{attention}.q"], recorded[f"{attention}.k"]
            recorded[name] = recorded[name].expand(q.shape[0], 1, q.shape[2], k.shape[2])[:, 0]
        return recorded


def facts(model: Any, engine: Any, chosen: Sequence[int] = ()) -> dict[str, Any]:
    """What a trace says about the model, and the ids that it wrote."""
    tokenizer = model.tokenizer
    return {
        "chosen": list(chosen),
        "vocabulary": tokenizer.pieces(range(tokenizer.size)),
        "config": engine.model.config.to_dict(),
        "languages": model.card.get("languages"),
        "classes": list(getattr(model, "classes", [])),
        "never_written": NEVER_WRITTEN,
        "changes": CHANGES.get(),
    }


def require_tokens(ids: Sequence[int], text: str) -> None:
    """Raise if there is nothing to look at."""
    if not ids:
        raise InputError(f'"{text}" has no tokens: there is nothing to trace. Give a text with at least one character.')


def _to_array(name: str, values: Tensor) -> Array:
    """A copy without the batch axis, which has length 1; a text of several windows keeps it."""
    array: Array = np.ascontiguousarray(values.detach().cpu().numpy())
    return array[0].copy() if array.shape[0] == 1 and not name.endswith("pooled") else array.copy()
