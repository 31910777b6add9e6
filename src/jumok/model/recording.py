"""Listens to a model while it runs and keeps every intermediate value under a dotted name, such as `decoder.2.cross.q`.

The layers know nothing of it: forward hooks are registered for the time of a `with` block and removed after it.
Layers are counted from 0. Names of a sublayer (`encoder.0.self`, `decoder.0.self`, `decoder.0.cross`,
`encoder.0.feed_forward` …) and what each one has:

    q, k, v      queries, keys and values, split into heads          attention only, as mask, mixed and merged
                 (queries and keys as they are compared: rotated, if the model does that)
    mask         True = may be attended to; missing if nothing is hidden
    mixed        weights · v of every head
    merged       the heads side by side, the input of W^O
    hidden       the inner layer after its activation                 feed-forward only
    output       the output of the sublayer
    residual     its input plus its output
    norm         the output of its LayerNorm: behind the sum (post-norm) or in front of the sublayer (pre-norm)

Of a stack: `ids`, `embedding` (rows of the matrix), `scaled` (times √d_model), `positions`, `embedded` (their sum) and
`output`; of pictures `patches` (what each sees) instead of `ids`, and no `scaled`. Attention weights are not among
them, because fused attention never forms them: `attention_weights(q, k, mask)` computes them. Axes are those of the
layers: batch first.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn

from jumok.model.attention import MultiHeadAttention
from jumok.model.embeddings import Embedder, TokenEmbedding
from jumok.model.layers import AddNorm, FeedForward
from jumok.model.patches import PatchEmbedder

Recorded = dict[str, Tensor]


@contextmanager
def record(model: nn.Module, only: str = "") -> Iterator[Recorded]:
    """A dictionary of the values of the last forward pass inside the `with` block. Values are not copied. `only` names
    a sublayer, such as `decoder.2.cross`, if no others are wanted."""
    recorded: Recorded = {}
    handles: list[Any] = []

    def on_output(module: nn.Module, keep: Callable[[tuple[Any, ...], Any], None]) -> None:
        handles.append(module.register_forward_hook(lambda _module, inputs, output: keep(inputs, output)))

    if not only:
        _listen_to_embedder(model, recorded, on_output, handles)
        for name in ("encoder", "decoder"):
            if hasattr(model, name):
                on_output(getattr(model, name), _keep_states(recorded, f"{name}.output"))
    for name, sublayer, add_norm in sublayers(model):
        if only in ("", name):
            _listen_to_sublayer(name, sublayer, add_norm, recorded, on_output)
    try:
        yield recorded
    finally:
        for handle in handles:
            handle.remove()


def sublayers(model: nn.Module) -> Iterator[tuple[str, nn.Module, AddNorm | None]]:
    """Every sublayer of a model in the order in which they run: name, module, and the Add & Norm around it."""
    for name in ("encoder", "decoder"):
        stack: Any = getattr(model, name, None)
        for part, sublayer, add_norm in stack.sublayers() if stack is not None else ():
            yield f"{name}.{part}", sublayer, add_norm


def attentions(model: nn.Module) -> dict[str, MultiHeadAttention]:
    """Every attention of a model by its name: `encoder.0.self`, `decoder.0.cross` …"""
    return {name: sublayer for name, sublayer, _ in sublayers(model) if isinstance(sublayer, MultiHeadAttention)}


def _listen_to_embedder(model: nn.Module, recorded: Recorded, on_output: Any, handles: list[Any]) -> None:
    """Both stacks share the embedder, unless the decoder has tokens of its own: what it computed is named when the
    stack that it was for starts."""
    embed: Any = model.embed
    assert isinstance(embed, Embedder | PatchEmbedder)
    pending: Recorded = {}

    def on_tokens(tokens: Any) -> Callable[[tuple[Any, ...], Tensor], None]:
        def keep(inputs: tuple[Any, ...], output: Tensor) -> None:
            if isinstance(embed, PatchEmbedder):
                pending.update(patches=inputs[0], embedding=output)
            else:
                pending.update(ids=inputs[0], embedding=tokens.weight[inputs[0]], scaled=output)

        return keep

    def on_positions(positions: Any) -> Callable[[tuple[Any, ...], Tensor], None]:
        asking = False

        def keep(inputs: tuple[Any, ...], output: Tensor) -> None:
            nonlocal asking
            if asking:  # our own question below
                return
            asking = True
            try:  # as the model uses it, with what somebody changed about it
                table = positions(inputs[0].new_zeros(1, *inputs[0].shape[1:]), *inputs[1:])
            finally:
                asking = False
            pending.update(positions=table, embedded=output)

        return keep

    def on_start(name: str) -> Callable[..., None]:
        def take(*_: Any) -> None:
            recorded.update({f"{name}.{key}": value for key, value in pending.items()})
            pending.clear()

        return take

    other: Any = [model] if isinstance(getattr(model, "tokens", None), TokenEmbedding) else []
    for owner in (embed, *other):
        on_output(owner.tokens, on_tokens(owner.tokens))
        on_output(owner.positions, on_positions(owner.positions))
    for name in ("encoder", "decoder"):
        if hasattr(model, name):
            handles.append(getattr(model, name).register_forward_pre_hook(on_start(name)))


def _listen_to_sublayer(
    name: str, sublayer: nn.Module, add_norm: AddNorm | None, recorded: Recorded, on_output: Any
) -> None:
    def keep(part: str, of_input: bool = False) -> Callable[[tuple[Any, ...], Any], None]:
        return lambda inputs, output: recorded.update({f"{name}.{part}": inputs[0] if of_input else output})

    def on_attend(inputs: tuple[Any, ...], output: Tensor) -> None:
        q, k, v, *mask = inputs
        recorded.update({f"{name}.q": q, f"{name}.k": k, f"{name}.v": v, f"{name}.mixed": output})
        if not attend.is_dot_product:  # from q and k alone nobody could compute them
            recorded[f"{name}.weights"] = attend.weights(q, k, *mask)
        recorded.pop(f"{name}.mask", None)
        if mask and mask[0] is not None:
            recorded[f"{name}.mask"] = mask[0]

    if isinstance(sublayer, MultiHeadAttention):
        attend = sublayer.attend
        on_output(attend, on_attend)
        on_output(sublayer.output, keep("merged", of_input=True))
        on_output(sublayer.output, keep("output"))
    else:
        assert isinstance(sublayer, FeedForward)
        on_output(sublayer.activation, keep("hidden"))
        on_output(sublayer.narrow, keep("output"))
    if add_norm is None:
        return
    on_output(add_norm.norm, keep("norm"))
    if add_norm.pre:
        on_output(add_norm, keep("residual"))
    else:
        on_output(add_norm.norm, keep("residual", of_input=True))


def _keep_states(recorded: Recorded, name: str) -> Callable[[tuple[Any, ...], Any], None]:
    """Keeps the output of a stack. A decoder returns its cache too."""
    return lambda _, output: recorded.update({name: output[0] if isinstance(output, tuple) else output})
