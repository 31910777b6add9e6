"""A bundle → a CTranslate2 model in a directory of it, with a certificate of equal outputs.

    model/ctranslate2/  model.bin  config.json  …vocabulary.json  certificate.json  MANIFEST.json

An older export stays until the new one is complete. Only certifying needs PyTorch. Each task has a `make_spec`.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from jumok import files
from jumok.bundle import Bundle, Weights, finish_replacement, load_bundle, replace_directory
from jumok.engines.loading import open_encoder
from jumok.engines.opening import CERTIFICATE, DIRECTORY
from jumok.errors import BundleError, ConfigError, require_choice
from jumok.files import REAL_FILES
from jumok.model.config import BaseConfig, ModelConfig, config_from_dict
from jumok.tasks import resolve, task_named, task_of_config
from jumok.tokenizer import BOS, PAD, UNK

SHORTLIST = "vmap.txt"
QUANTIZATIONS = ("float32", "int8")
EXPORTED_POSITIONS = 2048  # CTranslate2 fails beyond its table, so longer texts are split or left to PyTorch
NEVER = -1e9  # added to the logits of tokens that no text contains

Certify = Callable[[Path], dict[str, Any]]


def export(bundle: Bundle, quantization: str, certify: Certify) -> Path:
    """Convert the model of a bundle, certify it and write it; returns its directory. `certify` gets a directory with
    the converted model, to which it may add files, and returns the contents of certificate.json, or raises."""
    require_choice("quantization", quantization, QUANTIZATIONS)
    bundle.require_all_weights()
    config = require_exportable(config_from_dict(bundle.config))
    final = bundle.path / DIRECTORY
    repair_export(bundle.path)
    try:
        with files.temporary_directory(REAL_FILES, bundle.path) as directory, files.explained_writing(final):
            spec = _converted(config, bundle.weights(), open_encoder(bundle), quantization)
            REAL_FILES.call_writer(lambda: spec.save(str(directory)), directory)
            certificate = {"weights": bundle.weights_digest, "quantization": quantization, **certify(directory)}
            contents: dict[str, bytes | Callable[[], bytes]]
            contents = {path.name: path.read_bytes for path in sorted(directory.iterdir())}
            contents[CERTIFICATE] = files.format_json(certificate)
            size = sum(path.stat().st_size for path in directory.iterdir())
            _require_unchanged(bundle)
            replace_directory(final, contents, bytes_needed=size)
    except (OSError, RuntimeError):  # the directory of the model was removed with everything in it
        _require_unchanged(bundle)
        raise
    return final


def repair_export(model: Path) -> None:
    """Complete an export that was killed while it was being renamed, and remove what else was left of it."""
    if model.is_dir():
        files.clean_leftovers(REAL_FILES, model)
    finish_replacement(model / DIRECTORY)


def _require_unchanged(bundle: Bundle) -> None:
    if load_bundle(bundle.path).weights_digest != bundle.weights_digest:
        raise BundleError(f"{bundle.path}: was replaced during the export, perhaps by a training. Export it again.")


def require_exportable(config: BaseConfig) -> ModelConfig:
    """The config itself; raises for a model that CTranslate2 cannot run."""
    task = task_of_config(config.to_dict())
    if task.conversion is None or not isinstance(config, ModelConfig):
        raise ConfigError(f"CTranslate2 cannot run a {task.title}; it runs with PyTorch.")
    width = config.d_model // config.heads
    if config.d_model % config.heads or (config.key_width, config.value_width) != (width, width):
        raise ConfigError(
            f"CTranslate2 needs heads of width d_model / heads, this model has d_k={config.key_width} and "
            f'd_v={config.value_width}. Run it with `engine="torch"`.'
        )
    return config


def _converted(config: ModelConfig, weights: Weights, tokenizer: Any, quantization: str) -> Any:
    """The CTranslate2 specification of a model, filled."""
    spec = resolve(task_named(config.task).conversion or "")(config, weights, tokenizer.pieces(range(tokenizer.size)))
    spec.config.layer_norm_epsilon = 1e-6
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    return spec


def layer_options(config: ModelConfig) -> dict[str, Any]:
    """Keyword arguments that all CTranslate2 specifications take."""
    from ctranslate2.specs import common_spec

    activations = {"relu": common_spec.Activation.RELU, "gelu": common_spec.Activation.GELU}
    return {"pre_norm": config.norm == "pre", "activation": activations[config.activation]}


def fill_encoder(spec: Any, config: ModelConfig, weights: Weights) -> None:
    """Write the embedding and all encoder layers into a CTranslate2 specification."""
    spec.embeddings[0].weight = weights["embed.tokens.weight"]
    _fill_stack(spec, config, weights, "encoder", "attention", "add_norm_2")


def fill_decoder(spec: Any, config: ModelConfig, weights: Weights, *, cross: bool) -> None:
    """Write the embedding and all decoder layers into a CTranslate2 specification; `cross`: with cross-attention."""
    embedding = weights["embed.tokens.weight"]
    spec.embeddings.weight = spec.projection.weight = embedding
    spec.projection.bias = np.zeros(len(embedding), np.float32)
    spec.projection.bias[[PAD, UNK, BOS]] = NEVER
    _fill_stack(spec, config, weights, "decoder", "self_attention", "add_norm_3")
    for number, layer in enumerate(spec.layer if cross else ()):
        name = f"decoder.layers.{number}"
        for linear, part in zip(layer.attention.linear, ("query", "key_value", "output"), strict=True):
            _linear(linear, weights, f"{name}.cross_attention.{part}")
        _norm(layer.attention.layer_norm, weights, f"{name}.add_norm_2.norm")


def _fill_stack(spec: Any, config: ModelConfig, weights: Weights, stack: str, attention: str, last_norm: str) -> None:
    """Everything but cross-attention; `attention` is the name of self-attention in a layer of this stack."""
    spec.scale_embeddings = True
    spec.position_encodings.encodings = _positions(config, weights)
    if config.norm == "pre":
        _norm(spec.layer_norm, weights, f"{stack}.norm")
    for number, layer in enumerate(spec.layer):
        name = f"{stack}.layers.{number}"
        if config.rotary and number:
            layer.self_attention = _rotary_attention(config.key_width)
        _linear(layer.self_attention.linear[0], weights, f"{name}.{attention}.query_key_value")
        _linear(layer.self_attention.linear[1], weights, f"{name}.{attention}.output")
        _norm(layer.self_attention.layer_norm, weights, f"{name}.add_norm_1.norm")
        _linear(layer.ffn.linear_0, weights, f"{name}.feed_forward.widen")
        _linear(layer.ffn.linear_1, weights, f"{name}.feed_forward.narrow")
        _norm(layer.ffn.layer_norm, weights, f"{name}.{last_norm}.norm")


def longest_text(config: ModelConfig) -> int:
    """The most tokens of a text of the exported model, `</s>` not counted."""
    return (config.max_length if config.positions == "learned" else EXPORTED_POSITIONS) - 1


def _positions(config: ModelConfig, weights: Weights) -> npt.NDArray[np.float32]:
    """The table of positions: CTranslate2's own sinusoids are not the paper's."""
    if config.positions == "learned":
        return weights["embed.positions.weight"]
    position = np.arange(EXPORTED_POSITIONS, dtype=np.float64)[:, None]
    angle = position * 10000.0 ** (-np.arange(0, config.d_model, 2, dtype=np.float64) / config.d_model)
    return np.stack((np.sin(angle), np.cos(angle)), -1).reshape(EXPORTED_POSITIONS, -1).astype(np.float32)


def _rotary_attention(width: int) -> Any:
    """The specification of a self-attention that rotates its queries and keys, `width` wide, as `rotate` does."""
    from ctranslate2.specs import attention_spec

    return attention_spec.MultiHeadAttentionSpec(self_attention=True, rotary_dim=width, rotary_interleave=False)


def _linear(spec: Any, weights: Weights, name: str) -> None:
    spec.weight = weights[f"{name}.weight"]
    if f"{name}.bias" in weights:
        spec.bias = weights[f"{name}.bias"]


def _norm(spec: Any, weights: Weights, name: str) -> None:
    spec.gamma, spec.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]
