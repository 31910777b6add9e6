"""What attention promises: weights that are shares, masks that hold exactly, two ways of computing one thing."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch import Tensor

from jumok.errors import ConfigError, ShapeError
from jumok.model.attention import SHORT, Attend, MultiHeadAttention, attention_weights, masked_softmax

sizes = st.integers(1, 6)


@st.composite
def queries_keys_values(draw: st.DrawFn) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """q, k, v of any widths and lengths, and a mask that may be spread over any axis and may hide whole rows."""
    b, h, t, s, k, dv = (draw(sizes) for _ in range(6))
    torch.manual_seed(draw(st.integers(0, 2**32)))
    spread = [draw(st.sampled_from([1, size])) for size in (b, h, t, s)]
    mask = torch.rand(spread) < draw(st.sampled_from([0.0, 0.3, 0.8, 1.0]))
    size = draw(st.sampled_from([0.1, 1.0, 30.0]))  # from nearly uniform to nearly hard
    return size * torch.randn(b, h, t, k), size * torch.randn(b, h, s, k), torch.randn(b, h, s, dv), mask


def attend_with(fused: bool, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Attend, "_in_plain_steps", lambda *_: not fused)
        return Attend()(q, k, v, mask)


@given(queries_keys_values())
def test_weights_are_shares_and_hidden_keys_get_exactly_nothing(drawn: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    q, k, _, mask = drawn
    weights = attention_weights(q, k, mask)
    visible = mask.expand_as(weights)
    assert weights.shape == (*q.shape[:3], k.shape[2])
    assert bool((weights[~visible] == 0).all())
    assert bool((weights >= 0).all())
    rows = weights.sum(-1)
    torch.testing.assert_close(rows, visible.any(-1).to(rows.dtype), atol=1e-5, rtol=0)
    assert bool((rows[~visible.any(-1)] == 0).all())


@given(queries_keys_values())
def test_weights_are_the_formula_of_the_paper(drawn: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    """softmax(Q Kᵀ / √d_k), written with sums and exponentials of visible keys only, in float64."""
    q, k, _, mask = (part.double() if part.is_floating_point() else part for part in drawn)
    scores = torch.einsum("bhtk,bhsk->bhts", q, k) / math.sqrt(q.shape[-1])
    visible = mask.expand_as(scores)
    shifted = scores - torch.where(visible, scores, -torch.inf).amax(-1, keepdim=True).clamp(min=-1e300)
    shares = torch.where(visible, shifted.clamp(max=0).exp(), 0.0)
    expected = shares / shares.sum(-1, keepdim=True).clamp(min=1e-300)
    torch.testing.assert_close(attention_weights(q, k, mask), expected, atol=1e-12, rtol=0)


def outputs_and_gradients(fused: bool, q: Tensor, k: Tensor, v: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
    leaves = [part.clone().requires_grad_() for part in (q, k, v)]
    out = attend_with(fused, *leaves, mask)
    direction = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).view(out.shape)
    return out, *torch.autograd.grad((out * direction).sum(), leaves)


@given(queries_keys_values())
def test_plain_and_fused_agree_forward_and_backward(drawn: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    """In float64, where even scores in the thousands leave nothing to rounding."""
    q, k, v, mask = (part.double() if part.is_floating_point() else part for part in drawn)
    for plain, fused in zip(*(outputs_and_gradients(fused, q, k, v, mask) for fused in (False, True)), strict=True):
        assert bool(plain.isfinite().all())
        torch.testing.assert_close(fused, plain, atol=1e-9, rtol=0)


@pytest.mark.parametrize("keys", [1, 17, 300])
def test_plain_and_fused_agree_in_single_precision(keys: int) -> None:
    q, k, v = torch.randn(2, 3, 20, 8), torch.randn(2, 3, keys, 8), torch.randn(2, 3, keys, 8)
    mask = torch.rand(2, 1, 20, keys) < 0.5
    for plain, fused in zip(*(outputs_and_gradients(fused, q, k, v, mask) for fused in (False, True)), strict=True):
        torch.testing.assert_close(fused, plain, atol=1e-5, rtol=0)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("keys", [3, 200])
def test_a_row_that_sees_nothing_is_exactly_zero_and_has_no_gradient(keys: int) -> None:
    q, k, v = (torch.randn(2, 2, n, 4, requires_grad=True) for n in (5, keys, keys))
    mask = torch.ones(2, 1, 5, keys, dtype=torch.bool)
    mask[0, 0, 1] = mask[1] = False  # one query of the first text, all of the second
    out = Attend()(q, k, v, mask)
    assert bool((out[0, :, 1] == 0).all())
    assert bool((out[1] == 0).all())
    assert bool((out[0, :, 0] != 0).any())
    out.square().sum().backward()
    for leaf in (q, k, v):
        assert leaf.grad is not None
        assert bool(leaf.grad.isfinite().all())
        assert bool((leaf.grad[1] == 0).all())
    assert q.grad is not None
    assert bool((q.grad[0, :, 1] == 0).all())


@pytest.mark.usefixtures("path")
def test_no_keys_at_all_is_like_all_keys_hidden() -> None:
    q, nothing = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 0, 4)
    assert torch.equal(Attend()(q, nothing, nothing), torch.zeros(2, 2, 3, 4))


@given(queries_keys_values())
def test_hard_attention_is_one_hot_on_the_best_visible_key(drawn: tuple[Tensor, Tensor, Tensor, Tensor]) -> None:
    q, k, _, mask = drawn
    hard = attention_weights(q, k, mask, hard=True)
    visible = mask.expand_as(hard)
    some = visible.any(-1)
    assert bool(((hard == 0) | (hard == 1)).all())
    assert torch.equal(hard.sum(-1), some.to(hard.dtype))
    assert bool((hard[~visible] == 0).all())
    scores = torch.where(visible, q @ k.transpose(-2, -1), -torch.inf)
    torch.testing.assert_close((hard * scores.clamp(min=-1e30)).sum(-1)[some], scores.amax(-1)[some])


def test_hard_attention_takes_the_first_of_equals() -> None:
    assert attention_weights(torch.zeros(1, 2), torch.zeros(3, 2), hard=True).tolist() == [[1, 0, 0]]


def test_scores_become_shares_unless_only_the_best_is_asked_for() -> None:
    scores = torch.tensor([[0.0, math.log(3)]])
    torch.testing.assert_close(masked_softmax(scores), torch.tensor([[0.25, 0.75]]))
    assert masked_softmax(scores, hard=True).tolist() == [[0.0, 1.0]]


def test_beta_runs_from_uniform_to_hard() -> None:
    q, k = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5)
    mask = torch.rand(2, 1, 4, 6) < 0.7
    mask[..., 0] = True
    visible = mask.expand(2, 3, 4, 6)
    uniform = visible / visible.sum(-1, keepdim=True)
    torch.testing.assert_close(attention_weights(q, k, mask, beta=0.0), uniform)
    hard = attention_weights(q, k, mask, hard=True)
    away = [float((attention_weights(q, k, mask, beta=beta) - hard).abs().max()) for beta in (0.0, 1.0, 10.0, 1e5)]
    assert away == sorted(away, reverse=True)
    assert away[-1] < 1e-6


@pytest.mark.parametrize("width", [1, 4, 7])
def test_beta_is_one_over_the_root_of_the_key_width_unless_given(width: int) -> None:
    q, k = torch.randn(2, 3, width), torch.randn(2, 5, width)
    assert torch.equal(attention_weights(q, k), attention_weights(q, k, beta=width**-0.5))
    assert width == 1 or not torch.allclose(attention_weights(q, k), attention_weights(q, k, beta=1.0))


def test_hidden_keys_get_exactly_nothing_in_every_precision() -> None:
    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        q, k = (100 * torch.randn(2, 5, 4)).to(dtype), (100 * torch.randn(2, 5, 4)).to(dtype)
        mask = torch.ones(5, 5, dtype=torch.bool).tril()
        weights = attention_weights(q, k, mask)
        assert weights.dtype == dtype
        assert bool((weights[:, ~mask] == 0).all())
        assert bool(weights.isfinite().all())


def test_the_fused_kernel_serves_long_sentences_and_trained_models(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    real = torch.nn.functional.scaled_dot_product_attention
    monkeypatch.setattr(
        torch.nn.functional, "scaled_dot_product_attention", lambda *a, **k: (called.append(1), real(*a, **k))[1]
    )

    def fused(attend: Attend, length: int) -> bool:
        called.clear()
        x = torch.randn(1, 1, length, 2, requires_grad=True)
        attend(x, x, x)
        return bool(called)

    assert fused(Attend(), SHORT + 1)
    assert not fused(Attend(), SHORT)
    assert not fused(Attend(0.5), SHORT + 1)
    assert fused(Attend(0.5).eval(), SHORT)


def test_the_weights_can_be_asked_for() -> None:
    q, k, v = torch.randn(2, 3, 4, 5), torch.randn(2, 3, 6, 5), torch.randn(2, 3, 6, 5)
    mask = torch.rand(2, 1, 4, 6) < 0.5
    torch.testing.assert_close(Attend().weights(q, k, mask) @ v, Attend()(q, k, v, mask))


def test_dropout_falls_on_the_weights() -> None:
    """With values of one everywhere, what comes out is the sum of the weights that are left."""
    q, ones = torch.randn(1, 1, 4000, 4), torch.ones(1, 1, 4, 2)
    attend = Attend(0.5)
    sums = attend(q, torch.zeros(1, 1, 4, 4), ones)[..., 0]
    assert set(sums.unique().tolist()) == {0.0, 0.5, 1.0, 1.5, 2.0}  # 0 to 4 keys of 1/4, each doubled
    assert abs(float(sums.mean()) - 1) < 5 * math.sqrt(0.25 / 4000)
    assert bool((attend.eval()(q, torch.zeros(1, 1, 4, 4), ones) == 1).all())


@given(st.integers(1, 4), sizes, sizes, sizes, sizes, st.integers(1, 9), st.booleans())
def test_any_widths_and_lengths(
    heads: int, d_k: int, d_v: int, queries: int, keys: int, d_memory: int, bias: bool
) -> None:
    """d_k ≠ d_v, as many queries as you like for as many keys as you like, a memory of another width."""
    d_model = 7
    own = MultiHeadAttention(d_model, heads, d_k=d_k, d_v=d_v, bias=bias)
    cross = MultiHeadAttention(d_model, heads, d_k=d_k, d_v=d_v, d_memory=d_memory, bias=bias)
    x, memory = torch.randn(2, queries, d_model), torch.randn(2, keys, d_memory)
    assert own(x).shape == cross(x, memory).shape == x.shape
    assert own.query_key_value.weight.shape == (heads * (2 * d_k + d_v), d_model)
    assert (own.output.bias is not None) == bias


def test_there_are_no_biases_unless_asked_for() -> None:
    """As in the paper, which names W^Q, W^K, W^V and W^O and nothing else."""
    assert not [name for name, _ in MultiHeadAttention(4, 2).named_parameters() if "bias" in name]


def test_a_row_that_sees_nothing_leaves_the_masks_of_other_rows_as_they_are() -> None:
    mask = torch.tensor([[False, False, False], [True, False, True]])
    weights = attention_weights(torch.randn(2, 4), torch.randn(3, 4), mask)
    assert torch.equal(weights == 0, ~mask)


@pytest.mark.usefixtures("path")
def test_heads_are_separate_attentions() -> None:
    """Head by head with the formula, concatenated, times W^O: section 3.2.2, with d_k ≠ d_v."""
    heads, d_k, d_v = 2, 3, 5
    module = MultiHeadAttention(4, heads, d_k=d_k, d_v=d_v)
    x = torch.randn(2, 6, 4)
    w_q, w_k, w_v = module.query_key_value.weight.split([heads * d_k, heads * d_k, heads * d_v])
    outputs = []
    for head in range(heads):
        q, k, v = (x @ w[head * n : (head + 1) * n].T for w, n in ((w_q, d_k), (w_k, d_k), (w_v, d_v)))
        outputs.append((q @ k.mT / math.sqrt(d_k)).softmax(-1) @ v)
    torch.testing.assert_close(module(x), torch.cat(outputs, -1) @ module.output.weight.T, atol=1e-6, rtol=1e-5)


def test_every_packed_projection_starts_as_if_it_stood_alone() -> None:
    attention = MultiHeadAttention(64, 4, d_k=8, d_v=16, bias=True)
    assert not attention.query_key_value.bias.any()
    for block in attention.query_key_value.weight.detach().split([32, 32, 64]):
        limit = math.sqrt(6 / (64 + len(block)))
        assert 0.98 * limit < float(block.abs().max()) <= limit
        assert abs(float(block.mean())) < 5 * limit / math.sqrt(3 * block.numel())


@pytest.mark.usefixtures("path")
def test_one_mask_may_serve_all_heads_and_all_texts() -> None:
    q = torch.randn(3, 2, 4, 5)
    mask = torch.ones(1, 1, 4, 4, dtype=torch.bool).tril()
    assert torch.equal(Attend()(q, q, q, mask), Attend()(q, q, q, mask.expand(3, 2, 4, 4)))


@pytest.mark.usefixtures("without_shape_checks")
class TestBadInput:
    @pytest.mark.parametrize(
        "shape", [(2, 4), (4,), (1, 2, 4, 4), (3, 1, 4, 5), (3, 1, 1, 1, 4), (3, 2, 5, 4), (2, 1, 1, 4)]
    )
    def test_mask_of_a_shape_that_does_not_fit(self, shape: tuple[int, ...]) -> None:
        x = torch.randn(3, 3, 4, 2)
        with pytest.raises(ShapeError) as error:
            Attend()(x, x, x, torch.ones(shape, dtype=torch.bool))
        assert str(list(shape)) in str(error.value)
        assert "[3, 3, 4, 4]" in str(error.value)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
    def test_mask_that_is_not_boolean(self, dtype: torch.dtype) -> None:
        x = torch.randn(1, 1, 2, 2)
        with pytest.raises(ShapeError, match=rf"boolean.*True.*not {dtype}"):
            Attend()(x, x, x, torch.ones(1, 1, 2, 2, dtype=dtype))

    @pytest.mark.parametrize("widths", [{}, {"d_k": 3}, {"d_v": 3}])
    def test_heads_that_do_not_divide_the_width(self, widths: dict[str, int]) -> None:
        with pytest.raises(ConfigError, match=r"d_model=10.*3 heads.*multiple of 3.*d_k and d_v"):
            MultiHeadAttention(10, 3, **widths)

    @pytest.mark.parametrize("heads", [0, -2])
    def test_no_heads(self, heads: int) -> None:
        with pytest.raises(ConfigError, match=f"heads={heads} must be a whole number, at least 1"):
            MultiHeadAttention(10, heads)

    def test_memory_where_none_belongs_none_where_one_does_one_for_two_and_two_for_one(self) -> None:
        x, memory = torch.randn(2, 3, 4), torch.randn(2, 5, 6)
        for d_memory, given_memory in ((None, x), (6, None), ((6, 6), memory), (6, (memory, memory))):
            with pytest.raises(ShapeError) as error:
                MultiHeadAttention(4, 2, d_memory=d_memory)(x, given_memory)
            assert f"d_memory={d_memory}" in str(error.value)

    def test_rows_that_cannot_be_shared_among_the_sentences_of_a_memory(self) -> None:
        """Three texts of two tokens have as many queries as two sentences could share: never mixed up in silence."""
        module = MultiHeadAttention(4, 2, d_memory=4)
        with pytest.raises(ShapeError, match=r"3 rows.*2 sentences.*multiple of 2"):
            module(torch.randn(3, 2, 4), torch.randn(2, 5, 4))


def test_shapes_in_signatures_are_checked_in_these_tests() -> None:
    with pytest.raises(TypeCheckError):
        attention_weights(torch.randn(2, 3, 4), torch.randn(2, 3, 5))
    with pytest.raises(TypeCheckError):
        MultiHeadAttention(4, 2)(torch.randn(3, 4))


class TestExtremes:
    """What must hold when scores leave the range of their type, and for every shape of input."""

    @pytest.mark.parametrize("hard", [False, True])
    def test_a_hidden_key_never_gets_attention_even_beside_the_least_score(self, hard: bool) -> None:
        mask = torch.tensor([[True, False]])
        q, k = torch.tensor([[1e19]]), torch.tensor([[-1e19], [0.0]])  # the visible score is about the least float32
        assert torch.equal(attention_weights(q, k, mask, beta=1.0, hard=hard), torch.tensor([[1.0, 0.0]]))

    def test_an_overflow_is_loud_and_never_moves_attention_to_a_hidden_key(self) -> None:
        q, k = torch.full((1, 4), 300.0).half(), torch.stack((torch.full((4,), -300.0), torch.zeros(4))).half()
        weights = attention_weights(q, k, torch.tensor([[True, False]]))
        assert not bool(weights[0, 1] > 0)

    @pytest.mark.parametrize("beta", [math.inf, -math.inf, math.nan])
    def test_a_temperature_that_is_no_number(self, beta: float) -> None:
        with pytest.raises(ConfigError, match="hard=True"):
            attention_weights(torch.randn(2, 3), torch.randn(2, 3), beta=beta)

    @pytest.mark.parametrize("hard", [False, True])
    def test_no_keys_at_all(self, hard: bool) -> None:
        assert attention_weights(torch.randn(1, 4, 2, 3), torch.randn(1, 4, 0, 3), hard=hard).shape == (1, 4, 2, 0)
        assert attention_weights(torch.randn(2, 3), torch.randn(0, 3), hard=hard).shape == (2, 0)

    @pytest.mark.parametrize(
        "mask", [torch.ones(3, 3, dtype=torch.bool), torch.ones(2, 4), torch.ones(1, 1, 2, 4).bool()]
    )
    def test_wrong_masks_for_the_function_alone(self, mask: Tensor) -> None:
        with pytest.raises(ShapeError):
            attention_weights.__wrapped__(torch.randn(2, 3), torch.randn(4, 3), mask)

    def test_three_inputs_of_three_widths(self) -> None:
        attention = MultiHeadAttention(8, 2, d_query=5, d_memory=(6, 7))
        x, keys, values = torch.randn(2, 3, 5), torch.randn(2, 4, 6), torch.randn(2, 4, 7)
        assert attention(x, (keys, values)).shape == (2, 3, 8)
        assert MultiHeadAttention(8, 2, d_query=5)(x).shape == (2, 3, 8)

    @pytest.mark.parametrize("sizes", [{"d_k": 0}, {"d_k": -1}, {"d_v": 0}, {"d_query": 0}])
    def test_widths_that_cannot_be(self, sizes: dict[str, int]) -> None:
        (name, value), *_ = sizes.items()
        with pytest.raises(ConfigError, match=f"{name}={value}"):
            MultiHeadAttention(4, 2, **sizes)
