"""What each traced value is: its formula, and the line of the model that computes it."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jumok
from jumok.lens.tracing import lens_module
from jumok.tasks import resolve

ROOT = Path(jumok.__file__).parent


@dataclass(frozen=True)
class Meaning:
    """A kind of value, such as `weights`."""

    formula: str
    source: str  # "module:name", where it is computed; a method as "module:Class.method"


_ATTENTION, _LAYERS, _EMBEDDINGS = "jumok.model.attention", "jumok.model.layers", "jumok.model.embeddings"
MEANINGS = {
    "ids": Meaning("id of each token in the vocabulary", "jumok.tokenizer.subwords:Tokenizer.encode"),
    "embedding": Meaning("E[id]", f"{_EMBEDDINGS}:TokenEmbedding.forward"),
    "scaled": Meaning("E[id] · √d_model", f"{_EMBEDDINGS}:TokenEmbedding.forward"),
    "positions": Meaning(
        "PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(…)", "jumok.model.positions:sinusoids"
    ),
    "embedded": Meaning("scaled + positions", "jumok.model.positions:SinusoidalPositions.forward"),
    "q": Meaning("x · W^Q, split into heads", f"{_ATTENTION}:MultiHeadAttention.extend"),
    "k": Meaning("x · W^K, split into heads", f"{_ATTENTION}:MultiHeadAttention.extend"),
    "v": Meaning("x · W^V, split into heads", f"{_ATTENTION}:MultiHeadAttention.extend"),
    "scores": Meaning("q · kᵀ / √d_k", f"{_ATTENTION}:attention_scores"),
    "mask": Meaning("True = may be attended to", "jumok.model.masks:look_ahead_mask"),
    "masked": Meaning("score, or −∞ where the mask is False", f"{_ATTENTION}:attention_weights"),
    "weights": Meaning("softmax(masked) = exp(sᵢ) / Σⱼ exp(sⱼ)", f"{_ATTENTION}:attention_weights"),
    "mixed": Meaning("Σ_keys weight · v", f"{_ATTENTION}:Attend.forward"),
    "merged": Meaning("Concat(head₀ … head_{h−1})", f"{_ATTENTION}:MultiHeadAttention._mix"),
    "hidden": Meaning("activation(x · W₁ + b₁)", f"{_LAYERS}:FeedForward.forward"),
    "output": Meaning("merged · W^O", f"{_ATTENTION}:MultiHeadAttention._mix"),
    "feed_forward.output": Meaning("hidden · W₂ + b₂", f"{_LAYERS}:FeedForward.forward"),
    "stack.output": Meaning(
        "the states of the last layer, normalised if pre-norm", "jumok.model.stacks:Encoder.forward"
    ),
    "residual": Meaning("x + Sublayer(x)", f"{_LAYERS}:AddNorm.forward"),
    "norm": Meaning("γ · (x − μ) / √(σ² + ε) + β", f"{_LAYERS}:AddNorm"),
    "logits": Meaning("state · Eᵀ", f"{_EMBEDDINGS}:TokenEmbedding.logits"),
    "probabilities": Meaning("softmax(logits)", "jumok.engines.torch_models:TorchEngine.next_log_probs"),
    "layer_ids": Meaning("most probable tokens if this layer were the last", "jumok.lens.tracing:Recording.add_logits"),
    "layer_probabilities": Meaning("softmax(Norm(state) · Eᵀ)", "jumok.lens.tracing:Recording.add_logits"),
    "pooled": Meaning("mean or maximum of the states over the tokens", "jumok.model.classifier:pool"),
    "class_scores": Meaning("pooled · W + b (+ n-gram scores)", "jumok.model.classifier:Classifier.forward"),
    "class_probabilities": Meaning("softmax(scores / temperature)", "jumok.metrics.classification:probabilities"),
    "patches": Meaning("the values that each patch sees", "jumok.model.patches:split_into_patches"),
    "picture": Meaning("the pixels, from 0 to 255", "jumok.pictures.decoding:read_picture"),
    "surprise": Meaning("−log₂ P(token)", "jumok.lens.language_model:trace"),
}


LEARNED_POSITIONS = {
    "positions": Meaning("a trained vector for each position", "jumok.model.positions:LearnedPositions")
}
ROTATED = {
    f"self.{letter}": Meaning(
        f"x · W^{letter.upper()}, split into heads; from layer 1 on, rotated by its position",
        "jumok.model.positions:rotate",
    )
    for letter in ("q", "k")
}


@cache
def source_line(reference: str) -> str:
    """File and line of a reference, such as `model/attention.py:24`."""
    module, name = reference.split(":")
    first, *rest = name.split(".")
    found: Any = resolve(f"{module}:{first}")
    for attribute in rest:
        found = getattr(found, attribute)
    found = inspect.unwrap(found)
    path = Path(inspect.getsourcefile(found) or "").relative_to(ROOT)
    return f"{path.as_posix()}:{inspect.getsourcelines(found)[1]}"


def glossary(task: str, config: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The formula and the source line of every kind of value, of a model with this config. `MEANINGS` of a task's
    own file are those that it alone has, or that are something else there; "decoder.ids" are those of the decoder only.
    They have a `kind` of their own: the page has no words for it in other languages."""
    own = LEARNED_POSITIONS if config.get("positions") == "learned" else {}
    own = own | getattr(lens_module(task), "MEANINGS", {})
    shared = MEANINGS | (ROTATED if config.get("rotary") else {})
    found = {kind: _described(meaning) for kind, meaning in shared.items()}
    return found | {kind: {**_described(meaning), "kind": f"{task}.{kind}"} for kind, meaning in own.items()}


def _described(meaning: Meaning) -> dict[str, str]:
    return {"formula": meaning.formula, "source": source_line(meaning.source)}
