"""How large a model is."""

from torch import nn


def count_parameters(model: nn.Module) -> int:
    """How many numbers the model learns; a shared matrix counts once."""
    return sum(weight.numel() for weight in model.parameters())
