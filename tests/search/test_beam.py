"""Beam and greedy search against brute force and against themselves in other batches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_model import END, PLAIN, START, TOLERANCE, ToyModel, consistent

from jumok.errors import ConfigError, JumokError
from jumok.search.beam import beam_search
from jumok.search.decoding import Scoring

SEEDS = st.integers(0, 2**31)
PENALTIES = st.sampled_from([0.0, 0.6, 1.0, 2.0])


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, vocabulary=st.integers(3, 6), longest=st.integers(1, 4), penalty=PENALTIES)
def test_a_beam_as_wide_as_everything_finds_exactly_the_best(seed, vocabulary, longest, penalty):
    model = ToyModel.random([seed, seed + 1], vocabulary)
    limits = [longest, max(1, longest - 1)]
    everything = [model.everything(sentence, limit, penalty) for sentence, limit in enumerate(limits)]
    n_best = min(7, len(everything[1]))
    found = beam_search(
        model.step,
        model.cache(),
        limits,
        beam=len(everything[0]),
        n_best=n_best,
        length_penalty=penalty,
        constraints=PLAIN,
    )
    for sentence, hypotheses in enumerate(found):
        expected = everything[sentence][:n_best]
        assert [h.ids for h in hypotheses] == [ids for _, ids in expected]
        assert all(abs(h.score - score) < TOLERANCE for h, (score, _) in zip(hypotheses, expected, strict=True))
        assert all(consistent(model, sentence, h, penalty) for h in hypotheses)


def test_all_outputs_there_are_when_more_are_asked_for():
    model = ToyModel.random([1], 3)
    found = beam_search(model.step, model.cache(), [2], beam=50, n_best=50, constraints=PLAIN)
    assert sorted(h.ids for h in found[0]) == [[], [2], [2, 2]]


@settings(max_examples=25, deadline=None)
@given(seed=SEEDS, limit=st.integers(1, 9), penalty=PENALTIES)
def test_greedy_takes_the_most_probable_token_until_the_end(seed, limit, penalty):
    model = ToyModel.random([seed], 7)
    ids: list[int] = []
    finished = True
    while True:
        scores = model.log_probs(0, [START, *ids]).clone()
        scores[START] = -torch.inf
        token = int(scores.argmax())
        if token == END or len(ids) == limit:
            finished = token == END
            break
        ids.append(token)
    [[found]] = beam_search(model.step, model.cache(), [limit], beam=1, length_penalty=penalty, constraints=PLAIN)
    assert (found.ids, found.finished) == (ids, finished)
    assert consistent(model, 0, found, penalty)


@settings(max_examples=30, deadline=None)
@given(
    seed=SEEDS,
    beam=st.integers(1, 6),
    penalty=PENALTIES,
    limits=st.lists(st.integers(1, 12), min_size=1, max_size=5),
    bias=st.sampled_from([{}, {2: 1.5}, {END: -2.0, 3: 0.3}]),
    data=st.data(),
)
def test_early_finish_changes_nothing(seed, beam, penalty, limits, bias, data):
    n_best = data.draw(st.integers(1, beam))
    constraints = replace(PLAIN, bias=bias)

    def search(model):
        return beam_search(
            model.step,
            model.cache(),
            limits,
            beam=beam,
            n_best=n_best,
            length_penalty=penalty,
            constraints=constraints,
        )

    seeds = [seed + number for number in range(len(limits))]
    early, late = ToyModel.random(seeds, 8, 14), ToyModel.random(seeds, 8, 14)
    found = search(early)
    with pytest.MonkeyPatch.context() as patch:
        never = lambda _, totals, *__: totals.masked_fill(totals > -torch.inf, torch.inf)  # noqa: E731
        patch.setattr(Scoring, "best_possible", never)
        assert search(late) == found
    assert early.steps <= late.steps


@given(
    total=st.floats(-50, 5),
    gain=st.sampled_from([0.0, 0.1, 3.0]),
    penalty=PENALTIES,
    length=st.integers(1, 20),
    more=st.integers(1, 20),
)
def test_the_bound_is_never_beaten_and_can_be_reached(total, gain, penalty, length, more):
    longest = length + more
    scoring = Scoring(1, torch.tensor([float(n) ** penalty for n in range(longest + 1)], dtype=torch.float64), gain)
    totals = torch.tensor([total], dtype=torch.float64)
    bound = float(scoring.best_possible(totals, length, torch.tensor([longest])))
    reachable = [(total + gain * (n - length)) / n**penalty for n in range(length + 1, longest + 1)]
    assert all(score <= bound + TOLERANCE for score in reachable)
    if gain == 0:
        assert max(reachable) == pytest.approx(bound)


def test_the_very_last_token_can_decide():
    probabilities = torch.tensor([[0.4, 0.0, 0.31, 0.29], [1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    model = ToyModel([probabilities[:, None].expand(2, 4, 4).log()])
    [[found]] = beam_search(model.step, model.cache(), [1], beam=2, length_penalty=1.0, constraints=PLAIN)
    assert found.ids == [2]  # log 0.31 / 2 > log 0.4 / 1 > log 0.31 / 1


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_bias_can_lift_what_seemed_lost(penalty):
    probabilities = torch.tensor([[0.6, 0.0, 0.3, 0.1], [0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    model = ToyModel([probabilities[[0, 1, 1, 1, 2], None].expand(5, 4, 4).double().log()])
    options = {"beam": 2, "length_penalty": penalty}
    biased = replace(PLAIN, bias={2: 0.5})
    [[found]] = beam_search(model.step, model.cache(), [4], constraints=biased, **options)
    assert found.ids == [2, 2, 2, 2]
    assert found.score > 0


def test_early_finish_saves_steps():
    sure = torch.full((1, 4, 4), -9.0, dtype=torch.float64)
    sure[:, :, END] = 3.0  # ends at once, and everybody knows it
    model = ToyModel([sure.log_softmax(2)])
    beam_search(model.step, model.cache(), [50], beam=2, length_penalty=1.0, constraints=PLAIN)
    assert model.steps < 40
    model.steps = 0
    beam_search(model.step, model.cache(), [50], beam=2, length_penalty=0.0, constraints=PLAIN)
    assert model.steps == 1


@settings(max_examples=20, deadline=None)
@given(seeds=st.lists(SEEDS, min_size=1, max_size=6), beam=st.integers(1, 5), ties=st.booleans(), penalty=PENALTIES)
def test_neighbours_change_nothing(seeds, beam, ties, penalty):
    model = ToyModel.random(seeds, 9, 12)
    if ties:
        model.tables = [(table * 2).round() / 2 for table in model.tables]
    limits = [3 + seed % 9 for seed in seeds]

    def search(some, some_limits):
        return beam_search(
            some.step,
            some.cache(),
            some_limits,
            beam=beam,
            n_best=beam,
            length_penalty=penalty,
            constraints=replace(PLAIN, no_repeat_ngram=2),
        )

    together = search(model, limits)
    alone = [search(ToyModel([table]), [limit])[0] for table, limit in zip(model.tables, limits, strict=True)]
    assert together == alone
    backwards = search(ToyModel(model.tables[::-1]), limits[::-1])
    assert together == backwards[::-1]


def test_ties_go_to_the_lower_id_and_the_earlier_hypothesis():
    flat = ToyModel([torch.full((1, 5, 5), 0.2, dtype=torch.float64).log()])
    [found] = beam_search(flat.step, flat.cache(), [2], beam=25, n_best=13, length_penalty=1.0, constraints=PLAIN)
    assert [h.ids for h in found] == [[], *([a] for a in (2, 3, 4)), *([a, b] for a in (2, 3, 4) for b in (2, 3, 4))]


def test_the_limit_is_not_silent():
    endless = torch.full((1, 4, 4), -5.0, dtype=torch.float64)
    endless[:, :, 2] = 5.0
    model = ToyModel([endless.log_softmax(2), endless.log_softmax(2)])
    for beam in (1, 3):
        found = beam_search(model.step, model.cache(), torch.tensor([4, 6]), beam=beam, constraints=PLAIN)
        assert [h[0].ids for h in found] == [[2] * 4, [2] * 6]
        assert not any(h[0].finished for h in found)
        assert all(consistent(model, number, h[0], 1.0) for number, h in enumerate(found))


def test_an_output_that_ends_by_itself_at_its_limit_is_finished():
    table = torch.full((3, 4, 4), -5.0, dtype=torch.float64)
    table[:2, :, 2] = 5.0
    table[2, :, END] = 5.0
    model = ToyModel([table.log_softmax(2)])
    [[found]] = beam_search(model.step, model.cache(), [2], beam=1, constraints=PLAIN)
    assert found.ids == [2, 2]
    assert found.finished


def test_an_empty_batch_gives_an_empty_result():
    model = ToyModel([])
    assert beam_search(model.step, model.cache(), []) == []
    assert model.steps == 0


def test_the_model_runs_without_recording_gradients():
    model = ToyModel.random([0], 5)

    def step(ids, cache):
        assert torch.is_inference_mode_enabled()
        return model.step(ids, cache)

    beam_search(step, model.cache(), [3], constraints=PLAIN)
    assert model.steps
    assert not torch.is_inference_mode_enabled()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam is 0; it must be at least 1"),
        ({"beam": 3, "n_best": 4}, "n_best is 4; with a beam of 3 it must be 1 to 3"),
        ({"n_best": 0}, "n_best is 0"),
        ({"length_penalty": -0.5}, "length_penalty is -0.5; it must be 0"),
        ({"length_penalty": float("nan")}, "length_penalty is nan"),
    ],
)
def test_bad_options_are_named(options, message):
    model = ToyModel.random([0], 5)
    with pytest.raises(ConfigError, match=message):
        beam_search(model.step, model.cache(), [3], constraints=PLAIN, **options)


@pytest.mark.parametrize("beam", [1, 3])
def test_a_broken_model_is_an_error(beam):
    for value, message in ((torch.nan, "NaN probabilities"), (-torch.inf, "probability 0")):
        model = ToyModel([torch.full((1, 5, 5), value)])
        with pytest.raises(JumokError, match=message):
            beam_search(model.step, model.cache(), [3], beam=beam, constraints=PLAIN)
