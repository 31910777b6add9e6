"""Layers compiled by `torch.compile`. That needs a compiler (on a CPU one for C++, on most cards Triton), and time at
the start; whether the training is faster then depends on the device: measure it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from jumok.errors import ConfigError
from jumok.model.devices import device_of
from jumok.model.layers import DecoderLayer, EncoderLayer
from jumok.training.distributed import ProcessGroup

# Of a layer: with and without a mask, rotations, short sentences, one sentence. By default PyTorch compiles 8 at most.
VARIANTS = 16


def compile_layers(model: nn.Module, group: ProcessGroup) -> None:
    """Compile what the layers of a Transformer compute while it is trained. Layers are alike: it is done once for all
    of an encoder or decoder, or twice, if all but the first rotate queries and keys. Validation runs them as they are:
    it uses too many different shapes."""
    layers = [module for module in model.modules() if isinstance(module, (EncoderLayer, DecoderLayer))]
    if not layers:
        raise ConfigError("compile=true has no effect on this model: it has no layers of a Transformer. Leave it out.")
    if group.sharded:
        raise ConfigError("compile=true cannot be combined with `shard=True`. Leave one of them out.")
    _require_compiler(device_of(model))
    torch._dynamo.config.recompile_limit = VARIANTS
    for layer in layers:
        compiled = _while_training(layer, layer.forward, torch.compile(layer.forward, dynamic=True))
        setattr(layer, "forward", compiled)  # noqa: B010 - mypy refuses to assign a method


def _while_training(layer: nn.Module, plain: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *inputs, **options: (compiled if layer.training else plain)(*inputs, **options)


def _require_compiler(device: torch.device) -> None:
    """Compile something small: what is missing is found out before the corpus is trained on."""
    try:
        torch.compile(lambda x: x * 2 + 1)(torch.ones(8, device=device))
    except Exception as error:  # whatever a compiler may fail with
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ConfigError(
            f"compile=true: PyTorch cannot compile for {device} here ({reason}). Leave it out."
        ) from error
