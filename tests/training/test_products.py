"""Products in bfloat16 on a CPU. Where it has no instructions for them, PyTorch computes the same numbers slowly."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from jumok.model.config.translator import TranslatorConfig
from jumok.model.translator import Translator
from jumok.recipes.planning import choose_hardware
from jumok.training import products
from jumok.training.muon import orthogonalise
from jumok.training.objective import smoothed_cross_entropy
from jumok.training.precision import Precision
from jumok.training.products import ROWS, as_factor, product_dtype, products_in, use_bfloat16_products
from jumok.training.settings import Settings


def rounded(x: Tensor) -> Tensor:
    """The nearest numbers of bfloat16, in float64: products of them are exact enough to compare with."""
    return x.detach().bfloat16().double()


def assert_rounded(actual: Tensor, expected: Tensor) -> None:
    """The result of a product is rounded to 8 bits, too: within 1/256 of the largest number."""
    torch.testing.assert_close(actual.double(), expected, rtol=0.0, atol=2**-8 * float(expected.abs().max()))


def linear_pair(bias: bool) -> tuple[nn.Linear, nn.Linear]:
    """The same layer in float32 and in bfloat16."""
    torch.manual_seed(3)
    plain, other = nn.Linear(24, 40, bias=bias), nn.Linear(24, 40, bias=bias)
    other.load_state_dict(plain.state_dict())
    use_bfloat16_products(other)
    return plain, other


@pytest.mark.parametrize("bias", [True, False])
def test_a_linear_layer_rounds_the_factors_of_its_products_and_nothing_else(bias: bool) -> None:
    plain, layer = linear_pair(bias)
    x = torch.randn(3, 5, 24, requires_grad=True)
    y = layer(x)
    gradient = torch.randn_like(y)
    y.backward(gradient)
    rows, weight, above = rounded(x).flatten(0, 1), rounded(layer.weight), rounded(gradient).flatten(0, 1)
    expected = (rows @ weight.T).view(3, 5, 40) + (layer.bias.detach().double() if bias else 0)
    assert_rounded(y, expected)
    assert x.grad is not None
    assert layer.weight.grad is not None
    assert_rounded(x.grad, (above @ weight).view(3, 5, 24))
    assert_rounded(layer.weight.grad, above.T @ rows)
    if bias:
        assert layer.bias.grad is not None
        torch.testing.assert_close(layer.bias.grad, gradient.sum((0, 1)))
    assert {y.dtype, x.grad.dtype, layer.weight.grad.dtype} == {torch.float32}
    assert not torch.equal(y, plain(x))


@pytest.mark.parametrize("count", [1, ROWS - 1, ROWS, ROWS + 1])
def test_factors_have_few_different_shapes(count: int) -> None:
    rows = torch.randn(count, 3)
    factor = as_factor(rows, torch.bfloat16)
    assert len(factor) % ROWS == 0
    assert len(factor) - count < ROWS
    assert torch.equal(factor[:count], rows.bfloat16())
    assert not factor[count:].any()
    assert as_factor(rows, torch.float32) is rows


def test_what_is_not_trained_is_computed_in_float32() -> None:
    plain, layer = linear_pair(bias=True)
    x = torch.randn(3, 24)
    assert torch.equal(layer.eval()(x), plain(x))


def test_an_input_without_gradient_gets_none() -> None:
    _, layer = linear_pair(bias=False)
    layer.requires_grad_(False)
    x = torch.randn(2, 24, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert x.grad is not None


def test_a_model_prepared_for_bfloat16_keeps_its_weights_and_learns_about_the_same() -> None:
    """Gradients of all its weights point in the direction of those in float32."""
    sizes = {"vocabulary": 50, "d_model": 32, "heads": 4, "d_ff": 64, "encoder_layers": 2, "decoder_layers": 2}
    config = TranslatorConfig(**sizes, dropout=0.0)
    torch.manual_seed(0)
    model = Translator(config)
    names, before = list(model.state_dict()), {name: value.clone() for name, value in model.state_dict().items()}
    ids, targets = torch.randint(4, 50, (6, 9)), torch.randint(4, 50, (54,))

    def gradients(precision: Precision) -> list[Tensor]:
        model.zero_grad()
        with precision.computing():
            loss = smoothed_cross_entropy(model.states(ids, ids).flatten(0, 1), model.embed.tokens.weight, targets, 0.1)
        loss.backward()
        return [weight.grad.flatten().clone() for weight in model.parameters() if weight.grad is not None]

    exact = gradients(Precision("float32"))
    precision = Precision("bfloat16")
    precision.prepare(model)
    close = gradients(precision)
    assert list(model.state_dict()) == names
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    alike = [float(torch.cosine_similarity(one, other, dim=0)) for one, other in zip(exact, close, strict=True)]
    assert min(alike) > 0.99
    assert not any(torch.equal(one, other) for one, other in zip(exact, close, strict=True))


def test_the_loss_is_computed_in_the_format_of_the_context_and_of_autocast() -> None:
    x = torch.ones(1)
    assert product_dtype(x) == torch.float32
    with products_in(torch.bfloat16):
        assert product_dtype(x) == torch.bfloat16
    with torch.autocast("cpu", torch.float16):
        assert product_dtype(x) == torch.float16
    with pytest.raises(KeyError), products_in(torch.bfloat16):
        raise KeyError
    assert product_dtype(x) == torch.float32


def test_matrices_are_orthogonalised_in_bfloat16_about_as_well() -> None:
    torch.manual_seed(1)
    matrices = torch.randn(3, 32, 64)
    result = orthogonalise(matrices, torch.bfloat16)
    assert result.dtype == torch.float32
    values = torch.linalg.svdvals(result)
    assert values.min() > 0.65
    assert values.max() < 1.35
    exact = orthogonalise(matrices)
    assert torch.cosine_similarity(result.flatten(), exact.flatten(), dim=0) > 0.99


@pytest.mark.parametrize(
    ("capabilities", "kernels", "expected"),
    [
        ({"avx512_bf16": True, "amx_bf16": False}, "AVX512", "bfloat16"),
        ({"avx512_bf16": False, "amx_bf16": True}, "AVX512", "bfloat16"),
        ({"avx512_bf16": False, "amx_bf16": False}, "AVX512", "float32"),  # it would be imitated, slowly
        ({"avx512_bf16": True}, "AVX2", "float32"),  # PyTorch was told not to use such instructions
        ({"neon": True}, "DEFAULT", "float32"),
    ],
)
def test_auto_is_bfloat16_on_a_cpu_with_instructions_for_it_but_for_small_products(
    monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool], kernels: str, expected: str
) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: kernels)

    def found(preset: str, precision: str = "auto", **settings: Any) -> str:
        given = {"preset": preset, "device": "cpu", "precision": precision, **settings}
        return choose_hardware(Settings.from_dict(given)).name

    assert [found(preset) for preset in ("small", "base", "big")] == [expected] * 3
    assert found("tiny") == found("auto") == found("base", "float32") == "float32"
    assert found("tiny", "bfloat16") == "bfloat16"
    assert found("tiny", batch={"tokens": 1024}) == expected
    assert found("tiny", batch={"tokens": 1023}) == found("tiny", "float32", batch={"tokens": 1024}) == "float32"
    assert found("tiny", batch={"tokens": 1024}, model={"d_model": 64}) == "float32"
    assert found("tiny", batch={"tokens": 512}, model={"d_model": 256}) == expected
    assert found("tiny", batch={"tokens": 512, "accumulate": 2}) == expected  # two processes, as one would


def test_an_older_pytorch_that_cannot_be_asked_computes_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert not products.has_fast_bfloat16()
