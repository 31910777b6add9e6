"""Bans, bias, repeated n-grams, prefixes and lengths, through beam search and sampling."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import END, PLAIN, START, TOLERANCE, ToyModel, consistent

from jumok.errors import ConfigError
from jumok.search.beam import beam_search
from jumok.search.constraints import Constraints
from jumok.search.sampling import sample
from jumok.tokenizer import BOS, PAD, UNK

SEEDS = st.integers(0, 2**31)
WORDS = st.integers(2, 6)


def all_outputs(model, limits, constraints, prefixes=None):
    """Outputs of beam, greedy and random search for the same sentences: [(sentence, hypothesis)]."""
    runs = [
        beam_search(model.step, model.cache(), limits, beam=k, n_best=k, constraints=constraints, prefixes=prefixes)
        for k in (1, 4)
    ]
    seeds = list(range(len(limits)))
    options = {"seeds": seeds, "samples": 3, "constraints": constraints, "prefixes": prefixes}
    runs.append(sample(model.step, model.cache(), limits, **options))
    return [(sentence, h) for run in runs for sentence, hypotheses in enumerate(run) for h in hypotheses]


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 3), limit=st.integers(1, 15))
def test_no_ngram_stands_twice(seed, n, limit):
    model = ToyModel.random([seed, seed + 1], 6)
    for _, found in all_outputs(model, [limit, limit], replace(PLAIN, no_repeat_ngram=n, bias={END: -3.0})):
        ngrams = [tuple(found.ids[i : i + n]) for i in range(len(found.ids) - n + 1)]
        assert len(ngrams) == len(set(ngrams))


def test_other_outputs_are_not_touched_by_the_ngram_rule():
    model = ToyModel.random([5], 5)
    everything = [ids for _, ids in model.everything(0, 4, 1.0)]
    expected = [ids for ids in everything if len(set(pairwise(ids))) == len(ids[1:])]
    [found] = beam_search(
        model.step, model.cache(), [4], beam=200, n_best=9, constraints=replace(PLAIN, no_repeat_ngram=2)
    )
    assert [h.ids for h in found] == expected[:9]


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, prefixes=st.lists(st.lists(WORDS, max_size=5), min_size=1, max_size=4), extra=st.integers(0, 4))
def test_prefixes_are_honoured_and_counted(seed, prefixes, extra):
    model = ToyModel.random([seed + number for number in range(len(prefixes))], 7)
    limits = [max(1, len(prefix) + extra) for prefix in prefixes]
    # Even what is banned or would be a repetition may be asked for.
    constraints = replace(PLAIN, banned=(START, 2), no_repeat_ngram=1)
    for sentence, found in all_outputs(model, limits, constraints, prefixes):
        assert found.ids[: len(prefixes[sentence])] == prefixes[sentence]
        assert 2 not in found.ids[len(prefixes[sentence]) :]
        assert consistent(model, sentence, found, 1.0)


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS,
    prefixes=st.lists(st.lists(WORDS, max_size=5), min_size=1, max_size=4),
    extra=st.integers(0, 4),
    n=st.integers(0, 2),
    bias=st.dictionaries(WORDS, st.floats(-3, 3), max_size=2),
)
def test_prefixes_in_one_pass_give_the_same(seed, prefixes, extra, n, bias):
    limits = [max(1, len(prefix) + extra) for prefix in prefixes]
    options = {"constraints": replace(PLAIN, no_repeat_ngram=n, bias=bias), "prefixes": prefixes}
    searches = [
        lambda model, **more: beam_search(model.step, model.cache(), limits, beam=3, n_best=3, **options, **more),
        lambda model, **more: beam_search(model.step, model.cache(), limits, beam=1, **options, **more),
        lambda model, **more: sample(
            model.step, model.cache(), limits, seeds=list(range(len(limits))), samples=3, **options, **more
        ),
    ]
    for search in searches:
        model = ToyModel.random([seed + number for number in range(len(prefixes))], 7)
        slowly, steps = search(model), model.steps
        model.steps = 0
        quickly = search(model, prefill=model.prefill)
        shared = min(map(len, prefixes))
        assert model.steps == steps - shared + (shared > 0)
        for one, other in zip(slowly, quickly, strict=True):
            assert [h.ids for h in one] == [h.ids for h in other]
            assert [h.finished for h in one] == [h.finished for h in other]
            assert all(abs(a.score - b.score) < TOLERANCE for a, b in zip(one, other, strict=True))
            assert all(
                abs(a - b) < TOLERANCE
                for h, g in zip(one, other, strict=True)
                for a, b in zip(h.log_probs, g.log_probs, strict=True)
            )


def test_a_prefix_as_brute_force_sees_it():
    model = ToyModel.random([3], 6)
    expected = [(score, ids) for score, ids in model.everything(0, 4, 0.6) if ids[:2] == [4, 2]]
    [found] = beam_search(
        model.step,
        model.cache(),
        [4],
        beam=100,
        n_best=21,
        length_penalty=0.6,
        constraints=PLAIN,
        prefixes=[[4, 2]],
    )
    assert [h.ids for h in found] == [ids for _, ids in expected]


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, least=st.integers(0, 6), more=st.integers(1, 4))
def test_lengths_stay_between_their_limits(seed, least, more):
    model = ToyModel.random([seed, seed + 1], 6)
    limits = [max(1, least), least + more]
    for sentence, found in all_outputs(model, limits, replace(PLAIN, min_length=least)):
        assert least <= len(found.ids) <= limits[sentence]


def test_an_output_that_cannot_go_on_is_cut_rather_than_lost():
    model = ToyModel.random([1], 5)  # three words, none of which may come twice
    for _, found in all_outputs(model, [9], replace(PLAIN, min_length=8, no_repeat_ngram=1)):
        assert sorted(found.ids) == [2, 3, 4]
        assert not found.finished


def test_bias_is_added_and_counts():
    model = ToyModel.random([8], 6)
    biased = ToyModel([model.tables[0] + torch.tensor([0.0, 0.0, -2.0, 3.0, 0.0, 0.0])])
    for penalty in (0.0, 1.0):
        expected = biased.everything(0, 3, penalty)[:10]
        [found] = beam_search(
            model.step,
            model.cache(),
            [3],
            beam=100,
            n_best=10,
            length_penalty=penalty,
            constraints=replace(PLAIN, bias={2: -2.0, 3: 3.0}),
        )
        assert [h.ids for h in found] == [ids for _, ids in expected]
        assert all(abs(h.score - score) < TOLERANCE for h, (score, _) in zip(found, expected, strict=True))


def test_banned_ids_never_come():
    model = ToyModel.random([1, 2], 6)
    for _, found in all_outputs(model, [8, 8], replace(PLAIN, banned=(START, 3, 5), bias={3: 9.0, END: -2.0})):
        assert set(found.ids) <= {2, 4}


def test_by_default_special_tokens_and_empty_outputs_never_come():
    table = torch.zeros(1, 8, 8, dtype=torch.float64)
    table[:, :, [PAD, UNK, BOS]] = 6.0
    table[:, :, 3] = 3.0
    table = table.log_softmax(2)

    class NoCache:
        def reorder(self, rows, sentences=None):
            return self

    def step(ids, cache):
        return table[0, ids[:, 0]], cache

    found = beam_search(step, NoCache(), [5], n_best=5)[0] + sample(step, NoCache(), [5], seeds=[1], samples=5)[0]
    assert all(h.ids and min(h.ids) > 3 for h in found)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"no_repeat_ngram": -1}, "no_repeat_ngram is -1"),
        ({"min_length": -2}, "min_length is -2"),
        ({"banned": (3,)}, "banned holds 3"),
        ({"banned": (-4,)}, "-4 is not a token id"),
        ({"bias": {7: float("inf")}}, "The bias of id 7 is inf.*ban it"),
    ],
)
def test_bad_constraints_are_named(options, message):
    with pytest.raises(ConfigError, match=message):
        Constraints(**options)


@pytest.mark.parametrize(
    ("limits", "prefixes", "options", "message"),
    [
        ([3, 0], None, {}, "longest length of sentence 1 is 0; it must be at least 1"),
        ([3], None, {"min_length": 4}, "longest length of sentence 0 is 3; it must be at least 4"),
        ([3], [[2], [2]], {}, "2 prefixes for 1 sentences"),
        ([3], [[2, 2, 2, 2]], {}, "prefix of sentence 0 has 4 tokens, more than its longest length 3"),
        ([3], [[2, END]], {}, "may not contain the end"),
        ([3], [[-1]], {}, "negative ids"),
        ([3], [[9]], {}, "names id 9; the vocabulary ends at 4"),
        ([3], None, {"bias": {8: 1.0}}, "names id 8"),
    ],
)
def test_bad_requests_are_named(limits, prefixes, options, message):
    model = ToyModel.random([0] * len(limits), 5)
    with pytest.raises(ConfigError, match=message):
        beam_search(model.step, model.cache(), limits, prefixes=prefixes, constraints=replace(PLAIN, **options))
