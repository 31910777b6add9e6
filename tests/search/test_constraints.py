"""Special tokens, bias, repeated n-grams, prefixes and lengths, through beam search and sampling."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import TOLERANCE, WORD, ToyModel, consistent

from jumok.errors import ConfigError
from jumok.search.beam import beam_search
from jumok.search.constraints import Rules
from jumok.search.sampling import sample
from jumok.tokenizer import BOS, EOS, PAD, UNK

SEEDS = st.integers(0, 2**31)
WORDS = st.integers(WORD, WORD + 4)


def all_outputs(model, rules):
    """Outputs of beam, greedy and random search for the same sentences: [(sentence, hypothesis)]."""
    runs = [beam_search(model.step, model.cache(), rules, beam=k, n_best=k) for k in (1, 4)]
    seeds = list(range(len(rules.limits)))
    runs.append(sample(model.step, model.cache(), rules, seeds=seeds, samples=3))
    return [(sentence, h) for run in runs for sentence, hypotheses in enumerate(run) for h in hypotheses]


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, n=st.integers(1, 3), limit=st.integers(1, 15))
def test_no_ngram_stands_twice(seed, n, limit):
    model = ToyModel.random([seed, seed + 1], 4)
    for _, found in all_outputs(model, Rules([limit, limit], no_repeat_ngram=n, bias={EOS: -3.0})):
        ngrams = [tuple(found.ids[i : i + n]) for i in range(len(found.ids) - n + 1)]
        assert len(ngrams) == len(set(ngrams))


def test_other_outputs_are_not_touched_by_the_ngram_rule():
    model = ToyModel.random([5], 3)
    everything = [ids for _, ids in model.everything(0, 4, 1.0)]
    expected = [ids for ids in everything if len(set(pairwise(ids))) == len(ids[1:])]
    [found] = beam_search(model.step, model.cache(), Rules([4], no_repeat_ngram=2), beam=200, n_best=9)
    assert [h.ids for h in found] == expected[:9]


@settings(max_examples=20, deadline=None)
@given(
    seed=SEEDS,
    prefixes=st.lists(st.lists(WORDS | st.just(UNK), max_size=5), min_size=1, max_size=4),
    extra=st.integers(0, 4),
)
def test_prefixes_are_honoured_and_counted(seed, prefixes, extra):
    model = ToyModel.random([seed + number for number in range(len(prefixes))], 5)
    limits = [max(1, len(prefix) + extra) for prefix in prefixes]
    # Even what is banned or would be a repetition may be asked for.
    for sentence, found in all_outputs(model, Rules(limits, prefixes=prefixes, no_repeat_ngram=1)):
        assert found.ids[: len(prefixes[sentence])] == prefixes[sentence]
        assert UNK not in found.ids[len(prefixes[sentence]) :]
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
    rules = Rules(limits, prefixes=prefixes, no_repeat_ngram=n, bias=bias)
    seeds = list(range(len(limits)))
    searches = [
        lambda model, **more: beam_search(model.step, model.cache(), rules, beam=3, n_best=3, **more),
        lambda model, **more: beam_search(model.step, model.cache(), rules, beam=1, **more),
        lambda model, **more: sample(model.step, model.cache(), rules, seeds=seeds, samples=3, **more),
    ]
    for search in searches:
        model = ToyModel.random([seed + number for number in range(len(prefixes))], 5)
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
    model = ToyModel.random([3], 4)
    expected = [(score, ids) for score, ids in model.everything(0, 4, 0.6) if ids[:2] == [6, 4]]
    rules = Rules([4], prefixes=[[6, 4]])
    [found] = beam_search(model.step, model.cache(), rules, beam=100, n_best=21, length_penalty=0.6)
    assert [h.ids for h in found] == [ids for _, ids in expected]


@settings(max_examples=20, deadline=None)
@given(seed=SEEDS, limits=st.tuples(st.integers(1, 6), st.integers(1, 10)))
def test_lengths_stay_between_their_limits(seed, limits):
    model = ToyModel.random([seed, seed + 1], 4)
    for sentence, found in all_outputs(model, Rules(limits)):
        assert 1 <= len(found.ids) <= limits[sentence]


def test_bias_is_added_and_counts():
    model = ToyModel.random([8], 4)
    biased = ToyModel([model.tables[0] + torch.tensor([0.0] * WORD + [-2.0, 3.0, 0.0, 0.0])])
    for penalty in (0.0, 1.0):
        expected = biased.everything(0, 3, penalty)[:10]
        rules = Rules([3], bias={WORD: -2.0, WORD + 1: 3.0})
        [found] = beam_search(model.step, model.cache(), rules, beam=100, n_best=10, length_penalty=penalty)
        assert [h.ids for h in found] == [ids for _, ids in expected]
        assert all(abs(h.score - score) < TOLERANCE for h, (score, _) in zip(found, expected, strict=True))


def test_special_tokens_and_empty_outputs_never_come():
    table = torch.zeros(1, 8, 8, dtype=torch.float64)
    table[:, :, [PAD, UNK, BOS]] = 6.0
    table[:, :, 3] = 3.0
    table = table.log_softmax(2)

    class NoCache:
        def reorder(self, rows, sentences=None):
            return self

    def step(ids, cache):
        return table[0, ids[:, 0]], cache

    rules = Rules([5])
    found = beam_search(step, NoCache(), rules, n_best=5)[0] + sample(step, NoCache(), rules, seeds=[1], samples=5)[0]
    assert all(h.ids and min(h.ids) > 3 for h in found)


@pytest.mark.parametrize(
    ("limits", "options", "message"),
    [
        ([3, 0], {}, "The longest length of sentence 1 is 0; it must be at least 1."),
        ([3], {"prefixes": [[4], [4]]}, "2 prefixes for 1 sentence; give one, perhaps empty, for each."),
        ([3, 3], {"prefixes": [[4]]}, "1 prefix for 2 sentences; give one, perhaps empty, for each."),
        (
            [3],
            {"prefixes": [[4, 4, 4, 4]]},
            "The prefix of sentence 0 has 4 tokens, more than its longest length 3. "
            "Shorten the prefix or allow a longer output.",
        ),
        (
            [3],
            {"prefixes": [[4, EOS]]},
            "The prefix of sentence 0 is [4, 3]; it may not contain the end of the output (3) or negative ids.",
        ),
        (
            [3],
            {"prefixes": [[-1]]},
            "The prefix of sentence 0 is [-1]; it may not contain the end of the output (3) or negative ids.",
        ),
        ([3], {"prefixes": [[9]]}, "A bias or prefix names id 9; the vocabulary ends at 6."),
        ([3], {"bias": {7: 1.0}}, "A bias or prefix names id 7; the vocabulary ends at 6."),
    ],
)
def test_bad_requests_are_named(limits, options, message):
    model = ToyModel.random([0] * len(limits), 3)
    with pytest.raises(ConfigError) as error:
        beam_search(model.step, model.cache(), Rules(limits, **options))
    assert str(error.value) == message


def test_every_tensor_is_made_on_the_device_of_the_rules():
    """Where another device is the default, a tensor made without naming its device could not meet the others."""
    model, prefixes = ToyModel.random([1, 2], 5), [[4, 5], [4]]
    options = {"prefixes": prefixes, "bias": {5: 0.5}, "no_repeat_ngram": 2}
    caches = [model.cache() for _ in range(3)]

    def search():
        rules = Rules([4, 6], **options)
        return [
            beam_search(model.step, caches[0], rules, beam=3, prefill=model.prefill),
            sample(model.step, caches[1], rules, seeds=[1, 2], samples=3, top_p=0.8),
            sample(model.step, caches[2], rules, seeds=[1, 2]),
        ]

    expected = search()
    with torch.device("meta"):
        assert search() == expected


def test_a_model_in_single_precision_gives_the_same():
    options = {"prefixes": [[4, 5], [4]], "bias": {5: 0.5, 6: -0.25}, "no_repeat_ngram": 2}
    model = ToyModel.random([1, 2], 5)
    single = ToyModel([table.float() for table in model.tables])
    for (_, one), (_, other) in zip(
        all_outputs(model, Rules([4, 6], **options)), all_outputs(single, Rules([4, 6], **options)), strict=True
    ):
        assert (one.ids, one.finished) == (other.ids, other.finished)
        assert other.log_probs == pytest.approx(one.log_probs, abs=1e-5)
        assert other.score == pytest.approx(one.score, abs=1e-5)
    assert beam_search(single.step, single.cache(), Rules([4, 6], **options), prefill=single.prefill)
