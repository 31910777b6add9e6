"""Which weights of a model are matrices from states to states: those that an optimizer may treat as a whole."""

from torch import Tensor, nn

from jumok.model.attention import MultiHeadAttention
from jumok.model.layers import FeedForward

Heights = tuple[int, ...]  # of the matrices stacked in one weight, from top to bottom


def hidden_matrices(model: nn.Module) -> dict[Tensor, Heights]:
    """The trained matrices of attention, feed-forward and convolutions, and the heights of what is stacked in each:
    queries, keys and values are three matrices in one. A convolution's filters are the rows of its matrix.
    Embeddings, class scores, norms and biases are not among them."""
    found: dict[Tensor, Heights] = {}
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            found |= {linear.weight: heights for linear, heights in module.packed()}
        elif isinstance(module, FeedForward):
            found |= {linear.weight: (linear.out_features,) for linear in (module.widen, module.narrow)}
        elif isinstance(module, nn.Conv2d):
            found[module.weight] = (module.out_channels,)
    return {weight: heights for weight, heights in found.items() if weight.requires_grad}
