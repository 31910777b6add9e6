"""The boxes of Figure 1 one by one, and the stacks made of them."""

from typing import Any

import pytest
import torch
from torch import nn

from jumok.errors import ConfigError
from jumok.model.attention import MultiHeadAttention
from jumok.model.dropout import Dropout
from jumok.model.embeddings import TokenEmbedding
from jumok.model.layers import LAYER_NORM_EPSILON, AddNorm, DecoderLayer, EncoderLayer, FeedForward
from jumok.model.positions import LearnedPositions
from jumok.model.stacks import Decoder, Encoder


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_the_feed_forward_is_a_convolution_of_width_one(activation: str) -> None:
    feed_forward = FeedForward(6, 10, activation)
    widen, narrow = nn.Conv1d(6, 10, 1), nn.Conv1d(10, 6, 1)
    with torch.no_grad():
        for linear, convolution in ((feed_forward.widen, widen), (feed_forward.narrow, narrow)):
            linear.bias.normal_()
            convolution.weight.copy_(linear.weight[:, :, None])
            convolution.bias.copy_(linear.bias)
    x = torch.randn(3, 5, 6)
    between = widen(x.mT).relu() if activation == "relu" else nn.functional.gelu(widen(x.mT))
    torch.testing.assert_close(feed_forward(x), narrow(between).mT, atol=1e-6, rtol=1e-5)


def test_add_and_norm_before_and_after() -> None:
    x, y = torch.randn(2, 3, 4), torch.randn(2, 3, 4)
    post, pre = AddNorm(4, norm="post", dropout=0.0), AddNorm(4, norm="pre", dropout=0.0)
    assert torch.equal(post.before(x), x)
    assert torch.equal(post(x, y), post.norm(x + y))
    assert torch.equal(pre.before(x), pre.norm(x))
    assert torch.equal(pre(x, y), x + y)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_falls_on_the_sublayer_and_never_on_the_way_around_it(norm: str) -> None:
    zeros, y = torch.zeros(1, 50, 4), torch.ones(1, 50, 4)
    add_norm = AddNorm(4, norm=norm, dropout=0.5)
    add_norm.norm = nn.Identity()
    assert set(add_norm(zeros, y).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(add_norm(y, zeros), y)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_only_a_pre_norm_stack_has_a_norm_of_its_own_at_the_end(norm: str) -> None:
    for stack in (Encoder(2, 6, 2, 8, norm=norm), Decoder(2, 6, 2, 8, norm=norm)):
        assert isinstance(stack.norm, nn.LayerNorm if norm == "pre" else nn.Identity)
        norms = [module for module in stack.modules() if isinstance(module, nn.LayerNorm)]
        assert {module.eps for module in norms} == {LAYER_NORM_EPSILON}
    out = Encoder(2, 6, 2, 8, norm=norm).eval()(100 * torch.randn(2, 3, 6))
    torch.testing.assert_close(out.mean(-1), torch.zeros(2, 3), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std(-1, correction=0), torch.ones(2, 3), atol=1e-3, rtol=0)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_without_positions_the_encoder_does_not_know_the_order(norm: str) -> None:
    encoder = Encoder(2, 12, 3, 20, norm=norm).double().eval()
    x, order = torch.randn(2, 7, 12, dtype=torch.float64), torch.randperm(7)
    real = torch.rand(2, 7) < 0.7
    for mask in (None, real[:, None, None]):
        shuffled = None if mask is None else mask[..., order]
        torch.testing.assert_close(encoder(x[:, order], shuffled), encoder(x, mask)[:, order], atol=1e-12, rtol=0)


def test_a_decoder_layer_without_cross_attention_has_two_sublayers() -> None:
    layer = DecoderLayer(6, 2, 8, cross=False)
    names = {name.split(".")[0] for name, _ in layer.named_parameters()}
    assert names == {"self_attention", "add_norm_1", "feed_forward", "add_norm_3"}


def test_a_decoder_reads_a_memory_of_another_width() -> None:
    layer = DecoderLayer(6, 2, 8, d_memory=10).eval()
    out, present = layer(torch.randn(2, 3, 6), memory=layer.cross_attention.remember(torch.randn(2, 5, 10)))
    assert out.shape == (2, 3, 6)
    assert present.length == 3


@pytest.mark.parametrize("kind", [EncoderLayer, DecoderLayer])
def test_the_defaults_are_the_paper_s(kind: type[nn.Module]) -> None:
    """Post-norm, ReLU, no bias in attention, dropout of 0.1 after each sublayer and none on the attention weights."""
    layer = kind(4, 2, 6)
    assert isinstance(layer.feed_forward.activation, nn.ReLU)
    assert isinstance(FeedForward(4, 6).activation, nn.ReLU)
    rates = {name: module.rate for name, module in layer.named_modules() if isinstance(module, Dropout)}
    assert set(rates.values()) == {0.0, 0.1}
    assert all((rate == 0) == ("attend." in name) for name, rate in rates.items())
    assert not any(module.pre for module in layer.modules() if isinstance(module, AddNorm))
    assert not [name for name, _ in layer.named_parameters() if "attention" in name and "bias" in name]
    assert not any(stack(1, 4, 2, 6).layers[0].add_norm_1.pre for stack in (Encoder, Decoder))


def test_the_smallest_sizes() -> None:
    x = torch.randn(1, 1, 1)
    assert FeedForward(1, 1)(x).shape == MultiHeadAttention(1, 1)(x).shape == LearnedPositions(1, 1)(x).shape == x.shape
    assert TokenEmbedding(1, 1)(torch.tensor([[0]])).shape == x.shape
    assert torch.equal(Encoder(0, 1, 1, 1)(x), x)
    assert not list(Decoder(0, 1, 1, 1).parameters())


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FeedForward(6, 8, "relo"), r"activation='relo'.*Did you mean \"relu\""),
        (lambda: FeedForward(6, 8, "swish"), r"activation='swish'.*gelu, relu"),
        (lambda: AddNorm(6, norm="prae", dropout=0.0), r"norm='prae'.*Did you mean \"pre\""),
        (lambda: EncoderLayer(6, 4, 8), r"d_model=6.*4 heads.*multiple of 4"),
        (lambda: DecoderLayer(6, 2, 8, activation="tanh"), r"activation='tanh'"),
        (lambda: Encoder(1, 6, 2, 8, dropout=1.0), r"dropout=1.0.*below 1"),
        (lambda: Decoder(1, 6, 2, 8, norm="none"), r"norm='none'"),
    ],
)
def test_unknown_names_and_sizes_that_do_not_fit(make: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()
