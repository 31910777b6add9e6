"""Random search: the right distribution, the right tokens, and the same outputs whoever is in the batch."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import END, PLAIN, START, ToyModel, consistent

from jumok.errors import ConfigError, JumokError
from jumok.search.beam import beam_search
from jumok.search.sampling import _probable, sample

SEEDS = st.integers(0, 2**31)


def chi_square(counts, probabilities, draws):
    return sum((counts[k] - draws * p) ** 2 / (draws * p) for k, p in probabilities.items())


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_outputs_come_as_often_as_their_probability_says(temperature):
    model = ToyModel.random([4], 5, sharpness=1.0)
    draws = 4000
    found = sample(
        model.step,
        model.cache(),
        [2],
        seeds=[11],
        samples=draws,
        temperature=temperature,
        constraints=replace(PLAIN, banned=()),
    )
    counts = Counter(tuple(h.ids) for h in found[0])
    table = (model.tables[0] / temperature).softmax(2)
    expected: dict[tuple[int, ...], float] = {(): float(table[0, START, END])}
    for a in range(1, 5):
        expected[(a,)] = float(table[0, START, a] * table[1, a, END])
        for b in range(1, 5):  # cut at two tokens, so whatever would have followed is all in here
            expected[(a, b)] = float(table[0, START, a] * table[1, a, b])
    assert abs(sum(expected.values()) - 1) < 1e-9
    assert sum(counts.values()) == draws
    # 20 degrees of freedom: above 45.3 with probability 0.001; the draws are the same in every run.
    assert chi_square(counts, expected, draws) < 45.3


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
    model = ToyModel.random([9], 8)
    everyone = sample(model.step, model.cache(), [3], seeds=[5], samples=300, constraints=PLAIN, **options)[0]
    for found in everyone:
        for t, token in enumerate(found.ids):
            scores = model.log_probs(0, [START, *found.ids[:t]]).clone()
            scores[START] = -torch.inf
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
    model = ToyModel.random(seeds, 9, 12)
    limits = [2 + seed % 9 for seed in seeds]

    def search(some, some_limits, some_seeds):
        return sample(
            some.step,
            some.cache(),
            some_limits,
            seeds=some_seeds,
            samples=samples,
            top_p=top_p,
            top_k=top_k,
            constraints=PLAIN,
        )

    together = search(model, limits, seeds)
    assert together == search(model, limits, seeds)
    for number, found in enumerate(together):
        assert search(ToyModel([model.tables[number]]), [limits[number]], [seeds[number]]) == [found]
        assert len(found) == samples
        assert all(consistent(model, number, h, 1.0) for h in found)
        assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)


def test_more_samples_begin_with_the_same_ones_and_other_seeds_differ():
    model = ToyModel.random([1], 12, 12)
    few, more, others = (
        {tuple(h.ids) for h in sample(model.step, model.cache(), [9], seeds=[s], samples=n, constraints=PLAIN)[0]}
        for s, n in ((1, 3), (1, 8), (2, 3))
    )
    assert few < more
    assert few != others


def test_temperature_zero_is_greedy_search():
    model = ToyModel.random([1, 2, 3], 9)
    greedy = beam_search(model.step, model.cache(), [5, 6, 7], beam=1, constraints=PLAIN)
    for temperature in (0.0, 1e-9):
        found = sample(
            model.step,
            model.cache(),
            [5, 6, 7],
            seeds=[1, 2, 3],
            samples=2,
            temperature=temperature,
            constraints=PLAIN,
        )
        assert [[h.ids for h in hypotheses] for hypotheses in found] == [[h.ids for h in g * 2] for g in greedy]


def test_an_empty_batch_gives_an_empty_result():
    model = ToyModel([])
    assert sample(model.step, model.cache(), [], seeds=[]) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -0.1}, "temperature is -0.1; it must be 0"),
        ({"temperature": float("inf")}, "temperature is inf"),
        ({"top_p": 0.0}, "top_p is 0.0; it must be above 0"),
        ({"top_p": 1.5}, "top_p is 1.5"),
        ({"top_k": -1}, "top_k is -1"),
        ({"samples": 0}, "samples is 0"),
        ({"seeds": [1, 2]}, "2 seeds for 1 sentences"),
        ({"length_penalty": -1.0}, "length_penalty is -1.0"),
    ],
)
def test_bad_options_are_named(options, message):
    model = ToyModel.random([0], 5)
    with pytest.raises(ConfigError, match=message):
        sample(model.step, model.cache(), [3], constraints=PLAIN, **{"seeds": [1], **options})


@pytest.mark.parametrize("value", [torch.nan, -torch.inf])
def test_a_broken_model_is_an_error(value):
    model = ToyModel([torch.full((1, 5, 5), value)])
    with pytest.raises(JumokError, match="NaN probabilities"):
        sample(model.step, model.cache(), [3], seeds=[1], constraints=PLAIN)
