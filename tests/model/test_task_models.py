"""Translator, language model and classifier as wholes: nothing leaks, padding and neighbours change nothing."""

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from jumok.errors import ConfigError, ShapeError
from jumok.model.classifier import Classifier, pool
from jumok.model.config import ModelConfig
from jumok.model.embeddings import TokenEmbedding
from jumok.model.language_model import LanguageModel
from jumok.model.masks import PAD
from jumok.model.positions import sinusoids
from jumok.model.translator import Translator

Build = Callable[..., Any]
Ids = Callable[..., Tensor]
TASKS = ["translator", "language_model", "classifier"]
KINDS = [
    pytest.param({"norm": "post", "positions": "sinusoidal"}, id="post"),
    pytest.param(
        {"norm": "pre", "positions": "learned", "max_length": 40, "attention_bias": True, "activation": "gelu"},
        id="pre",
    ),
]


def run(model: nn.Module, *texts: Tensor) -> Tensor:
    """Every model on as many texts as it takes: the translator on (source, target), the others on the last."""
    return model(*texts) if isinstance(model, Translator) else model(texts[-1])


def padded(ids: Tensor, pads: int) -> Tensor:
    return nn.functional.pad(ids, (0, pads), value=PAD)


def assert_same_numbers(found: Tensor, expected: Tensor) -> None:
    """Within 1e-6 of the largest number: sums of other lengths are taken in another order and rounded differently."""
    largest = float(expected.detach().abs().max())
    torch.testing.assert_close(found / largest, expected / largest, atol=1e-6, rtol=0)


class TestNoFutureLeak:
    """Changing token j never changes what stands before j, not by one bit."""

    @pytest.mark.usefixtures("path")
    @pytest.mark.parametrize("mode", ["train", "eval", "inference"])
    @pytest.mark.parametrize("changes", KINDS)
    @pytest.mark.parametrize("task", ["translator", "language_model"])
    def test_later_tokens(self, build: Build, some_ids: Ids, task: str, changes: dict[str, Any], mode: str) -> None:
        model = build(task, dropout=0.0, **changes).train(mode == "train")
        source, target = some_ids(2, 4), some_ids(2, 5)
        with torch.inference_mode() if mode == "inference" else nullcontext():
            before = run(model, source, target)
            for j in range(5):
                changed = target.clone()
                changed[:, j] = torch.where(target[:, j] == 1, 2, target[:, j] - 1).clamp(min=1)
                after = run(model, source, changed)
                assert torch.equal(after[:, :j], before[:, :j])
                assert not torch.equal(after[:, j], before[:, j])
                changed[:, j:] = PAD  # padding is only another token
                assert torch.equal(run(model, source, changed)[:, :j], before[:, :j])

    def test_gradients(self, build: Build) -> None:
        """What is said at position t teaches no embedding of a later token."""
        model = build("language_model", vocabulary=50)
        ids, states = torch.arange(10, 18)[None], []
        model.embed.tokens.register_forward_hook(lambda _m, _i, out: (out.retain_grad(), states.append(out))[0])
        model.states(ids)[0, 3, 0].backward()  # not their sum, which LayerNorm makes the same for every input
        assert states[0].grad is not None
        assert bool((states[0].grad[0, :4] != 0).any(-1).all())
        assert bool((states[0].grad[0, 4:] == 0).all())

    def test_the_encoder_does_look_ahead(self, build: Build, some_ids: Ids) -> None:
        model, source = build("translator"), some_ids(1, 6)
        changed = source.clone()
        changed[0, 5] = source[0, 5] % 20 + 1
        assert not torch.equal(model.encode(changed).states[0, 0], model.encode(source).states[0, 0])


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("changes", KINDS)
@pytest.mark.parametrize("task", TASKS)
class TestOnlyRealTokensCount:
    def test_adding_padding_changes_nothing_real(
        self, build: Build, some_ids: Ids, task: str, changes: dict[str, Any]
    ) -> None:
        model, source, target = build(task, **changes), some_ids(3, 5), some_ids(3, 4)
        source[1, 2:] = target[2, 1:] = PAD  # there may be some already
        expected = run(model, source, target)
        real = slice(None) if task == "classifier" else target != PAD
        for pads in (1, 7, 30):
            found = run(model, padded(source, pads), padded(target, pads))
            found = found if task == "classifier" else found[:, :4]
            assert_same_numbers(found[real], expected[real])

    def test_what_padding_looks_like_does_not_matter(
        self, build: Build, some_ids: Ids, task: str, changes: dict[str, Any]
    ) -> None:
        """Exactly: hidden keys have a weight of 0, whatever vector stands there."""
        model, source, target = build(task, **changes), padded(some_ids(2, 5), 3), padded(some_ids(2, 4), 3)
        before = run(model, source, target)
        embedding: TokenEmbedding = model.embed.tokens
        with torch.no_grad():
            embedding.weight[PAD] += 5.0
        after = run(model, source, target)
        if task == "classifier":
            assert torch.equal(after, before)
        else:
            assert torch.equal(after[:, :4, 1:], before[:, :4, 1:])  # the score of <pad> itself did change

    def test_a_text_alone_and_among_others(
        self, build: Build, some_ids: Ids, task: str, changes: dict[str, Any]
    ) -> None:
        model, source, target = build(task, **changes), some_ids(6, 7), some_ids(6, 5)
        for row in range(
            6
        ):  # texts of all lengths in one batch, the shortest first: no row may wear the mask of another
            source[row, row + 1 :] = PAD
            target[row, row % 5 + 1 :] = PAD
        together = run(model, source, target)
        for row in range(6):
            length = row % 5 + 1
            alone = run(model, source[row : row + 1, : row + 1], target[row : row + 1, :length])[0]
            found = together[row] if task == "classifier" else together[row, :length]
            assert_same_numbers(found, alone)

    def test_the_order_of_texts_in_a_batch(
        self, build: Build, some_ids: Ids, task: str, changes: dict[str, Any]
    ) -> None:
        model, source, target = build(task, **changes), some_ids(4, 5), some_ids(4, 6)
        order = torch.tensor([2, 0, 3, 1])
        shuffled = run(model, source[order], target[order])
        assert_same_numbers(shuffled, run(model, source, target)[order])


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("changes", KINDS)
@pytest.mark.parametrize("task", TASKS)
def test_gradients_flow_to_every_parameter(build: Build, some_ids: Ids, task: str, changes: dict[str, Any]) -> None:
    model = build(task, dropout=0.0, max_length=6, **{k: v for k, v in changes.items() if k != "max_length"}).train()
    out = run(model, some_ids(4, 6), some_ids(4, 6))
    (out * torch.randn_like(out)).sum().backward()
    for name, weight in model.named_parameters():
        assert weight.grad is not None, name
        assert bool(weight.grad.isfinite().all()), name
        if name.endswith("key.bias"):
            continue
        # Each block of rows of a packed matrix on its own: queries, keys, values. A bias of the keys shifts all scores
        # of a query alike, so its gradient is nothing but rounding.
        blocks = weight.grad.split(12) if "query_key_value" in name or "key_value" in name else [weight.grad]
        keys = {"query_key_value.bias": 1, "key_value.bias": 0}.get(".".join(name.split(".")[-2:]))
        for which, block in enumerate(blocks):
            largest = float(block.abs().max())
            assert (largest < 1e-5) if which == keys else (largest > 1e-5), (name, which)


@settings(max_examples=60)
@given(data=st.data(), task=st.sampled_from(TASKS))
def test_whatever_the_sizes_the_outputs_are_finite(build: Build, data: st.DataObject, task: str) -> None:
    """Lengths from 0, single texts, single tokens, rows that are all padding, padding in any place of a source."""
    heads, width = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 4))
    model = build(
        task,
        d_model=2 * heads * width,
        heads=heads,
        d_k=data.draw(st.none() | st.integers(1, 5)),
        d_v=data.draw(st.none() | st.integers(1, 5)),
        d_ff=data.draw(st.integers(1, 8)),
        norm=data.draw(st.sampled_from(["pre", "post"])),
        positions=data.draw(st.sampled_from(["sinusoidal", "learned"])),
        attention_dropout=data.draw(st.sampled_from([0.0, 0.5])),
        **({"pooling": data.draw(st.sampled_from(["mean", "max", "answers"]))} if task == "classifier" else {}),
        max_length=6,
    ).train(data.draw(st.booleans()))
    batch, source_length, target_length = (data.draw(st.integers(low, 6)) for low in (0, 0, 0))
    torch.manual_seed(data.draw(st.integers(0, 2**32)))
    paddings = data.draw(st.sampled_from([0.0, 0.5, 1.0]))
    source, target = (
        torch.where(torch.rand(batch, length) < paddings, PAD, torch.randint(1, 23, (batch, length)))
        for length in (source_length, target_length)
    )
    target = target.sort(1, descending=True).values  # padding last, as a decoder wants it
    with torch.set_grad_enabled(data.draw(st.booleans())):
        out = run(model, source, target)
    assert out.shape == ((batch, 3) if task == "classifier" else (batch, target_length, 23))
    assert bool(out.isfinite().all())
    if out.requires_grad:
        gradients = torch.autograd.grad(out.sum(), list(model.parameters()), allow_unused=True)
        assert all(bool(gradient.isfinite().all()) for gradient in gradients if gradient is not None)


@pytest.mark.parametrize("task", TASKS)
def test_training_is_random_and_evaluation_is_not(build: Build, some_ids: Ids, task: str) -> None:
    model, source, target = build(task, dropout=0.3), some_ids(2, 5), some_ids(2, 5)
    assert torch.equal(run(model, source, target), run(model, source, target))
    model.train()
    torch.manual_seed(1)
    first, second = run(model, source, target), run(model, source, target)
    torch.manual_seed(1)
    assert torch.equal(run(model, source, target), first)
    assert not torch.equal(first, second)


@pytest.mark.parametrize("task", TASKS)
def test_masks_and_random_numbers_are_made_on_the_device_of_the_input(build: Build, some_ids: Ids, task: str) -> None:
    """Where another device is the default, a tensor made without naming its device could not meet the others."""
    model, source, target = build(task, dropout=0.3, attention_dropout=0.3).train(), some_ids(2, 5), some_ids(2, 5)
    source[0, 4] = target[1, 4] = PAD
    torch.manual_seed(1)
    expected = run(model, source, target)
    torch.manual_seed(1)
    with torch.device("meta"):
        assert torch.equal(run(model, source, target), expected)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_precisions(build: Build, some_ids: Ids, task: str, dtype: torch.dtype) -> None:
    model, source, target = build(task), some_ids(2, 80), some_ids(2, 70)
    expected = run(model, source, target)
    found = run(model.to(dtype), source, target)
    assert found.dtype == dtype
    torch.testing.assert_close(found.float(), expected, atol=1e-5 if dtype == torch.float64 else 0.2, rtol=0)


@pytest.mark.parametrize("task", TASKS)
def test_mixed_precision_learns(build: Build, some_ids: Ids, task: str) -> None:
    model = build(task).train()
    with torch.autocast("cpu", torch.bfloat16):
        run(model, some_ids(2, 5), some_ids(2, 5)).float().square().sum().backward()
    assert all(weight.grad is not None and bool(weight.grad.isfinite().all()) for weight in model.parameters())


@pytest.mark.parametrize("task", TASKS)
def test_weights_can_be_saved_and_loaded_and_hold_nothing_else(build: Build, some_ids: Ids, task: str) -> None:
    model, source, target = build(task), some_ids(2, 5), some_ids(2, 5)
    copy = build(task)
    assert not torch.equal(run(copy, source, target), run(model, source, target))
    copy.load_state_dict(model.state_dict())
    assert torch.equal(run(copy, source, target), run(model, source, target))
    assert list(model.state_dict()) == [name for name, _ in model.named_parameters()]


def test_one_matrix_serves_source_target_and_output(build: Build, some_ids: Ids) -> None:
    model = build("translator")
    assert [name for name, weight in model.named_parameters() if weight.shape[0] == 23] == ["embed.tokens.weight"]
    states = model.states(some_ids(2, 3), some_ids(2, 4))
    torch.testing.assert_close(model.logits(states), states @ model.embed.tokens.weight.T)


def test_any_kind_of_integers(build: Build, some_ids: Ids) -> None:
    model, source, target = build("translator"), some_ids(2, 3), some_ids(2, 4)
    assert torch.equal(model(source.int(), target.int()), model(source, target))


class TestPooling:
    states = torch.tensor([[[1.0, -8.0], [3.0, -4.0], [100.0, 100.0]], [[5.0, -5.0]] * 3, [[7.0, 7.0]] * 3])
    real = torch.tensor([[True, True, False], [True, False, False], [False] * 3])

    def test_mean_and_max_of_real_tokens_and_zeros_without_any(self) -> None:
        assert pool(self.states, self.real, "mean").tolist() == [[2, -6], [5, -5], [0, 0]]
        assert pool(self.states, self.real, "max").tolist() == [[3, -4], [5, -5], [0, 0]]

    @pytest.mark.parametrize("how", ["mean", "max"])
    def test_no_positions_at_all(self, how: str) -> None:
        assert torch.equal(pool(torch.zeros(2, 0, 3), torch.zeros(2, 0, dtype=torch.bool), how), torch.zeros(2, 3))

    @pytest.mark.parametrize("how", ["mean", "max"])
    def test_padding_learns_nothing(self, how: str) -> None:
        states = self.states.clone().requires_grad_()
        pool(states, self.real, how).sum().backward()
        assert states.grad is not None
        assert bool((states.grad[~self.real] == 0).all())
        assert bool(states.grad.isfinite().all())

    def test_the_classifier_pools_as_its_config_says(self, build: Build, some_ids: Ids) -> None:
        for how in ("mean", "max"):
            model, text = build("classifier", pooling=how), padded(some_ids(2, 4), 2)
            assert torch.equal(model.pooled(text), pool(model.encode(text), text != PAD, how))
            assert torch.equal(model(text), model.head(model.pooled(text)))
        model = build("classifier", pooling="answers")
        assert torch.equal(model.pooled(text), pool(model.encode(text), text != PAD, "max"))


class TestBadInput:
    @pytest.mark.parametrize("wrong", [-1, 23])
    @pytest.mark.parametrize("task", TASKS)
    def test_ids_outside_the_vocabulary(self, build: Build, some_ids: Ids, task: str, wrong: int) -> None:
        ids = some_ids(2, 4)
        ids[1, 2] = wrong
        with pytest.raises(ShapeError, match=rf"id {wrong} .*vocabulary of 23.*0 to 22"):
            run(build(task), some_ids(2, 3), ids)

    @pytest.mark.parametrize("task", TASKS)
    def test_a_text_longer_than_learned_positions(self, build: Build, some_ids: Ids, task: str) -> None:
        model = build(task, positions="learned", max_length=5)
        run(model, some_ids(1, 5), some_ids(1, 5))
        with pytest.raises(ShapeError, match=r"6 tokens.*end at 5"):
            run(model, some_ids(1, 5), some_ids(1, 6))

    def test_decoding_past_the_end_of_learned_positions(self, build: Build, some_ids: Ids) -> None:
        model = build("language_model", positions="learned", max_length=3)
        _, cache = model.decode(some_ids(1, 3))
        with pytest.raises(ShapeError, match=r"4 tokens.*end at 3"):
            model.decode(some_ids(1, 1), cache)

    @pytest.mark.parametrize(
        ("model", "task"), [(Translator, "language_model"), (LanguageModel, "classifier"), (Classifier, "translator")]
    )
    def test_a_config_for_another_task(
        self, build: Build, model: Callable[[ModelConfig], nn.Module], task: str
    ) -> None:
        with pytest.raises(ConfigError, match=r"needs a \w+Config, not a \w+Config"):
            model(build(task).config)


def test_the_notebook_s_classifier_lets_every_token_answer(build: Any) -> None:
    model = build("classifier", pooling="answers", classes=3)
    text = torch.tensor([[5, 6, 7, 0], [8, 9, 4, 6]])
    answers = model.head(model.encode(text))
    expected = torch.stack((answers[0, :3].amax(0), answers[1].amax(0)))
    torch.testing.assert_close(model(text), expected)


def test_padding_before_a_real_token_is_refused(build: Any) -> None:
    with pytest.raises(ShapeError, match="only at the end"):
        build("language_model").decode(torch.tensor([[0, 0, 5]]))


def test_a_cache_of_another_model_is_refused(build: Any) -> None:
    small, large = build("language_model", decoder_layers=1), build("language_model", decoder_layers=2)
    _, cache = small.decode(torch.tensor([[5]]))
    with pytest.raises(ShapeError, match="remember"):
        large.decode(torch.tensor([[5]]), cache)


@pytest.mark.parametrize("dtype", [torch.int16, torch.uint8, torch.float32])
def test_ids_of_a_type_that_cannot_be_looked_up(dtype: torch.dtype) -> None:
    with pytest.raises(ShapeError, match="int64"):
        TokenEmbedding.forward.__wrapped__(TokenEmbedding(9, 4), torch.ones(1, 2, dtype=dtype))


def test_sinusoids_are_not_rounded_for_ever_by_a_visit_to_half_precision(build: Any) -> None:
    model, text = build("classifier"), torch.tensor([[5, 6, 7]])
    before = model(text)
    assert not torch.equal(model.bfloat16()(text).float(), before)
    positions = model.float().embed.positions(torch.zeros(1, 3, model.config.d_model))
    torch.testing.assert_close(positions[0], sinusoids(3, model.config.d_model), rtol=0, atol=0)
