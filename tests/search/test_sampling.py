"""Random search: the right distribution, the right tokens, and the same outputs whoever is in the batch."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import WORD, ToyModel, consistent

from jumok.errors import JumokError
from jumok.search.beam import beam_search
from jumok.search.constraints import Rules
from jumok.search.sampling import _draw, _probable, sample
from jumok.tokenizer import BOS, EOS

SEEDS = st.integers(0, 2**31)


def chi_square(counts, probabilities, draws):
    return sum((counts[k] - draws * p) ** 2 / (draws * p) for k, p in probabilities.items())


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_outputs_come_as_often_as_their_probability_says(temperature):
    model = ToyModel.random([4], 4, sharpness=1.0)
    draws = 4000
    found = sample(model.step, model.cache(), Rules([2]), seeds=[11], samples=draws, temperature=temperature)
    counts = Counter(tuple(h.ids) for h in found[0])
    scores = model.tables[0] / temperature
    scores[:, :, :EOS] = -torch.inf
    scores[0, :, EOS] = -torch.inf
    table = scores.softmax(2)
    expected: dict[tuple[int, ...], float] = {}
    for a in range(WORD, WORD + 4):
        expected[(a,)] = float(table[0, BOS, a] * table[1, a, EOS])
        for b in range(WORD, WORD + 4):  # cut at two tokens, so whatever would have followed is all in here
            expected[(a, b)] = float(table[0, BOS, a] * table[1, a, b])
    assert abs(sum(expected.values()) - 1) < 1e-9
    assert sum(counts.values()) == draws
    # 19 degrees of freedom: above 43.8 with probability 0.001; the draws are the same in every run.
    assert chi_square(counts, expected, draws) < 43.8


@settings(max_examples=50, deadline=None)
@given(
    seed=SEEDS,
    top_k=st.integers(0, 12),
    top_p=st.floats(0.01, 1.0),
    sharpness=st.floats(0.1, 5.0),
    ties=st.booleans(),
)
def test_only_the_nucleus_is_drawn_from(seed, top_k, top_p, sharpness, ties):
    scores = torch.randn(3, 40, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * sharpness
    log_probs = (scores.round() if ties else scores).log_softmax(1)
    ids, weights = _probable(log_probs, top_k, top_p)
    for row in range(3):
        order = sorted(range(40), key=lambda token: (-float(log_probs[row, token]), token))
        order = order[: top_k or 40]
        mass = sum(float(log_probs[row, token].exp()) for token in order)
        reached, nucleus = 0.0, []
        for token in order:
            if reached >= top_p - 1e-9:
                break
            nucleus.append(token)
            reached += float(log_probs[row, token].exp()) / mass
        kept = {int(token) for token, weight in zip(ids[row], weights[row], strict=True) if weight > 0}
        # A token that brings the sum to top_p within rounding may or may not be followed by one more.
        assert kept == set(nucleus) or (abs(reached - top_p) < 1e-8 and kept == set(order[: len(nucleus) + 1]))
        shares = weights[row] / weights[row].sum()
        for token, share in zip(ids[row].tolist(), shares.tolist(), strict=True):
            if share:
                inside = sum(float(log_probs[row, other].exp()) for other in kept)
                assert share == pytest.approx(float(log_probs[row, token].exp()) / inside)


@pytest.mark.parametrize("options", [{"top_k": 2}, {"top_p": 0.6}, {"top_k": 3, "top_p": 0.5, "temperature": 1.7}])
def test_tokens_outside_the_nucleus_never_come(options):
    model = ToyModel.random([9], 6)
    everyone = sample(model.step, model.cache(), Rules([3]), seeds=[5], samples=300, **options)[0]
    for found in everyone:
        for t, token in enumerate(found.ids):
            scores = model.log_probs(0, [BOS, *found.ids[:t]]).clone()
            scores[: EOS if t else WORD] = -torch.inf
            ids, weights = _probable(
                scores[None] / options.get("temperature", 1.0), options.get("top_k", 0), options.get("top_p", 1.0)
            )
            assert token in ids[weights > 0].tolist()
    assert len({tuple(found.ids) for found in everyone}) > 1


@settings(max_examples=20, deadline=None)
@given(
    seeds=st.lists(SEEDS, min_size=1, max_size=5),
    samples=st.integers(1, 3),
    top_p=st.sampled_from([1.0, 0.8]),
    top_k=st.sampled_from([0, 4]),
)
def test_neighbours_change_nothing(seeds, samples, top_p, top_k):
    model = ToyModel.random(seeds, 7, 12)
    limits = [2 + seed % 9 for seed in seeds]

    def search(some, some_limits, some_seeds):
        return sample(
            some.step,
            some.cache(),
            Rules(some_limits),
            seeds=some_seeds,
            samples=samples,
            top_p=top_p,
            top_k=top_k,
        )

    together = search(model, limits, seeds)
    assert together == search(model, limits, seeds)
    for number, found in enumerate(together):
        assert search(ToyModel([model.tables[number]]), [limits[number]], [seeds[number]]) == [found]
        assert len(found) == samples
        assert all(consistent(model, number, h, 1.0) for h in found)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_more_samples_begin_with_the_same_ones_and_other_seeds_differ():
    model = ToyModel.random([1], 10, 12)
    few, more, others = (
        {tuple(h.ids) for h in sample(model.step, model.cache(), Rules([9]), seeds=[s], samples=n)[0]}
        for s, n in ((1, 3), (1, 8), (2, 3))
    )
    assert few < more
    assert few != others


def test_temperature_zero_is_greedy_search():
    model = ToyModel.random([1, 2, 3], 7)
    greedy = beam_search(model.step, model.cache(), Rules([5, 6, 7]), beam=1)
    for temperature in (0.0, 1e-9):
        found = sample(
            model.step,
            model.cache(),
            Rules([5, 6, 7]),
            seeds=[1, 2, 3],
            samples=2,
            temperature=temperature,
        )
        assert [[h.ids for h in hypotheses] for hypotheses in found] == [[h.ids for h in g * 2] for g in greedy]


def test_one_sample_at_temperature_one_unless_asked_for_more():
    model = ToyModel.random([1], 7)
    by_default = sample(model.step, model.cache(), Rules([9]), seeds=[3])
    asked_for = sample(model.step, model.cache(), Rules([9]), seeds=[3], samples=1, temperature=1.0, length_penalty=1.0)
    assert by_default == asked_for
    assert len(by_default[0]) == 1


def test_greedy_search_feeds_prefixes_in_one_pass_too():
    model, rules = ToyModel.random([1], 7), Rules([9], prefixes=[[4, 5, 6]])
    sample(model.step, model.cache(), rules, seeds=[1], temperature=0.0)
    slowly, model.steps = model.steps, 0
    sample(model.step, model.cache(), rules, seeds=[1], temperature=0.0, prefill=model.prefill)
    assert model.steps == slowly - 2


def test_an_empty_batch_gives_an_empty_result():
    model = ToyModel([])
    assert sample(model.step, model.cache(), Rules([]), seeds=[]) == []


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_a_broken_model_is_an_error(value):
    model = ToyModel([torch.full((1, 6, 6), value)])
    with pytest.raises(JumokError, match="NaN probabilities"):
        sample(model.step, model.cache(), Rules([3]), seeds=[1])


def test_a_number_chooses_the_token_in_whose_share_it_falls() -> None:
    """Also where the shares of the tokens that are left do not sum to 1, and at their borders."""
    probabilities = torch.tensor([[0.5, 0.2, 0.2, 0.1]], dtype=torch.float64).expand(6, -1)
    numbers = torch.tensor([0.0, 0.49, 0.5, 0.71, 0.72, 0.999], dtype=torch.float64)
    drawn = _draw(probabilities.log(), numbers, 4, 1.0).tolist()
    assert [{0: 0, 1: 1, 2: 1, 3: 3}[token] for token in drawn] == [0, 0, 1, 1, 1, 3]
    halves = _draw(probabilities[:3].log(), torch.tensor([0.0, 0.7, 0.72], dtype=torch.float64), 2, 1.0).tolist()
    assert halves[0] == halves[1] == 0  # of 0.5 and 0.2 that are left, the first has five sevenths
    assert halves[2] in (1, 2)
    nucleus = _draw(probabilities[:2].log(), torch.tensor([0.5, 0.72], dtype=torch.float64), 0, 0.6).tolist()
    assert nucleus[0] == 0  # also where 0.5 and 0.2 are left by `top_p`
    assert nucleus[1] in (1, 2)


def test_the_nucleus_ends_where_its_probability_is_exactly_reached():
    log_probs = torch.tensor([[0.5, 0.25, 0.125, 0.125]], dtype=torch.float64).log()
    for top_p, size in ((0.5, 1), (0.51, 2), (0.75, 2), (0.76, 3)):
        ids, weights = _probable(log_probs, 0, top_p)
        assert ids[weights > 0].tolist() == list(range(size))
