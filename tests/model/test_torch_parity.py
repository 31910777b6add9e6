"""The same weights give the same numbers and the same gradients as PyTorch's own modules.

PyTorch's boolean masks say True = hidden, ours True = may be attended to.
"""

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.model.attention import MultiHeadAttention
from jumok.model.layers import LAYER_NORM_EPSILON, DecoderLayer, EncoderLayer
from jumok.model.masks import causal_mask
from jumok.model.stacks import Decoder, Encoder

B, S, T, D, H, F = 3, 7, 5, 12, 3, 20
Pairs = Iterator[tuple[Tensor, Tensor, slice]]  # our weight, theirs, and the rows of theirs that ours is

pytestmark = pytest.mark.usefixtures("path")


def linear_pairs(ours: nn.Module, theirs: nn.Module) -> Pairs:
    for name, weight in theirs.named_parameters():
        yield getattr(ours, name), weight, slice(None)


def attention_pairs(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Pairs:
    if theirs.in_proj_weight is None:  # keys and values of widths of their own
        split = [(ours.query, theirs.q_proj_weight, 0), (ours.key, theirs.k_proj_weight, 1)]
        split += [(ours.value, theirs.v_proj_weight, 2)]
        for linear, weight, third in split:
            yield linear.weight, weight, slice(None)
            if theirs.in_proj_bias is not None:
                yield linear.bias, theirs.in_proj_bias, slice(third * D, (third + 1) * D)
    else:
        if ours.d_memory is None:
            parts = [(ours.query_key_value, slice(0, 3 * D))]
        else:
            parts = [(ours.query, slice(0, D)), (ours.key_value, slice(D, 3 * D))]
        for linear, rows in parts:
            yield linear.weight, theirs.in_proj_weight, rows
            if theirs.in_proj_bias is not None:
                yield linear.bias, theirs.in_proj_bias, rows
    yield from linear_pairs(ours.output, theirs.out_proj)


def layer_pairs(ours: EncoderLayer | DecoderLayer, theirs: Any) -> Pairs:
    if isinstance(ours, DecoderLayer):
        yield from attention_pairs(ours.self_attention, theirs.self_attn)
        yield from attention_pairs(ours.cross_attention, theirs.multihead_attn)
        yield from linear_pairs(ours.add_norm_3.norm, theirs.norm3)
    else:
        yield from attention_pairs(ours.attention, theirs.self_attn)
    yield from linear_pairs(ours.add_norm_1.norm, theirs.norm1)
    yield from linear_pairs(ours.add_norm_2.norm, theirs.norm2)
    yield from linear_pairs(ours.feed_forward.widen, theirs.linear1)
    yield from linear_pairs(ours.feed_forward.narrow, theirs.linear2)


def stack_pairs(ours: Encoder | Decoder, theirs: Any) -> Pairs:
    for our_layer, their_layer in zip(ours.layers, theirs.layers, strict=True):
        yield from layer_pairs(our_layer, their_layer)
    if theirs.norm is not None:
        yield from linear_pairs(ours.norm, theirs.norm)


def copy_weights(ours: nn.Module, theirs: nn.Module, pairs: list[tuple[Tensor, Tensor, slice]]) -> None:
    """Random numbers everywhere, biases and norms too, the same on both sides."""
    assert {id(ours_) for ours_, _, _ in pairs} == {id(weight) for weight in ours.parameters()}
    assert {id(their) for _, their, _ in pairs} == {id(weight) for weight in theirs.parameters()}
    with torch.no_grad():
        for weight in theirs.parameters():
            weight.copy_(torch.randn_like(weight) * 0.4)
        for our, their, rows in pairs:
            our.copy_(their[rows])


def assert_same(ours: Tensor, theirs: Tensor, inputs: list[Tensor], pairs: list[tuple[Tensor, Tensor, slice]]) -> None:
    """Outputs within 1e-5, and the gradients of inputs and weights relative to the largest of each."""
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)
    direction = torch.randn_like(theirs)
    found = torch.autograd.grad((ours * direction).sum(), [*inputs, *(our for our, _, _ in pairs)])
    wanted = torch.autograd.grad((theirs * direction).sum(), [*inputs, *(their for _, their, _ in pairs)])
    rows = [slice(None)] * len(inputs) + [rows for _, _, rows in pairs]
    for our, their, part in zip(found, wanted, rows, strict=True):
        largest = max(1.0, float(their.abs().max()))
        torch.testing.assert_close(our / largest, their[part] / largest, atol=1e-5, rtol=0)


def vectors(*shape: int) -> Tensor:
    return torch.randn(*shape, requires_grad=True)


def real_keys(length: int) -> Tensor:
    """[B, length]: rows of different lengths, none empty."""
    return torch.arange(length) < torch.tensor([length, 1, length - 2])[:, None]


def random_mask(queries: int, keys: int) -> Tensor:
    """[queries, keys]: about half of the keys, and always the first."""
    mask = torch.rand(queries, keys) < 0.5
    mask[:, 0] = True
    return mask


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_self_attention(bias: bool, masked: bool) -> None:
    ours, theirs = MultiHeadAttention(D, H, bias=bias), nn.MultiheadAttention(D, H, bias=bias, batch_first=True)
    copy_weights(ours, theirs, pairs := list(attention_pairs(ours, theirs)))
    x, real, some = vectors(B, T, D), real_keys(T), random_mask(T, T)
    if masked:
        expected = theirs(x, x, x, key_padding_mask=~real, attn_mask=~some, need_weights=False)[0]
        found = ours(x, mask=real[:, None, None] & some)
    else:
        expected, found = theirs(x, x, x, need_weights=False)[0], ours(x)
    assert_same(found, expected, [x], pairs)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("widths", [None, (8, 8), (8, 10)], ids=str)
def test_cross_attention(widths: tuple[int, int] | None, bias: bool, masked: bool) -> None:
    k_width, v_width = widths or (D, D)
    ours = MultiHeadAttention(D, H, d_memory=widths or D, bias=bias)
    theirs = nn.MultiheadAttention(D, H, kdim=k_width, vdim=v_width, bias=bias, batch_first=True)
    copy_weights(ours, theirs, pairs := list(attention_pairs(ours, theirs)))
    x, keys = vectors(B, T, D), vectors(B, S, k_width)
    values = vectors(B, S, v_width) if widths else keys
    memory = (keys, values) if widths else keys
    inputs = [x, keys, values] if widths else [x, keys]
    if masked:
        real, some = real_keys(S), random_mask(T, S)
        expected = theirs(x, keys, values, key_padding_mask=~real, attn_mask=~some, need_weights=False)[0]
        found = ours(x, memory, real[:, None, None] & some)
    else:
        expected, found = theirs(x, keys, values, need_weights=False)[0], ours(x, memory)
    assert_same(found, expected, inputs, pairs)


def test_packed_keys_and_values_equal_separate_ones() -> None:
    """One tall matrix for keys and values of one memory is the same as two matrices."""
    packed, apart = MultiHeadAttention(D, H, d_memory=8), MultiHeadAttention(D, H, d_memory=(8, 8))
    with torch.no_grad():
        apart.query.weight.copy_(packed.query.weight)
        apart.output.weight.copy_(packed.output.weight)
        apart.key.weight.copy_(packed.key_value.weight[:D])
        apart.value.weight.copy_(packed.key_value.weight[D:])
    x, memory = vectors(B, T, D), vectors(B, S, 8)
    torch.testing.assert_close(packed(x, memory), apart(x, (memory, memory)), atol=1e-6, rtol=0)


def torch_options(norm: str, activation: str) -> dict[str, Any]:
    return {
        "dim_feedforward": F,
        "dropout": 0.0,
        "activation": activation,
        "layer_norm_eps": LAYER_NORM_EPSILON,
        "batch_first": True,
        "norm_first": norm == "pre",
    }


def our_options(norm: str, activation: str) -> dict[str, Any]:
    return {"dropout": 0.0, "attention_bias": True, "activation": activation, "norm": norm}


NORMS_AND_ACTIVATIONS = [
    pytest.param(norm, activation, id=f"{norm}-{activation}")
    for norm in ("post", "pre")
    for activation in ("relu", "gelu")
]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("norm", "activation"), NORMS_AND_ACTIVATIONS)
def test_encoder_layer(norm: str, activation: str, masked: bool) -> None:
    ours = EncoderLayer(D, H, F, **our_options(norm, activation))
    theirs = nn.TransformerEncoderLayer(D, H, **torch_options(norm, activation))
    copy_weights(ours, theirs, pairs := list(layer_pairs(ours, theirs)))
    x, real, some = vectors(B, S, D), real_keys(S), random_mask(S, S)
    if masked:
        expected = theirs(x, src_mask=~some, src_key_padding_mask=~real)
        found = ours(x, real[:, None, None] & some)
    else:
        expected, found = theirs(x), ours(x)
    assert_same(found, expected, [x], pairs)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("norm", "activation"), NORMS_AND_ACTIVATIONS)
def test_decoder_layer(norm: str, activation: str, masked: bool) -> None:
    ours = DecoderLayer(D, H, F, **our_options(norm, activation))
    theirs = nn.TransformerDecoderLayer(D, H, **torch_options(norm, activation))
    copy_weights(ours, theirs, pairs := list(layer_pairs(ours, theirs)))
    x, memory = vectors(B, T, D), vectors(B, S, D)
    keys = ours.cross_attention.remember(memory)
    if masked:
        real_target, real_source, causal = real_keys(T), real_keys(S), causal_mask(T)
        expected = theirs(
            x,
            memory,
            tgt_mask=~causal[0, 0],
            tgt_key_padding_mask=~real_target,
            memory_key_padding_mask=~real_source,
        )
        found, _ = ours(
            x, look_ahead=causal & real_target[:, None, None], memory=keys, memory_mask=real_source[:, None, None]
        )
    else:
        expected, (found, _) = theirs(x, memory), ours(x, memory=keys)
    assert_same(found, expected, [x, memory], pairs)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_whole_stacks(norm: str) -> None:
    """Encoder and decoder of three layers each, the decoder reading what the encoder made."""
    final = nn.LayerNorm(D, eps=LAYER_NORM_EPSILON) if norm == "pre" else None
    their_encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(D, H, **torch_options(norm, "relu")),
        3,
        copy.deepcopy(final),
        enable_nested_tensor=False,
    )
    their_decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(D, H, **torch_options(norm, "relu")), 3, copy.deepcopy(final)
    )
    theirs = nn.Transformer(
        D, H, custom_encoder=their_encoder, custom_decoder=their_decoder, batch_first=True, norm_first=norm == "pre"
    )
    encoder, decoder = (stack(3, D, H, F, **our_options(norm, "relu")) for stack in (Encoder, Decoder))
    ours = nn.ModuleList([encoder, decoder])
    pairs = [*stack_pairs(encoder, theirs.encoder), *stack_pairs(decoder, theirs.decoder)]
    copy_weights(ours, theirs, pairs)

    source, target, real, causal = vectors(B, S, D), vectors(B, T, D), real_keys(S), causal_mask(T)
    expected = theirs(source, target, tgt_mask=~causal[0, 0], src_key_padding_mask=~real, memory_key_padding_mask=~real)
    mask = real[:, None, None]
    found, _ = decoder(target, decoder.remember(encoder(source, mask), mask), causal)
    assert_same(found, expected, [source, target], pairs)
