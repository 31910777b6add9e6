"""Decoding with a cache: the same numbers as without, whatever the steps, and no work done twice."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from jumok.errors import ShapeError
from jumok.model.cache import DecoderCache, KeyValues

TEXT = 8  # tokens
SETTINGS = [
    {"norm": "post", "positions": "sinusoidal"},
    {"norm": "pre", "positions": "learned", "d_k": 3, "d_v": 5},
    {"norm": "pre", "rotary": True},
]
compositions = st.lists(st.integers(1, TEXT), min_size=1).map(
    lambda steps: [step for end, step in enumerate(steps) if sum(steps[: end + 1]) <= TEXT]
)


def decode_in_steps(model: Any, ids: Tensor, context: Any, steps: list[int]) -> tuple[Tensor, DecoderCache]:
    """`steps` tokens at a time, then the rest at once."""
    states, start = [], 0
    for step in [*steps, ids.shape[1] - sum(steps)]:
        state, context = model.decode(ids[:, start : start + step], context)
        states.append(state)
        start += step
    return torch.cat(states, 1), context


@settings(max_examples=30)
@given(
    changes=st.sampled_from(SETTINGS),
    task=st.sampled_from(["translator", "language_model"]),
    learning=st.booleans(),
    steps=compositions,
)
def test_any_split_of_the_steps_gives_what_one_pass_gives(
    build: Callable[..., Any],
    some_ids: Callable[..., Tensor],
    changes: dict[str, Any],
    task: str,
    learning: bool,
    steps: list[int],
) -> None:
    model, ids, source = build(task, **changes).double(), some_ids(3, TEXT), some_ids(3, 5)
    source[1, 3:] = 0
    with torch.set_grad_enabled(learning):
        context = model.encode(source) if task == "translator" else None
        whole, _ = model.decode(ids, context)
        stepwise, cache = decode_in_steps(model, ids, context, steps)
    torch.testing.assert_close(stepwise, whole, atol=1e-12, rtol=0)
    assert cache.length == TEXT


@pytest.mark.parametrize("task", ["translator", "language_model"])
def test_token_by_token_in_single_precision(
    build: Callable[..., Any], some_ids: Callable[..., Tensor], task: str
) -> None:
    model, ids = build(task), some_ids(2, 24)
    with torch.inference_mode():
        context = model.encode(some_ids(2, 6)) if task == "translator" else None
        stepwise, _ = decode_in_steps(model, ids, context, [1] * 24)
        torch.testing.assert_close(stepwise, model.decode(ids, context)[0], atol=1e-5, rtol=0)


def test_learning_through_a_cache_gives_the_same_gradients(
    build: Callable[..., Any], some_ids: Callable[..., Tensor]
) -> None:
    model, ids = build("language_model").double(), some_ids(2, 6)
    weights = list(model.parameters())
    whole = torch.autograd.grad(model.decode(ids)[0][:, ::2].square().sum(), weights)
    stepwise = torch.autograd.grad(decode_in_steps(model, ids, None, [1, 3])[0][:, ::2].square().sum(), weights)
    for expected, found in zip(whole, stepwise, strict=True):
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=0)


def test_only_some_of_the_steps_may_learn() -> None:
    past, learning, fixed = (torch.randn(1, 1, 2, 3) for _ in range(3))
    learning.requires_grad_()
    first = KeyValues(past, past).append(learning, learning)
    loss = first.keys.square().sum()
    second = first.append(fixed, fixed)
    (gradient,) = torch.autograd.grad(loss + second.keys.square().sum(), learning)
    torch.testing.assert_close(gradient, 4 * learning)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=12))
def test_caches_that_branch_at_will_keep_what_they_hold(branches: list[tuple[int, int]]) -> None:
    """Continue any older cache at any time: each always holds exactly its own history."""
    first = torch.randn(2, 1, 3, 2)
    caches, histories = [KeyValues(first, -first)], [first]
    for which, length in branches:
        origin, new = which % len(caches), torch.randn(2, 1, length, 2)
        caches.append(caches[origin].append(new, -new))
        histories.append(torch.cat((histories[origin], new), 2))
        for cache, history in zip(caches, histories, strict=True):
            assert torch.equal(cache.keys, history)
            assert torch.equal(cache.values, -history)
            assert cache.length == history.shape[2]


@torch.no_grad()
def test_two_futures_from_one_past(build: Callable[..., Any], some_ids: Callable[..., Tensor]) -> None:
    model, past, one, other = build("language_model").double(), some_ids(2, 4), some_ids(2, 3), some_ids(2, 3)
    _, start = model.decode(past)
    _, start = model.decode(past[:, :1], start)  # now with room to spare
    start_ids = torch.cat((past, past[:, :1]), 1)
    contexts, found = [start, start], [[], []]
    for step in range(3):  # in turns, each time from where that future stopped
        for future, ids in enumerate((one, other)):
            state, contexts[future] = model.decode(ids[:, step : step + 1], contexts[future])
            found[future].append(state)
    for future, ids in enumerate((one, other)):
        expected = model.states(torch.cat((start_ids, ids), 1))[:, 5:]
        torch.testing.assert_close(torch.cat(found[future], 1), expected, atol=1e-12, rtol=0)
    assert start.length == 5


@torch.no_grad()
def test_a_step_writes_behind_the_past_and_copies_it_seldom() -> None:
    cache = KeyValues(torch.randn(2, 3, 1, 4), torch.randn(2, 3, 1, 5))
    history, places = [cache.keys], []
    for _ in range(1000):
        new = torch.randn(2, 3, 1, 4)
        cache = cache.append(new, torch.randn(2, 3, 1, 5))
        history.append(new)
        places.append((cache.keys.data_ptr(), cache.values.data_ptr()))
    moves = sum(before != after for before, after in pairwise(places))
    assert moves <= 7  # from 16 places by doubling: 32, 64 … 2048
    assert torch.equal(cache.keys, torch.cat(history, 2))


@torch.no_grad()
def test_the_memory_is_projected_once_and_never_copied(
    build: Callable[..., Any], some_ids: Callable[..., Tensor]
) -> None:
    model, projections = build("translator"), []
    for layer in model.decoder.layers:
        layer.cross_attention.key_value.register_forward_hook(lambda *_: projections.append(1))
    source = some_ids(2, 5)
    source[0, 4] = 0
    context, keys_at, mask_at = model.encode(source), set(), set()
    for _ in range(10):
        _, context = model.decode(some_ids(2, 1), context)
        context = context.reorder(torch.tensor([1, 0]))
        keys_at.add(tuple(tensor.data_ptr() for layer in context.memory for tensor in (layer.keys, layer.values)))
        mask_at.add(context.memory_mask.data_ptr())
    assert len(projections) == len(model.decoder.layers)
    assert len(keys_at) == len(mask_at) == 1


@torch.no_grad()
def test_several_hypotheses_of_a_sentence_are_like_repeating_the_source(
    build: Callable[..., Any], some_ids: Callable[..., Tensor]
) -> None:
    model, source, ids = build("translator").double(), some_ids(2, 5), some_ids(6, 4)
    source[1, 2:] = 0
    expected = model.states(source.repeat_interleave(3, 0), ids)
    together, _ = model.decode(ids, model.encode(source))
    torch.testing.assert_close(together, expected, atol=1e-12, rtol=0)
    stepwise, _ = decode_in_steps(model, ids, model.encode(source), [1, 1])
    torch.testing.assert_close(stepwise, expected, atol=1e-12, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("changes", SETTINGS, ids=["post", "pre", "rotary"])
def test_beams_that_move_multiply_and_leave(
    build: Callable[..., Any], some_ids: Callable[..., Tensor], changes: dict[str, Any]
) -> None:
    """Rows repeated and dropped, sentences leaving, all the way compared with decoding every row from its beginning."""
    model, source = build("translator", **changes).double(), some_ids(3, 5)
    source[2, 3:] = 0
    context, ids = model.encode(source), some_ids(3, 1)

    def advance(rows: list[int], sentences: list[int] | None = None) -> None:
        nonlocal context, ids, source
        state, context = model.decode(ids[:, -1:], context)
        sources = source.repeat_interleave(len(ids) // len(source), 0)
        torch.testing.assert_close(state[:, 0], model.states(sources, ids)[:, -1], atol=1e-12, rtol=0)
        context = context.reorder(torch.tensor(rows), None if sentences is None else torch.tensor(sentences))
        if sentences is not None:
            source = source[sentences]
        ids = torch.cat((ids[rows], some_ids(len(rows), 1)), 1)

    advance([0, 0, 1, 1, 2, 2])  # two hypotheses each
    advance([1, 0, 2, 2, 5, 4])  # swapped, one of them twice
    advance([4, 4, 5, 0, 1, 1], [2, 0])  # the middle sentence is finished, the others change places
    advance([1, 1, 0, 5, 3, 3])  # three hypotheses each
    advance([3], [1])  # one is left
    advance([0])
    assert context.length == ids.shape[1] - 1 == 6


@torch.no_grad()
def test_reordering_leaves_the_old_cache_as_it_was_and_keeps_its_room() -> None:
    cache = KeyValues(torch.randn(3, 1, 2, 2), torch.randn(3, 1, 2, 2)).append(
        torch.randn(3, 1, 1, 2), torch.randn(3, 1, 1, 2)
    )
    keys, before = cache.keys.clone(), cache
    moved = cache.reorder(torch.tensor([2, 2, 0, 1]))
    place = moved.keys.data_ptr()
    moved = moved.append(torch.zeros(4, 1, 1, 2), torch.zeros(4, 1, 1, 2))
    assert moved.keys.data_ptr() == place
    assert torch.equal(moved.keys[:, :, :3], keys[[2, 2, 0, 1]])
    assert torch.equal(before.keys, keys)


def test_a_cache_from_inference_can_be_continued_outside_of_it(
    build: Callable[..., Any], some_ids: Callable[..., Tensor]
) -> None:
    model, ids = build("language_model").double(), some_ids(2, 6)
    with torch.inference_mode():
        _, cache = decode_in_steps(model, ids[:, :4], None, [1, 1, 1])
    with torch.no_grad():
        stepwise, _ = decode_in_steps(model, ids[:, 4:], cache, [1])
        torch.testing.assert_close(stepwise, model.states(ids)[:, 4:], atol=1e-12, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("rows", [1, 2, 6])
@pytest.mark.usefixtures("without_shape_checks")
def test_rows_that_are_not_the_cache_s(build: Callable[..., Any], some_ids: Callable[..., Tensor], rows: int) -> None:
    """One row must not be spread over three in silence."""
    model = build("language_model")
    _, cache = model.decode(some_ids(3, 2))
    with pytest.raises(ShapeError, match=rf"{rows} rows.*cache of 3 rows.*reorder"):
        model.decode(some_ids(rows, 1), cache)


@pytest.mark.usefixtures("without_shape_checks")
def test_target_rows_that_cannot_be_shared_among_the_sentences(
    build: Callable[..., Any], some_ids: Callable[..., Tensor]
) -> None:
    with pytest.raises(ShapeError, match=r"3 rows.*2 sentences.*multiple of 2"):
        build("translator")(some_ids(2, 4), some_ids(3, 4))


def test_a_decoder_without_an_encoder_goes_on_with_some_of_its_sentences(build: Callable[..., Any]) -> None:
    model = build("language_model")
    ids = torch.tensor([[5, 6], [7, 8], [9, 10]])
    _, cache = model.decode(ids)
    rows = torch.tensor([2, 0])
    states, _ = model.decode(torch.tensor([[4], [11]]), cache.reorder(rows, rows))
    expected, _ = model.decode(torch.tensor([[9, 10, 4], [5, 6, 11]]))
    torch.testing.assert_close(states[:, 0], expected[:, 2])
